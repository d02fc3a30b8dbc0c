"""Summaries of runs read without torch say what the opened runs say, or leave the verdict to opening them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from drift.runs.run import Run
from drift.runs.run_summary import opened_summary, summary
from drift.simulation.run_index import index
from drift.store import files

ROOT = Path(__file__).resolve().parents[3]


OPTIONS = {
    "fedavg": ["keep.clients=none", "keep.globals=every 2"],
    "fedprox+ima-no_feedback": ["method=ima", "method.window=2", "method.base=fedprox", "method.feedback=false"],
    "fedprox-paper": ["method=fedprox", "method.like=paper"],
}


@pytest.mark.parametrize("label", OPTIONS)
def test_a_summary_is_that_of_the_opened_run_whose_label_is_recorded(tmp_path, label):
    run = tiny.trained(tmp_path, *OPTIONS[label])
    stored = summary(run.folder, check=True)
    assert stored == opened_summary(Run(run.folder))
    assert stored.label == run.about["label"] == run.method.label == label


@pytest.mark.parametrize("name", ["run.json", "state.safetensors", "rounds/000000.safetensors"])
def test_a_file_that_is_damaged_or_of_another_run_leaves_the_verdict_to_opening(tmp_path, name):
    run, other = tiny.trained(tmp_path / "a"), tiny.trained(tmp_path / "b", "seed=6")
    path = run.folder / name
    sound = path.read_bytes()
    for content in (sound[: len(sound) // 2], (other.folder / name).read_bytes(), b""):
        path.write_bytes(content)
        assert summary(run.folder, check=True) is None
        assert index(tmp_path / "a")[0]["problem"] or name.startswith("rounds")  # opening reads the last round alone
    path.write_bytes(sound)
    assert summary(run.folder, check=True) is not None


@pytest.mark.parametrize("name", ["state.safetensors", "rounds/000002.safetensors"])
def test_a_flipped_bit_of_the_last_models_is_noticed(tmp_path, name):
    run = tiny.trained(tmp_path)
    content = bytearray((run.folder / name).read_bytes())
    content[-3] ^= 4
    (run.folder / name).write_bytes(content)
    assert summary(run.folder, check=True) is None
    assert summary(run.folder, check=False) is not None
    assert "altered" in index(tmp_path)[0]["problem"]


def test_runs_of_others_and_lost_rounds_are_opened(tmp_path):
    run = tiny.trained(tmp_path)
    about = files.read_json(run.folder / "run.json")
    files.write_json(run.folder / "run.json", {key: value for key, value in about.items() if key != "hash"})
    assert summary(run.folder, check=False) is None
    files.write_json(run.folder / "run.json", about)
    (run.folder / "rounds" / "000001.safetensors").unlink()
    assert summary(run.folder, check=False) is None


def test_listing_and_showing_import_neither_torch_nor_tables(tmp_path):
    tiny.trained(tmp_path)
    verbs = [["runs"], ["show", "fedavg"], ["runs", "--json"], ["show", "fedavh"]]
    heavy = {"torch", "xarray", "pandas", "scipy", "matplotlib", "plotly", "h5py"}
    code = (
        f"import sys\nfrom figures.cli import main\nfor verb in {verbs!r}:\n"
        f"    try:\n        main([*verb, '--runs', {str(tmp_path)!r}])\n"
        f"    except SystemExit as stop:\n        print('ended:', stop.code, sorted({heavy!r} & set(sys.modules)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    told = re.split(r"ended: (.*)\n", ended.stdout)
    assert dict(zip(map(" ".join, verbs), told[1::2], strict=True)) == {
        " ".join(verb): f"{2 if 'fedavh' in verb else 0} []" for verb in verbs
    }
    assert ["fedavg-blobs" in text for text in told[:-1:2]] == [True, True, True, False]
