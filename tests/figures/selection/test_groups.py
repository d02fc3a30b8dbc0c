"""Runs of the report and of the interactive figures: none is dropped, and each has a name of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tiny

from drift.runs.run import open as open_run
from figures import gallery
from figures.looks import look
from figures.page.tables import fingerprints, summary_table
from figures.selection.groups import groups, told_apart


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
    names = {run.folder.parent.name + "/" + run.folder.name: name for name, (run,) in found.items()}
    assert names["far/half"] == "fedavg, far/half" and names[f"{tmp_path.name}/fail"] == "fedavg, fail"
    assert len(fingerprints(found)["rows"]) == len(summary_table(found)["rows"]) == len(runs)


def test_equal_names_have_the_part_of_their_folders_that_differs_without_a_shared_beginning():
    days = [Path(f"/r/lab-{day}/fedavg-s5") for day in ("monday", "friday")]
    assert told_apart(["FedAvg", "IMA", "FedAvg"], [days[0], Path("/r"), days[1]]) == [
        "FedAvg, monday",
        "IMA",
        "FedAvg, friday",
    ]
    assert told_apart(["x"] * 3, [Path(f"/r/run-{name}") for name in (1, 2, "b")]) == [
        "x, run-1",
        "x, run-2",
        "x, run-b",
    ]
    assert told_apart(["x", "x"], [Path("/r/x"), Path("/r/x/x")]) == ["x, r", "x, x"]


def test_a_run_given_twice_is_shown_once_and_seeds_are_one_group(tmp_path):
    runs = [tiny.trained(tmp_path, f"seed={seed}") for seed in (5, 6)]
    (group,) = groups([*runs, runs[0]]).values()
    assert [run.experiment.seed for run in group] == [5, 6]


def test_settings_that_a_figure_compares_are_lines_and_one_run_is_refused(tmp_path):
    changed = (("0.05", "3"), ("0.05", "2"), ("0.02", "3"), ("0.02", "2"))
    runs = [tiny.trained(tmp_path, f"local.lr={lr}", f"clients.per_round={m}") for lr, m in changed]
    figure = gallery.load("accuracy-rounds")
    whole = gallery.AnyOf(runs, [])
    with look.drawing(look.read(over="local.lr, clients.per_round")):
        ds = figure.data(whole)
        figure.draw(ds)
    assert ds.sizes["algorithm"] == 4 and len({*map(str, ds.algorithm.values)}) == 4
    for run in runs:
        values = [round(float(value), 12) for value in run.metrics().accuracy.values]
        assert values in ds.accuracy.round(12).values.reshape(4, -1).tolist()
    with look.drawing(look.read(over=["clients.per_round"])):
        assert figure.data(whole).sizes["algorithm"] == 2
    with look.drawing(look.read(over="local.rl")), pytest.raises(LookupError, match=r"local\.lr"):
        figure.data(whole)
    one = gallery.load("weights-round")
    with look.drawing(look.read(over="local.lr")):
        ds = one.data(runs[:1])
        with pytest.raises(ValueError, match="cannot apply over: it has no place"):
            one.draw(ds)


def test_two_values_of_one_option_are_two_lines_named_by_it(tmp_path):
    """Runs of one method that differ in more than their seed are never one curve."""
    fast, slow, again = (
        tiny.trained(tmp_path, *given) for given in (("local.lr=0.1",), ("local.lr=0.02",), ("local.lr=0.1", "seed=6"))
    )
    prox = tiny.trained(tmp_path, "method=fedprox")
    figure = gallery.load("accuracy-rounds")
    names = ["fedavg, lr 0.02", "fedavg, lr 0.1", "fedprox"]
    for some in ([fast, slow, again, prox], gallery.AnyOf([fast, slow, again, prox])):
        ds = figure.data(some)
        assert ds.algorithm.values.tolist() == names and ds.attrs["left_out"] == ""
        for run, name in ((fast, names[1]), (slow, names[0]), (again, names[1]), (prox, names[2])):
            own = [run.round(index).metrics["accuracy"] for index in run.rounds()]
            assert ds.accuracy.sel(algorithm=name, seed=run.experiment.seed).values.tolist() == own
        assert ds.accuracy.sel(algorithm=names[0], seed=6).isnull().all()
    drawn = figure.draw(ds)
    shown = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert shown == ["FedAvg, lr 0.02", "FedAvg, lr 0.1", "FedProx"]
    ds = figure.data(gallery.AnyOf([slow, fast, again, prox], [fast]))
    assert fast.name in ds.attrs["runs"] and slow.name not in ds.attrs["runs"]
    with pytest.raises(ValueError, match=r"are both fedavg with seed 5, and differ in keep\.globals; give runs that"):
        figure.data([fast, tiny.trained(tmp_path, "local.lr=0.1", "keep.globals=none")])


def test_of_a_folder_whose_runs_differ_in_several_options_one_setting_is_drawn_and_the_others_told(tmp_path):
    runs = [
        tiny.trained(tmp_path, *given)
        for given in (("local.lr=0.1",), ("local.lr=0.1", "seed=6"), ("local.lr=0.02", "local.epochs=2"))
    ]
    ds = gallery.load("accuracy-rounds").data(gallery.AnyOf(runs))
    assert ds.attrs["runs"] == f"{runs[0].name}, {runs[1].name}"
    assert "differing in local.lr, local.epochs" in ds.attrs["left_out"]
    ds = gallery.load("accuracy-rounds").data(runs)
    assert ds.algorithm.values.tolist() == ["fedavg, lr 0.02, epochs 2", "fedavg, lr 0.1, epochs 1"]


def test_settings_of_over_are_a_text_or_a_list_and_one_that_no_run_has_is_refused(tmp_path, fedscape):
    runs = [tiny.trained(tmp_path, f"local.lr={rate}") for rate in (0.1, 0.02)]
    for name in ("accuracy-table", "accuracy-curves", "accuracy-panels", "rounds-target", "accuracy-after"):
        figure = gallery.load(name)
        more = {"rounds-target": {"target": 0.1}, "accuracy-after": {"after": [1]}}
        text, listed, two = (
            figure.data(runs, over=over, **more.get(name, {}))
            for over in ("local.lr", ["local.lr"], "local.lr, local.epochs")
        )
        assert text.drop_attrs().identical(listed.drop_attrs()), name
        assert list(text.sizes.values()) == list(two.sizes.values()), name
        if name != "accuracy-curves":
            with pytest.raises(LookupError, match=r"named 'local\.lrr'\. Did you mean 'local\.lr'"):
                figure.data(runs, over="local.lrr", **more.get(name, {}))
    with pytest.raises(ValueError, match=r"and differ in local\.lr; name it in over, as in --set over=local\.lr"):
        gallery.load("accuracy-table").data(runs)
    code, _, err = fedscape("figures", "draw", "accuracy-table", tmp_path, "--set", "over=local.lr", "last=1")
    assert code == 0, err


def test_a_rule_of_a_paper_leaves_out_no_strategy_of_the_user(tmp_path, monkeypatch):
    """Coherence of a folder is of FedAvg and FedLAW (GWS) if both are there; the user's own are always drawn."""
    base, adam = (tiny.trained(tmp_path, f"method={name}") for name in ("fedavg", "fedadam"))
    figure = gallery.load("coherence-rounds")
    assert set(figure.data(gallery.AnyOf([base, adam])).algorithm.values) == {"fedavg", "fedadam"}
    law = tiny.trained(tmp_path, "method=fedlaw", "method.variant=gws", "method.server_epochs=1")
    ds = figure.data(gallery.AnyOf([base, adam, law]))
    assert set(ds.algorithm.values) == {"fedavg", "fedlaw-gws"} and adam.name in ds.attrs["left_out"]
    file = tmp_path / "mine.py"
    file.write_text("from drift.methods.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    monkeypatch.setenv("FEDSCAPE_TRUST", f"{file}:Mine")
    own = tiny.trained(tmp_path, f"method={file}:Mine")
    ds = figure.data(gallery.AnyOf([base, adam, law, own]))
    assert own.label in ds.algorithm.values and own.name not in ds.attrs["left_out"]
    others = [
        tiny.trained(tmp_path, f"method={name}", "clients.partition=iid") for name in ("fedavg", "fedadam", "fedprox")
    ]
    ds = gallery.load("accuracy-rounds").data(gallery.AnyOf([*others, base, own]))
    assert set(ds.algorithm.values) == {"fedavg", own.label}  # of two settings, that with the user's own


def test_links_to_one_folder_are_told_apart_as_they_are_named(tmp_path):
    (tmp_path / "monday").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "monday")
    assert told_apart(["x", "x"], [tmp_path / "monday", tmp_path / "link"]) == ["x, monday", "x, link"]
    assert told_apart(["x", "x"], [tmp_path / "monday"] * 2) == ["x", "x"]
