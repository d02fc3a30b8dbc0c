"""The figure of causes: a panel for each cause that a run has, from 0."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from figures import gallery
from figures.gallery import update_causes
from figures.looks import look
from figures.selection import substance

KEEP = ("keep.clients=all", "rounds=4")


@pytest.mark.parametrize(
    ("settings", "causes"),
    [
        (("clients.late=2", "clients.work=[0.2,0.8]", "local.epochs=3"), {"unequal steps", "old models"}),
        (("clients.stops=0.5",), {"clients that stop"}),
    ],
)
def test_there_is_a_bar_for_each_cause_that_a_run_has_the_largest_first(settings, causes, tmp_path):
    runs = [tiny.trained(tmp_path, *KEEP, *settings, f"method={method}") for method in ("fedavg", "fedbuff")]
    (ax,) = (figure := update_causes.draw(update_causes.data(runs))).axes
    shown = [tick.get_text() for tick in ax.get_yticklabels()]
    assert set(shown) == causes
    words = {words: name for name, words in update_causes.WORDS.items()}
    changes = [100 * run.cached(update_causes.update_causes).relative for run in runs]
    table = np.array([[values.sel(cause=words[one]) for one in shown] for values in changes])
    drawn = [[bar.get_width() for bar in bars] for bars in ax.containers]
    np.testing.assert_allclose(drawn, table.mean(2))
    dots = [np.asarray(part.get_offsets())[:, 0].reshape(4, -1).T for part in ax.collections]
    np.testing.assert_allclose(dots, table)
    means = table.mean((0, 2))
    assert list(means) == sorted(means, reverse=True)
    assert f"largest change: {shown[0]}, {means[0]:.0f} %" in figure.legends[0].get_title().get_text()


def test_bars_of_differences_say_so(tmp_path):
    methods = ("fedavg", "fedbuff")
    runs = [tiny.trained(tmp_path, *KEEP, "clients.stops=0.5", f"method={method}") for method in methods]
    with look.drawing(look.Look(paired_to="fedavg")):
        (ax,) = update_causes.draw(update_causes.data(runs)).axes
    assert ax.get_xlabel().endswith("minus that of FedAvg")


def test_five_rounds_of_a_long_run_are_evenly_spread(tmp_path):
    run = tiny.trained(tmp_path, "clients.stops=0.5", "rounds=13", "keep.clients=every 3, last 3")
    assert run.kept("clients") == [0, 3, 6, 9, 10, 11, 12]
    assert update_causes.data([run])["round"].values.tolist() == [0, 3, 6, 9, 12]


def test_equal_clients_are_refused(tmp_path):
    ds = update_causes.data([tiny.trained(tmp_path, *KEEP)])
    with pytest.raises(LookupError, match="no cause changes the mean: clients are equal; train with --set"):
        update_causes.draw(ds)
    with pytest.raises(LookupError, match="no known cause changes the mean; of this run these are not known: late"):
        update_causes.draw(ds.assign(late=ds.late * np.nan))


def test_causes_that_are_not_known_are_named(tmp_path):
    ds = gallery.load("update-causes").data([tiny.trained(tmp_path, *KEEP, "clients.stops=0.5")])
    assert "clients per round with clients that stop · " in ds.attrs["identity"]
    with look.drawing(look.Look()) as drawn:
        update_causes.draw(ds.assign(late=ds.late * np.nan))
    assert "not known in all rounds: late" in drawn.notes


def test_clients_without_a_finite_model_are_named_below_any_figure(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1", "task.model=mlp", "local.lr=300", "local.epochs=2", "keep.clients=all")
    excluded = run.round(0).extras["excluded"].tolist()
    figure = gallery.load("norms-rounds")
    ds = figure.data([run])
    note = f"left out, as their models are not finite: round 0 of {run.name}: client {', '.join(map(str, excluded))}"
    assert excluded and note in substance.remarks(figure.draw(ds), ds, needs=figure.NEEDS)
    sound = figure.data([tiny.trained(tmp_path, *KEEP)])
    assert "excluded" not in sound.attrs


def test_what_is_unequal_is_a_list_in_english(tmp_path):
    settings = (*KEEP, "clients.stops=0.5", "clients.late=2", "local.compress=8-bit")
    run = tiny.trained(tmp_path, *settings)
    ds = gallery.load("update-causes").data([run])
    words = "3 of 4 clients per round with old models, clients that stop and changed updates · "
    assert words in ds.attrs["identity"]


@pytest.mark.parametrize("name", ["update-causes", "noise-rounds", "drift-curvature"])
def test_a_run_that_did_not_move_is_refused_for_that(name, tmp_path):
    run, figure = tiny.trained(tmp_path, *KEEP, "local.lr=1e-30"), gallery.load(name)
    with pytest.raises(LookupError, match=f"the clients' models of {run.name} did not move; raise local.lr"):
        figure.draw(figure.data([run]))
