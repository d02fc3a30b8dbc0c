"""Sentences, marks and bold names of named figures, against numbers that are counted here from the same data."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from gallery_runs import panels, titles
from matplotlib.collections import PathCollection

from figures.axes import curves
from figures.gallery import (
    _stack,
    barriers_clients,
    clients_round,
    error_averaged,
    gap_scaling,
    heterogeneity_rounds,
    labels_partition,
    labels_scatter,
    layers_drift,
    ntk_clients,
    numbers_rounds,
)
from figures.looks import look, style


@pytest.mark.parametrize("most", [7, 1_234_567])
def test_the_largest_bubble_is_the_stated_number_of_samples(most):
    counts = np.array([[3, 0, 1], [2, most, 0], [0, 5, 4], [1, 1, 1]])
    coords = {"client": range(4), "class": ["a", "b", "c"], "round": [0, 1]}
    whole = xr.Dataset({"count": (("client", "class"), counts)}, coords, {"partition": "two shards"})
    mixed = counts.reshape(2, 2, 3).sum(1)
    whole["cohort_share"] = (("round", "class"), mixed / mixed.sum(1, keepdims=True), {"long_name": "share"})
    drawn = {"labels-partition": labels_partition.draw(whole).axes[0]}
    other = xr.Dataset({"count": (("panel", "round", "place", "class"), np.full((2, 2, 2, 3), np.nan))})
    other = other.assign_coords(panel=["even", "skewed"], round=[0, 1], **{"class": coords["class"]})
    other["count"][0], other["count"][1] = 2.0, counts.reshape(2, 2, 3)
    for name in ("within_divergence", "between_divergence"):
        other[name] = (("panel", "round"), np.ones((2, 2)))
    even, _, skewed, *_ = labels_scatter.draw(other).axes
    assert even.get_title() == "even; largest bubble: 2 samples"
    drawn["labels-scatter"] = skewed
    for name, ax in drawn.items():
        (stated,) = re.findall(r"largest bubble: ([\d,]+) samples", ax.get_title())
        assert int(stated.replace(",", "")) == most, name
        (dots,) = [part for part in ax.collections if isinstance(part, PathCollection)]
        areas = dots.get_sizes() / dots.get_sizes().max()
        np.testing.assert_allclose(np.sort(areas), np.sort(counts[counts > 0]) / most, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("change", "panel", "told"),
    [
        ({}, None, set()),
        ({"change_variance": (1, None, np.nan), "gain": (1, None, np.nan)}, "change_variance", {"before not kept"}),
        ({"mean_cosine": (2, None, np.nan)}, "mean_cosine", {"one client"}),
        ({"client_variance": (None, 1, 0.0)}, "client_variance", {"0"}),
        (dict.fromkeys(("client_variance", "gain"), (0, None, np.nan)), "client_variance", {"no client's model"}),
    ],
)
def test_grey_cells_of_layers_state_why_they_are_grey(change, panel, told):
    rng = np.random.default_rng(0)
    coords = {"round": [3, 4, 9], "layer": ["a.weight", "a.bias"]}
    names = ("client_variance", "change_variance", "gain", "mean_cosine")
    ds = xr.Dataset({name: (("round", "layer"), rng.uniform(0.1, 0.9, (3, 2))) for name in names}, coords)
    for name, (row, column, value) in change.items():
        ds[name][slice(row, None if row is None else row + 1), slice(column, None)] = value
    figure = layers_drift.draw(ds)
    for name, ax in zip(names, panels(figure), strict=True):
        notes = " ".join(text.get_text().replace("\n", " ") for text in ax.texts)
        (mesh,) = ax.collections
        shades = mesh.to_rgba(mesh.get_array())
        grey = bool((np.asarray(shades)[..., 3] == 0).any()) or bool(np.ma.getmaskarray(mesh.get_array()).any())
        assert notes.startswith("grey: ") == grey, name
        if name == panel:
            assert all(part in notes for part in told), notes


def test_dots_on_the_line_of_both_equal_have_equal_numbers():
    rng = np.random.default_rng(0)
    diagonal = 2.0
    variance = rng.uniform(0.2, 1.5, (2, 5))
    expression = variance * np.array([1, 1.3, 0.5, 1, 2])
    values = {"variance": variance, "expression": expression, "mmd2": variance**2, "off_diagonal": variance}
    ds = xr.Dataset(
        {name: (("round", "client"), table) for name, table in values.items()} | {"diagonal": ((), diagonal)},
        {"round": [1, 4], "client": range(5)},
        {"label": "fedavg"},
    )
    figure = ntk_clients.draw(ds)
    ax = panels(figure)[1]
    (line,) = [line for line in ax.lines if line.get_label() == "both equal"]
    ends = line.get_xydata()
    assert (ends[:, 0] == ends[:, 1]).all() and ends[0, 0] < ends[1, 0]
    places = np.concatenate([part.get_offsets() for part in ax.collections])
    np.testing.assert_allclose(np.sort(places[:, 0]), np.sort(variance.ravel()) / diagonal)
    on_line = np.isclose(places[:, 0], places[:, 1])
    assert on_line.sum() == np.isclose(variance, expression).sum() == 4
    assert ends[0, 0] <= places[on_line, 0].min() and places[on_line, 0].max() <= ends[1, 0]
    assert "one dot per client" in titles(figure) and len(places) == variance.size


def test_the_line_of_slope_2_has_slope_2_and_slopes_are_of_the_drawn_gaps():
    scale = np.array([0.125, 0.25, 0.5, 1.0])
    gaps = np.stack([0.3 * scale**2, 0.2 * scale**1.7])[None, None]
    slopes = np.polyfit(np.log(scale), np.log(gaps[0, 0].T), 1)[0]
    dims = ("algorithm", "seed", "round")
    ds = xr.Dataset(
        {"gap": ((*dims, "scale"), gaps), "slope": (dims, slopes[None, None], {"long_name": "slope"})},
        {"algorithm": ["fedavg"], "seed": [3], "round": [2, 7], "scale": scale},
    )
    figure = gap_scaling.draw(ds)
    against, over = panels(figure)
    (dashed,) = [line for line in against.lines if line.get_linestyle() == "--"]
    x, y = np.log(dashed.get_xydata().astype(float)).T
    np.testing.assert_allclose(np.polyfit(x, y, 1)[0], 2, rtol=1e-9)
    assert np.exp(y.max()) == pytest.approx(gaps.max())
    (level,) = [line for line in over.lines if str(line.get_label()).startswith("slope 2")]
    assert set(level.get_ydata()) == {2} and level.get_linestyle() == dashed.get_linestyle()
    assert level.get_color() == dashed.get_color()
    (drawn,) = [line for line in over.lines if line.get_label() == "FedAvg"]
    np.testing.assert_allclose(drawn.get_ydata(), [2, 1.7])


def test_names_of_selected_clients_alone_are_bold(kinds):
    run = kinds[0]
    ids = run.round(2).ids.tolist()
    for some in ([], [ids[1]], [ids[0], ids[2]]):
        figure = clients_round.draw(clients_round.data([run], round=2, clients=some or None, losses=False))
        notes = {int(note.get_text()): note.get_fontweight() for note in figure.axes[0].texts}
        assert sorted(notes) == sorted(ids)
        assert sorted(client for client, weight in notes.items() if weight == "bold") == sorted(some)
        picked = [part for part in figure.axes[0].collections if len(part.get_facecolors())]
        assert sum(len(part.get_offsets()) for part in picked) == len(some)


def test_clients_outside_the_round_are_not_selected_without_a_word(kinds):
    run = kinds[0]
    absent = next(client for client in range(5) if client not in run.round(2).ids.tolist())
    with pytest.raises(LookupError, match=rf"client {absent} .*round 2.*clients"):
        clients_round.data([run], round=2, clients=[absent], losses=False)


@pytest.mark.parametrize(("seeds", "draws"), [(1, 4), (3, 4), (1, 1), (6, 2)])
def test_the_band_of_averaged_errors_is_the_deviation_that_the_title_names(seeds, draws):
    rng = np.random.default_rng(0)
    error = rng.uniform(0.1, 0.5, (1, seeds, 1, 3, draws))
    dims = ("algorithm", "seed", "round", "models", "draw")
    about = {"long_name": "test error", "units": "fraction"}
    coords = {"algorithm": ["fedavg"], "seed": range(seeds), "round": [4], "models": [1, 2, 3], "draw": range(draws)}
    ds = xr.Dataset({"error": (dims, error, about)}, {**coords, "cka_round": [0, 4]})
    ds["cka"] = (("algorithm", "seed", "cka_round"), rng.random((1, seeds, 2)), {"long_name": "CKA"})
    figure = error_averaged.draw(ds)
    title = panels(figure)[0].get_title(loc="left")
    pooled = error[0, :, 0].transpose(1, 0, 2).reshape(3, -1)
    named = [name for name, count in (("draws", draws), ("seeds", seeds)) if count > 1]
    assert title == ("FedAvg" + (f"; band: std over {' and '.join(named)}" if named else ""))
    bands = list(panels(figure)[0].collections)
    assert len(bands) == bool(named)
    for band in bands:
        ends = np.unique(band.get_paths()[0].vertices[:, 1])
        wanted = np.concatenate([pooled.mean(1) - pooled.std(1, ddof=1), pooled.mean(1) + pooled.std(1, ddof=1)])
        np.testing.assert_allclose(ends, np.sort(wanted), rtol=1e-12)
    about = {1: "", 3: "CKA: thin lines: 3 seeds, thick: their mean", 6: "CKA: mean and 95 % t interval of 6 seeds"}
    assert figure.legends[0].get_title().get_text() == about[seeds]


def _group_runs(sizes, seeds):
    names = [name for name, count in sizes.items() for _ in range(count)]
    table = np.random.default_rng(0).random((len(names), 3))
    coords = {"run": range(len(names)), "group": ("run", names), "round": [0, 1, 2]}
    ds = xr.Dataset({"value": (("run", "round"), table, {"long_name": "loss", "units": "nats"})}, coords)
    return numbers_rounds._with_means(ds).assign_attrs(seeds=seeds, reference="", number="loss"), table


@pytest.mark.parametrize(("sizes", "stated"), [({"fedavg": 3, "ima": 1}, "3"), ({"fedavg": 5, "ima": 5}, "5")])
def test_numbers_over_rounds_name_their_seeds_and_draw_them(sizes, stated):
    ds, table = _group_runs(sizes, "lines")
    figure = numbers_rounds.draw(ds)
    assert f"thin lines: {stated} seeds" in titles(figure)
    thin = [line.get_ydata().tolist() for line in figure.axes[0].lines if line.get_linewidth() == 0.5]
    several = np.repeat([count > 1 for count in sizes.values()], list(sizes.values()))
    assert thin == table[several].tolist()
    figure = numbers_rounds.draw(ds.assign_attrs(seeds="interval"))
    assert f"mean and 95 % t interval of {stated} seeds" in titles(figure)
    assert not [line for line in figure.axes[0].lines if line.get_linewidth() == 0.5]


@pytest.mark.parametrize("reference", ["", "lss"])
def test_numbers_over_rounds_are_smoothed_as_other_curves_are(reference):
    ds, table = _group_runs({"fedavg": 3}, "lines")
    with look.drawing(look.read(smooth=3)) as part:
        figure = numbers_rounds.draw(ds.assign_attrs(reference=reference))
    part.require_taken("numbers-rounds")
    means = np.column_stack([table[:, :2].mean(1), table.mean(1), table[:, 1:].mean(1)])
    mean, *thin = (line.get_ydata() for line in figure.axes[0].lines[:4])
    np.testing.assert_allclose(thin, means)
    np.testing.assert_allclose(mean, means.mean(0))
    assert figure.axes[0].get_ylabel().startswith("loss")
    assert "moving mean of 3 rounds" in titles(figure)


def test_classes_under_weights_are_sorted_in_each_round_and_their_likeness_is_over_that_by_size():
    shares = np.array([[[[0.7, 0.1, 0.2], [0.2, 0.5, 0.3]]], [[[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]]])
    coords = {"algorithm": ["fedavg", "fedlaw"], "seed": [0], "round": [0, 1], "class": list("abc")}
    ds = xr.Dataset({"cohort_share": (list(coords), shares)}, coords)
    for name, values in (("overlap", [[[0.6, 0.8]], [[0.9, 0.7]]]), ("overlap_data", [[[0.6, 0.8]]] * 2)):
        ds[name] = (("algorithm", "seed", "round"), np.array(values))
    with style.context():
        left, right = heterogeneity_rounds.draw(ds).axes
    found = {line.get_label(): line.get_ydata() for line in left.lines}
    np.testing.assert_allclose(found["FedAvg"], [0.6, 0.25, 0.15])
    np.testing.assert_allclose(found["FedLAW"], [0.4, 0.3, 0.3])
    assert {line.get_label() for line in right.lines if not line.get_label().startswith("_")} == {"FedLAW"}
    np.testing.assert_allclose(right.lines[0].get_ydata(), [0.3, -0.1])
    assert right.get_title() == "mean: FedLAW +0.1"
    (note,) = heterogeneity_rounds.draw(ds.isel(algorithm=[0])).axes[1].texts
    assert "by their data size" in note.get_text().replace("\n", " ")


@pytest.mark.parametrize("value", [10.05, 20.5, 0.5, -0.25, 100.0, 0.004])
def test_numbers_in_cells_are_those_of_the_cells(value):
    heights = np.array([[0, value, 0.3], [value, 0, 0.2], [0.3, 0.2, 0]])
    np.fill_diagonal(heights, 0)
    names = ["client 1", "client 2", "global"]
    tables = dict.fromkeys(("barrier", "midpoint"), (("mark", "mark_other"), heights))
    ds = xr.Dataset(tables, {"mark": names, "mark_other": names}, {"label": "round 0"})
    figure = barriers_clients.draw(_stack.join_panels([(ds.attrs["label"], ds)]))
    places = {note.get_position(): note.get_text() for note in figure.axes[0].texts}
    assert float(places[0, 1]) == float(places[1, 0]) == pytest.approx(value, abs=0.005)
    assert float(places[2, 0]) == 0.3


def test_the_sentence_in_place_of_barriers_counts_the_pairs():
    names = [f"client {place}" for place in range(4)]
    heights = np.zeros((4, 4))
    for missing, pairs in ((False, 6), (True, 5)):
        if missing:
            heights[0, 1] = heights[1, 0] = np.nan
        tables = {"barrier": heights, "midpoint": heights - 0.5 * (1 - np.eye(4))}
        nats = {"units": "nats"}
        ds = xr.Dataset({name: (("mark", "mark_other"), table, nats) for name, table in tables.items()})
        ds = ds.assign_coords(mark=names, mark_other=names).assign_attrs(label="round 0")
        figure = barriers_clients.draw(_stack.join_panels([(ds.attrs["label"], ds)]))
        told = f"no loss barrier above 0.001 nats between any of {pairs} pairs; shown: what averaging two models gives"
        assert figure.get_supxlabel() == told


@pytest.mark.parametrize(("gap", "words"), [(np.inf, "gaps: a seed is infinite"), (np.nan, "some seeds lack a value")])
def test_numbers_over_rounds_say_their_gaps_as_curves_do(gap, words):
    values = np.array([[1.0, 0.5, 0.2], [1.1, gap, 0.3]])
    column = xr.DataArray(values, {"group": ("run", ["fedavg"] * 2), "round": range(3)}, ["run", "round"])
    attrs = {"number": "loss", "reference": "", "seeds": "lines"}
    found = titles(numbers_rounds.draw(numbers_rounds._with_means(xr.Dataset({"value": column}, attrs=attrs))))
    assert words in found and "thin lines: 2 seeds" in found
    seeds = xr.DataArray(values, {"seed": [0, 1], "round": range(3)}, ["seed", "round"])
    with look.drawing(look.read()) as part:
        curves.curve(xr.Dataset({"loss": seeds}), variable="loss")
    assert any(words in note for note in part.notes)
