"""Benchmarks give peers the settings that they measure themselves, and join the results of several machines."""

from __future__ import annotations

import json

import pytest

from benchmarks._cohorts import LR, MOMENTUM, SETTINGS
from benchmarks._peer_settings import LR as PEER_LR
from benchmarks._peer_settings import MOMENTUM as PEER_MOMENTUM
from benchmarks._peer_settings import settings
from benchmarks.write_tables import tables


@pytest.mark.parametrize("name", ["cnn_fmnist", "cnn_cifar10", "mlp_digits", "mlp_digits_batch10"])
def test_peers_train_the_same_cohorts(name):
    assert settings(name) == vars(SETTINGS[name])
    assert (PEER_LR, PEER_MOMENTUM) == (LR, MOMENTUM)


def _results(folder, name, seconds, models):
    about = {"name": name, "number": "1-2-3", "flags": "avx2", "torch": "2.13"}
    rows = [
        {
            "model": model,
            "points": 6,
            "samples": 100,
            "seconds": {"ours": seconds},
            "ratio": {"ours": 1.0, "expert": 1.25},
            "of_limit": {"ours": {"left @ right": 0.5, "oneDNN": 0.25}},
        }
        for model in models
    ]
    folder.mkdir()
    (folder / "landscape.json").write_text(json.dumps({"processor": about, "tables": rows}))
    return folder


def test_machines_stand_one_below_the_other_for_each_work(tmp_path):
    first = _results(tmp_path / "first", "Fast", [1.0, 3.0, 2.0], ["din", "mlp"])
    second = _results(tmp_path / "second", "Slow", [5.0], ["mlp"])
    lines = tables([first, second]).splitlines()
    assert lines[2:4] == ["- 1: Fast 1-2-3 (avx2) torch 2.13", "- 2: Slow 1-2-3 (avx2) torch 2.13"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[7:]]
    assert [row[:3] for row in cells] == [
        ["din, 6^2 x 100", "1", "2"],
        ["mlp, 6^2 x 100", "1", "2"],
        ["mlp, 6^2 x 100", "2", "5"],
    ]
    assert cells[0][3:] == ["", "", "1.25", "", "", "", "50 %", "25 %"]


def test_folders_without_results_say_so(tmp_path):
    assert tables([tmp_path]).startswith("no results")


def test_curvature_of_other_settings_is_other_work(tmp_path):
    solved = {"native": {"seconds": 1.0, "error": 1e-6}, "pyhessian": {"ratio": 2.0, "error": 1e-3}}
    for name, samples in (("first", 32), ("second", 64)):
        settings = {"samples": samples, "batch": 8, "steps": 5, "change": 1e-3}
        rows = [{"model": "mlp", "job": "top 5", "solvers": solved}]
        (tmp_path / name).mkdir()
        (tmp_path / name / "hessian.json").write_text(json.dumps({"settings": settings, "results": rows}))
    found = [
        line for line in tables([tmp_path / "first", tmp_path / "second"]).splitlines() if line.startswith("| mlp")
    ]
    assert found == [
        f"| mlp, top 5 (samples {samples}, batch 8, steps 5, change 0.001) | {number} | 1, 1.0e-06 | 2.00, 1.0e-03 |  |"
        for number, samples in ((1, 32), (2, 64))
    ]
