"""`fedscape figures gallery`: every figure from the command line, with small grids, and with a task of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny as small

from figures import gallery
from figures.commands import _tiny_options
from figures.pictures.draw_files import picture
from landscape.results import netcdf_files

pytestmark = pytest.mark.usefixtures("not_laid_out")

FEW = ["accuracy-rounds", "planes-clients"]

TASK = """
import torch
from torch import nn

def make_task():
    x = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    y = x[:, :4].argmax(1)
    return (nn.Linear(8, 4), nn.CrossEntropyLoss(reduction="none"), (x, y)), [range(k, 30, 4) for k in range(4)]
"""


def _all_drawn(told, names):
    """Every figure has a picture that is no empty page, and numbers of which some are finite."""
    code, out, err = told
    assert code == 0, err
    rows = {row["figure"]: row for row in json.loads(out)}
    assert {name: row.get("left_out") for name, row in rows.items()} == dict.fromkeys(names)
    for row in rows.values():
        files = {Path(path).suffix: Path(path) for path in row["files"]}
        assert set(files) == {".pdf", ".png", ".svg", ".nc", ".csv", ".tex", ".txt"}
        assert files[".png"].stat().st_size > 3000
        numbers = [values for values in netcdf_files.load(files[".nc"]).data_vars.values() if values.dtype.kind == "f"]
        assert any(np.isfinite(values).any() for values in numbers)


def test_some_figures_are_drawn_with_small_grids(fedscape, runs, monkeypatch):
    monkeypatch.setattr(gallery, "names", lambda: FEW)
    folders = [run.folder for run in runs[::2]]
    _all_drawn(fedscape("figures", "gallery", *folders, "--tiny", "-o", "pictures", "--json"), FEW)
    assert netcdf_files.load("pictures/planes-clients.nc").sizes["alpha"] == 5


def test_figures_that_the_runs_do_not_allow_are_named_by_reason(fedscape, runs, monkeypatch):
    monkeypatch.setattr(gallery, "names", lambda: ["accuracy-rounds", "server-epochs", "weights-learned"])
    code, out, err = fedscape("figures", "gallery", runs[0].folder, "--tiny")
    assert (code, [Path(line).name for line in out.splitlines()]) == (0, ["accuracy-rounds.pdf"])
    first, second = [line for line in err.splitlines() if "left out" in line]
    assert first.startswith("server-epochs: left out, no run recorded how its server learned weights")
    assert second.startswith("weights-learned: left out, none of 1 runs learned its weights")
    monkeypatch.setattr(gallery, "names", lambda: ["weights-learned"])
    assert fedscape("figures", "gallery", runs[0].folder)[:2] == (2, "")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_task_of_ones_own_reaches_every_worker(fedscape, tmp_path, monkeypatch, workers):
    import torch

    from drift.record.recorder import Recorder

    Path("task.py").write_text(TASK)
    recorder, start = Recorder("runs/mine"), torch.nn.Linear(8, 4).state_dict()
    for _ in range(2):
        moved = {k: {name: value + 0.3 * torch.randn_like(value) for name, value in start.items()} for k in range(4)}
        recorder.round(start=start, clients={k: (state, 8 - k // 2) for k, state in moved.items()}, end=moved[1])
        start = moved[1]
    names = ["labels-scatter", "planes-clients"]
    monkeypatch.setattr(gallery, "names", lambda: names)
    words = ["figures", "gallery", "runs/mine", "--tiny", "--json", "--workers", workers]
    _all_drawn(fedscape(*words, "--task", "task.py:make_task"), names)
    if workers > 1:
        return
    code, _, err = fedscape(*words)
    assert code == 2 and err.count("was recorded without its data; give the task") == 1
    code, out, _ = fedscape("diagnose", "runs/mine", "--quick", "--json", "--task", "task.py:make_task")
    assert code == 0 and json.loads(out)["rounds"] == 2


@pytest.mark.parametrize("name", gallery.names())
def test_small_options_are_options_of_the_figure_and_none_larger_than_usual(name):
    import inspect

    usual = inspect.signature(gallery.load(name).data).parameters
    for option, value in _tiny_options.options(name).items():
        default = usual[option].default
        assert type(value) is type(default) or default is None
        assert option in ("step", "tolerance", "extend") or default is None or value <= default


def test_small_options_are_for_figures_that_there_are():
    assert set(_tiny_options.TINY) <= set(gallery.names())


def test_files_of_one_figure_and_of_a_report_as_json(fedscape, runs):
    folder = runs[0].folder
    code, out, _ = fedscape("figures", "draw", "accuracy-rounds", folder, "--json")
    told = json.loads(out)
    assert (code, told["figure"]) == (0, "accuracy-rounds") and all(Path(path).exists() for path in told["files"])
    code, out, _ = fedscape("publish", folder, "-o", "r.html", "--json")
    assert (code, json.loads(out)) == (0, {"file": "r.html", "runs": [folder.name], "failed": {}})


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A run of two clients a round that kept no model."""
    kept = ("keep.clients=none", "keep.globals=none", "clients.per_round=2")
    return small.trained(tmp_path_factory.mktemp("bare"), *kept)


@pytest.mark.parametrize("name", gallery.names())
def test_a_run_without_what_a_figure_needs_is_refused_before_anything_is_computed(name, bare):
    def made():  # whether weights sum to 1, and whether they were learned, is itself read from the record
        found = {path.name for path in (bare.folder / "results").glob("[!.]*")}
        return {name for name in found if not name.startswith(("regularisation_ratio", "aggregation_weights"))}

    before, refused = made(), False
    try:
        gallery.load(name).data([bare], **_tiny_options.options(name))
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        refused = True
    assert not refused or made() == before


def test_a_picture_is_drawn_again_from_its_numbers(fedscape, runs, tmp_path):
    folders = [run.folder for run in runs[::2]]
    code, _, err = fedscape("figures", "draw", "accuracy-rounds", *folders, "-o", "first")
    assert code == 0, err
    numbers = "first/accuracy-rounds.nc"
    assert fedscape("figures", "draw", "accuracy-rounds", numbers, "-o", "again")[0] == 0
    for suffix in (".png", ".csv", ".txt", ".alt.txt"):
        first, again = (Path(folder, f"accuracy-rounds{suffix}").read_bytes() for folder in ("first", "again"))
        assert first == again
    ds = netcdf_files.load(numbers)
    assert netcdf_files.load("again/accuracy-rounds.nc").identical(ds)
    netcdf_files.save(ds, "packed.nc")
    assert fedscape("figures", "draw", "accuracy-rounds", "packed.nc", "--width", "column", "-o", "narrow")[0] == 0
    assert picture("accuracy-rounds", "packed.nc", width="column").get_figwidth() == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (["planes-clients", "{}"], "numbers of figure accuracy-rounds, not of planes-clients"),
        (["accuracy-rounds", "{}", "--methods", "fedavg"], "methods asks for other numbers"),
        (["accuracy-rounds", "{}", "{}"], "give it alone"),
        (["accuracy-rounds", "{}", "--memory", "1GB"], "--memory is for runs"),
        (["accuracy-rounds", "other.nc"], "no result at other.nc"),
        (["accuracy-rounds", "text.nc"], "text.nc cannot be read"),
    ],
)
def test_numbers_that_a_figure_cannot_be_drawn_from_are_refused(fedscape, numbers, rest, why):
    netcdf_files.save(numbers("accuracy-rounds").assign_attrs(figure="accuracy-rounds"), "saved.nc")
    Path("text.nc").write_text("no archive")
    code, out, err = fedscape("figures", "draw", *[text.format("saved.nc") for text in rest])
    assert (code, out) == (2, "") and why in err
