"""What the command line says when training stops: a full disk, divergence, Ctrl-C, a missing round, damaged files."""

import errno
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mistakes import mistake

from drift.store import numpy_files


def test_a_full_disk_is_said_whatever_was_written(fedscape, file, monkeypatch):
    name = Path(fedscape("train", file)[1].strip()).name

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("landscape.results.netcdf_files.save", full)
    told = mistake(fedscape("figures", "draw", "accuracy-rounds", name))
    assert (
        told
        == "fedscape: No space left on device. Free space, then give the same command again; what is whole is kept."
    )


def test_a_round_missing_before_the_commit_point_is_said_by_train(fedscape, file):
    run = Path(fedscape("train", file)[1].strip())
    (run / "rounds" / "000001.safetensors").unlink()
    assert "000001.safetensors is missing. See fedscape verify --repair." in mistake(fedscape("train", file))
    (run / "state.safetensors").unlink()
    assert fedscape("train", file)[0] == 0
    assert fedscape("verify", run)[0] == 0


def test_a_run_that_would_not_fit_leaves_no_folder(fedscape, file, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    assert "0.0 MB free" in mistake(fedscape("train", file))
    assert not Path("runs").exists()


@pytest.mark.filterwarnings("default:.*stopped early")  # the command line says it on stderr
def test_comparing_runs_that_stop_early_exits_with_2(fedscape, file):
    told = fedscape("compare", file, "--methods", "fedavg", "--seeds", "1", "--set", "local.lr=1e39")
    assert told[0] == 2
    assert "stopped early" in told[2]


def test_verify_exits_with_2_and_names_the_file(fedscape, file):
    folder = Path(fedscape("train", file)[1].strip())
    assert "every file is whole" in fedscape("verify", folder)[1]
    path = folder / "rounds" / "000001.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    code, out, _ = fedscape("verify", folder.name)
    assert code == 2
    assert "rounds/000001.safetensors" in out


def test_a_full_disk_names_the_last_whole_round_and_resumes(fedscape, file, monkeypatch):
    whole, write = numpy_files.write_bytes, numpy_files.write_bytes

    def full(path, *data):
        if path.name == "000002.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, *data)

    monkeypatch.setattr(numpy_files, "write_bytes", full)
    code, out, err = fedscape("train", file)
    assert (code, out) == (2, "")
    assert "fedscape: the disk is full" in err
    assert "000002.safetensors could not be written" in err
    assert "is whole up to round 1" in err
    monkeypatch.setattr(numpy_files, "write_bytes", whole)
    code, _, err = fedscape("train", file)
    assert code == 0
    assert "2 on disk, going on" in err


def test_a_run_that_diverges_says_so(fedscape, file):
    line = mistake(fedscape("train", file, "--set", "local.lr=1e39"))
    assert "no finite model is left" in line


def test_ctrl_c_says_how_to_go_on(fedscape, file, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["drift.simulation.simulate"], "train_round", stopped)
    code, _, err = fedscape("train", file)
    assert code == 130
    assert "run this again" in err
