"""Runs of the report and of the interactive figures: none is dropped, and each has a name of its own."""

from __future__ import annotations

import shutil

import pytest
import tiny

from drift.runs.run import open as open_run
from figures import gallery
from figures.page.tables import fingerprints, summary_table
from figures.selection.groups import groups


def _copied(run, folder):
    shutil.copytree(run.folder, folder)
    return open_run(folder)


def test_runs_of_one_setting_and_seed_are_all_shown_by_their_names(tmp_path):
    prox = tiny.trained(tmp_path / "runs", "method=fedavg")
    half, fail = _copied(prox, tmp_path / "half"), _copied(prox, tmp_path / "fail")
    far = _copied(prox, tmp_path / "far" / "half")
    other = tiny.trained(tmp_path / "runs", "method=fedavg", "seed=6")
    runs = [prox, half, fail, far, other]
    found = groups(runs)
    assert sorted(str(run.folder) for group in found.values() for run in group) == sorted(
        str(run.folder) for run in runs
    )
    assert all(name.startswith("fedavg, ") for name in found)
    assert len(fingerprints(found)["rows"]) == len(summary_table(found)["rows"]) == len(runs)


def test_a_run_given_twice_is_shown_once_and_seeds_are_one_group(tmp_path):
    runs = [tiny.trained(tmp_path, f"seed={seed}") for seed in (5, 6)]
    (group,) = groups([*runs, runs[0]]).values()
    assert [run.experiment.seed for run in group] == [5, 6]


def test_one_setting_of_a_method_is_drawn_from_a_folder_and_the_other_told(tmp_path):
    """Runs of one method that differ in more than their seed are never one curve."""
    slow, fast, again = (
        tiny.trained(tmp_path, *given) for given in (("local.lr=0.01",), ("local.lr=0.1",), ("seed=6",))
    )
    prox = tiny.trained(tmp_path, "method=fedprox")
    figure = gallery.load("accuracy-rounds")
    ds = figure.data(gallery.AnyOf([slow, fast, again, prox]))
    assert ds.attrs["runs"] == f"{slow.name}, {prox.name}" and "local.lr" in ds.attrs["left_out"]
    ds = figure.data(gallery.AnyOf([slow, fast, again, prox], [fast]))
    assert fast.name in ds.attrs["runs"] and slow.name not in ds.attrs["runs"]
    for named in ([slow, fast], [slow, again]):  # of one seed, of two seeds
        with pytest.raises(ValueError, match=r"are both fedavg, and differ in local\.lr"):
            figure.data([*named, prox])
