"""What the doctor finds, and that every trap comes with what to do."""

import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from figures.commands import doctor


def fake_torch(*, cuda=None, available=False, threads=1):
    return SimpleNamespace(
        __version__="2.13.0",
        version=SimpleNamespace(cuda=cuda),
        cuda=SimpleNamespace(
            is_available=lambda: available, device_count=lambda: 1, get_device_name=lambda index: f"card {index}"
        ),
        get_num_threads=lambda: threads,
    )


def test_everything_is_looked_at_and_nothing_here_is_broken():
    found = doctor.examine()
    names = [one.name for one in found]
    assert names[:5] == ["fedscape", "packages", "python", "libraries", "torch"]
    assert {"gpu", "cores", "memory", "disk", "data folder", "cache folder", "extras", "chromium"} <= set(names)
    assert not any(one.broken for one in found)


def distribution(folder, name, *files):
    """A distribution as pip leaves it in a folder: metadata, and a list of its files."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_another_distribution_that_brings_a_package_of_the_same_name_is_named(tmp_path, monkeypatch):
    distribution(tmp_path, "figures-of-eight", "figures/__init__.py")
    monkeypatch.syspath_prepend(tmp_path)
    found = doctor.packages()
    assert "figures is also installed by figures-of-eight" in found.value
    assert "pip uninstall figures-of-eight, then" in found.advice and not found.broken
    monkeypatch.setattr(doctor.ours, "foreign", lambda: {"drift": "/home/me/drift.py", "figures": "/a/figures.py"})
    found = doctor.packages()
    assert found.broken and "drift is /home/me/drift.py" in found.value
    assert "rename that file" in found.advice and "pip uninstall figures-of-eight" in found.advice


def test_extras_are_those_of_the_project():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"])


def test_a_torch_that_cannot_be_imported_breaks(monkeypatch):
    monkeypatch.setattr(doctor, "_imported", lambda name: "libtorch_cpu.so: cannot open shared object file")
    broken = [one for one in doctor.examine() if one.broken]
    assert [one.name for one in broken] == ["torch"]
    assert "libtorch_cpu.so" in broken[0].advice
    assert "pip install" in broken[0].advice


def test_an_import_that_fails_is_told_as_text():
    assert "no_such_module" in doctor._imported("no_such_module")


@pytest.mark.parametrize(
    ("build", "driver", "advice"),
    [
        ({"cuda": "12.8"}, None, "TORCH_INDEX"),
        ({"cuda": "12.8"}, "/usr/bin/nvidia-smi", "driver"),
        ({"cuda": None}, "/usr/bin/nvidia-smi", "install a CUDA build"),
        ({"cuda": None}, None, ""),
        ({"cuda": "12.8", "available": True}, "/usr/bin/nvidia-smi", ""),
    ],
)
def test_a_build_that_does_not_fit_the_machine_is_told(monkeypatch, build, driver, advice):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: driver)
    found = doctor.pytorch(fake_torch(**build))
    assert advice in found.advice
    assert bool(advice) == bool(found.advice)


def test_gpus_are_named():
    assert doctor.gpu(fake_torch(available=True)).value == "card 0"
    assert "none" in doctor.gpu(fake_torch()).value


@pytest.mark.parametrize("code", [0, 1])
def test_a_torchvision_that_breaks_imports_is_told(monkeypatch, code):
    monkeypatch.setattr(doctor, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, code))
    assert ("pip uninstall torchvision" in doctor.torchvision().advice) == bool(code)


def test_too_many_threads_are_told(monkeypatch):
    monkeypatch.setattr(doctor, "available_cores", lambda: 2)
    assert "OMP_NUM_THREADS=2" in doctor.cores(fake_torch(threads=16)).advice
    assert doctor.cores(fake_torch(threads=2)).advice == ""


def test_the_data_folder_names_its_datasets(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDSCAPE_DATA", raising=False)
    assert "none given" in doctor.data_folder(None).value
    assert "is not a folder" in doctor.data_folder(tmp_path / "absent").value
    assert "no sub-folder" in doctor.data_folder(tmp_path).advice
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-0.parquet").touch()
    (tmp_path / "holidays").mkdir()
    monkeypatch.setenv("FEDSCAPE_DATA", str(tmp_path))
    assert doctor.data_folder(None).value == f"{tmp_path}: mnist"


def test_absent_libraries_break(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: None if name == "h5netcdf" else "1.0")
    found = doctor.libraries()
    assert found.broken
    assert "install h5netcdf" in found.advice
