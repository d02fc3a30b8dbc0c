"""Runs keep their names: options that come later leave the folder names of settings without them as they were."""

import pytest

from drift.config.load import read
from drift.runs.run_names import find

NAMES = """
common-cifar10 fedavg-cifar10-dirichlet-s0-455ad6a7
common-digits3 fedavg-digits3-domains-s0-5e90c99b
common-fmnist fedavg-fashion-mnist-dirichlet-s0-a883d28f
digits-shards2 fedavg-digits-shards-s8-87a1437b
drift-settings fedavg-mnist-drift-s0-892af154
fedeve-cifar100-dir001 fedeve-cifar100-dirichlet-s0-7e690a3d
fedeve-femnist-dir001 fedeve-femnist-dirichlet-s0-216085db
fedeve-femnist-drift fedavg-femnist-drift-s0-a74ae040
fedeve-femnist-natural fedeve-femnist-users-s0-6152054c
fedeve-mnist-dir001 fedeve-mnist-dirichlet-s0-61bec45d
fedeve-movielens fedeve-movielens1m-users-s0-3b915e73
fedlaw-cifar10-dir1 fedlaw-cifar10-dirichlet-s8-ebb67ab3
fedlaw-cifar10-gws fedlaw-cifar10-dirichlet-s0-c2d2e4b0
fedlaw-cifar10-hybrid fedlaw-cifar10-hybrid-dirichlet-s0-f5234f29
fedlaw-cifar10-longtail fedlaw-cifar10-long-tail-s0-3ce15e40
fedlaw-cifar10-toy3 fedavg-cifar10-hybrid-dirichlet-s0-67e2fdf7
fedlaw-cifar100-dir01 fedlaw-cifar100-dirichlet-s0-5b30b3a7
fedlaw-fmnist-dir01 fedlaw-fashion-mnist-dirichlet-s0-8a191353
ima-cifar10-dir01 ima-cifar10-dirichlet-s2023-b05327ec
ima-cifar10-resnet-dir01 ima-cifar10-dirichlet-s2023-ceef20f6
ima-cifar10-resnet-shards2 ima-cifar10-shards-s2023-a6c62646
ima-cifar10-shards2 ima-cifar10-shards-s2023-3fe74498
ima-cifar10-silo ima-cifar10-shards-s2023-baa2f108
ima-cifar100-resnet-pa ima-cifar100-pachinko-s2023-11c2512a
ima-cifar100-vgg-pa ima-cifar100-pachinko-s2023-f56fda73
ima-digit5-dir01 ima-digit5-domains-s2023-03be8c51
ima-digit5-shards2 ima-digit5-domains-s2023-2e297c0a
ima-fmnist-dir01 ima-fashion-mnist-dirichlet-s2023-4932500c
ima-fmnist-shards2 ima-fashion-mnist-shards-s2023-097a3fd7
ima-pacs-dir01 ima-pacs-domains-s2023-7e72a7ad
ima-pacs-shards2 ima-pacs-domains-s2023-856250c5
lss-cifar10-dir1 lss-cifar10-dirichlet-s0-fea1ca42
lss-digit5-domains lss-digit5-one-domain-s0-07c4c24f
lss-domainnet-domains lss-domainnet-one-domain-s0-10cb56fc
lss-fmnist-dir1 lss-fashion-mnist-dirichlet-s0-34cfd2ef
lss-usps-dir1 lss-usps-dirichlet-s0-07ac3e80
common-fmnist/diwa diwa-fashion-mnist-dirichlet-s0-3c55b688
common-fmnist/fedadagrad fedadagrad-fashion-mnist-dirichlet-s0-fe02cb46
common-fmnist/fedadam fedadam-fashion-mnist-dirichlet-s0-5b834d85
common-fmnist/fedasam fedasam-fashion-mnist-dirichlet-s0-d42d9cdc
common-fmnist/fedavg fedavg-fashion-mnist-dirichlet-s0-a883d28f
common-fmnist/fedavgm fedavgm-fashion-mnist-dirichlet-s0-4883c55b
common-fmnist/fedbabu fedbabu-fashion-mnist-dirichlet-s0-540aa3c7
common-fmnist/fedbe fedbe-fashion-mnist-dirichlet-s0-9bc9bfce
common-fmnist/fedbn fedbn-fashion-mnist-dirichlet-s0-ad29c301
common-fmnist/feddf feddf-fashion-mnist-dirichlet-s0-921a5263
common-fmnist/feddyn feddyn-fashion-mnist-dirichlet-s0-3e921ce9
common-fmnist/fedeve fedeve-fashion-mnist-dirichlet-s0-08c13722
common-fmnist/fedfa fedfa-fashion-mnist-dirichlet-s0-31bff1ec
common-fmnist/fedfomo fedfomo-fashion-mnist-dirichlet-s0-403d99cb
common-fmnist/fedgma fedgma-fashion-mnist-dirichlet-s0-af763593
common-fmnist/fedlaw fedlaw-fashion-mnist-dirichlet-s0-b510f693
common-fmnist/fednova fednova-fashion-mnist-dirichlet-s0-52c16fdd
common-fmnist/fedprox fedprox-fashion-mnist-dirichlet-s0-d883c27d
common-fmnist/fedrep fedrep-fashion-mnist-dirichlet-s0-1b64b7e3
common-fmnist/fedsam fedsam-fashion-mnist-dirichlet-s0-2d91fa17
common-fmnist/fedyogi fedyogi-fashion-mnist-dirichlet-s0-133534cd
common-fmnist/ima ima-fashion-mnist-dirichlet-s0-80c81508
common-fmnist/ima/fedavg ima-fashion-mnist-dirichlet-s0-80c81508
common-fmnist/ima/fedadam ima-fashion-mnist-dirichlet-s0-b699af00
common-fmnist/ima/fedbabu ima-fashion-mnist-dirichlet-s0-3cfb0746
common-fmnist/ima/fedbn ima-fashion-mnist-dirichlet-s0-b6a80f9f
common-fmnist/ima/scaffold ima-fashion-mnist-dirichlet-s0-d6f5a830
common-fmnist/ima/fedfomo ima-fashion-mnist-dirichlet-s0-935e50d7
common-fmnist/ima/lss ima-fashion-mnist-dirichlet-s0-37fe7d7e
common-fmnist/ima/soups ima-fashion-mnist-dirichlet-s0-e231610c
common-fmnist/ima/feddyn ima-fashion-mnist-dirichlet-s0-57984396
common-fmnist/lss lss-fashion-mnist-dirichlet-s0-9b4a7f0b
common-fmnist/moon moon-fashion-mnist-dirichlet-s0-21684e33
common-fmnist/scaffold scaffold-fashion-mnist-dirichlet-s0-b35d57ad
common-fmnist/server_ft server-ft-fashion-mnist-dirichlet-s0-1845f85c
common-fmnist/shrink shrink-fashion-mnist-dirichlet-s0-7dfe2352
common-fmnist/soups soups-fashion-mnist-dirichlet-s0-ccc631d4
common-fmnist/swa swa-fashion-mnist-dirichlet-s0-734a0d8c
common-fmnist/swad swad-fashion-mnist-dirichlet-s0-0a76492a
"""
"""A preset, where slashes follow with its method and the method that it averages, and the folder of its run."""


@pytest.mark.parametrize(("setting", "folder"), [line.split() for line in NAMES.split("\n") if line])
def test_a_preset_s_run_lies_where_it_always_lay(setting, folder):
    preset, *methods = setting.split("/")
    keys = ("method", "method.base")
    assert read(preset, *(f"{key}={name}" for key, name in zip(keys, methods, strict=False))).slug == folder


def test_a_run_is_found_by_the_name_of_its_method(tmp_path):
    for name in ("server-ft-blobs-shards-s1-00000000", "fedavg-blobs-shards-s1-00000000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    for text in ("server_ft", "server-ft", "server_ft-blobs"):
        assert find(tmp_path, text).name.startswith("server-ft")
    with pytest.raises(LookupError, match="no run named 'server_fx'"):
        find(tmp_path, "server_fx")
