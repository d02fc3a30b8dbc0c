"""The sentence with numbers of a picture, against numbers computed another way."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import curves
from figures.looks import look
from figures.texts.alt_text import alt_text
from figures.texts.finding import finding


def _planes(losses, names, labels=None):
    ds = xr.Dataset(
        {"mark_loss": (("panel", "mark"), losses, {"units": "nats"}), "at_mark": (("panel", "mark"), names)}
    )
    return ds if labels is None else ds.assign(is_label=("panel", labels))


def test_maps_say_how_far_the_mean_lies_below_the_best_of_its_models():
    losses = [[1.5, 0.9, 2.0, 0.65], [0.61, 0.6, 0.64, 0.625]]
    names = [["client 1", "client 2", "client 7", "mean"], ["round 7", "round 8", "round 9", "mean"]]
    text = finding(_planes(losses, names, ["clients of\nround 3", "last three\nglobals,\nown scale"]), None)
    assert text == (
        "Against the best of its models, the mean lies 0.25 nats below (clients of round 3) "
        "and 0.025 nats above (last three globals)"
    )


def test_many_maps_are_counted_and_weights_by_size_are_no_model():
    rng = np.random.default_rng(3)
    losses = rng.uniform(1, 2, (6, 5))
    names = [["a", "b", "c", "mean", "by size"]] * 6
    gaps = [row[3] - sorted(row[:3])[0] for row in losses.tolist()]
    below = [-gap for gap in gaps if gap < 0]
    text = finding(_planes(losses, names), None)
    assert below and len(below) < 6
    assert f"{min(below):.3g} to {max(below):.3g} nats below on {len(below)} of 6 planes" in text


def test_errors_are_in_points():
    names = ("mark", ["a", "b", "mean"])
    ds = xr.Dataset({"mark_error": ("mark", [0.4, 0.3, 0.25], {"units": "fraction"})}, coords={"mark": names})
    text = finding(ds.assign_attrs(variable="error"), None)
    assert text == "Against the best of its models, the mean lies 5 points below"


def test_barriers_count_each_pair_once():
    matrix = np.array([[0.0, 0.1, 0.4], [0.1, 0.0, 0.7], [0.4, 0.7, 0.0]])
    ds = xr.Dataset({"barrier": (("mark", "mark_other"), matrix, {"units": "nats"})})
    assert finding(ds, None) == "Mean barrier: straight line 0.4 nats (largest 0.7)"
    two = xr.Dataset(
        {name: ("panel", values) for name, values in (("barrier", [0.6, 0.2]), ("aligned_barrier", [0.0, 0.0]))}
    )
    two.barrier.attrs["units"] = "nats"
    assert finding(two, None) == "Mean barrier: straight line 0.4 nats (largest 0.6), after alignment none"


def test_without_a_barrier_the_depth_between_models_is_stated():
    zeros, nats = np.zeros((3, 3)), {"units": "nats"}
    middle = np.array([[0.0, -0.1, -0.4], [-0.1, 0.0, -0.7], [-0.4, -0.7, 0.0]])
    dims = ("mark", "mark_other")
    ds = xr.Dataset({"barrier": (dims, zeros, nats), "midpoint": (dims, middle, nats)})
    assert finding(ds, None) == "No barrier; the mean of two models lies 0.1 to 0.7 nats below the mean of their losses"
    paths = {"loss": [[0.9, 0.4, 0.8]], "straight_loss": [[0.9, 0.6, 0.8]]}
    ds = xr.Dataset({name: (("round", "t"), values) for name, values in paths.items()})
    ds = ds.assign(barrier=("round", [0.0], nats), straight_barrier=("round", [0.0], nats))
    wanted = "No barrier between the models; the loss falls to 0.4 nats on the curve and 0.6 nats on the straight line"
    assert finding(ds, None) == wanted


def test_lines_between_models_are_compared_with_both_ends():
    t = np.linspace(-0.5, 1.5, 9)
    loss = np.stack([(t - 0.5) ** 2 + 1, t + 2.0, np.full(9, np.nan)])
    ds = xr.Dataset({"loss": (("round", "t"), loss)}, coords={"t": t})
    assert finding(ds, None) == (
        "A point between the two models is lower than both on 1 of 2 lines, by up to 0.25 nats; from the first to the "
        "second the loss changes by +0 to +1 nats"
    )


def test_pairs_of_clients_are_counted_once():
    cosine = np.array([[1, 0.5, -0.2], [0.5, 1, -0.6], [-0.2, -0.6, 1]])
    text = finding(xr.Dataset({"cosine": (("client", "client_other"), cosine)}), None)
    assert text == "The updates of 1 of 3 pairs of clients have a positive cosine; mean -0.1"


@pytest.fixture
def panel():
    ax = Figure().subplots()
    ax.set(xlabel="round", ylabel="test accuracy")
    return ax


def test_curves_say_which_ends_highest_by_the_mean_of_what_is_drawn(panel):
    first, second = np.linspace(0, 1, 40), np.r_[np.full(39, 0.5), 5.0]
    panel.plot(first, label="IMA")
    panel.plot(second, label="FedAvg")
    panel.plot(np.full(40, 9.0), label="_level")
    panel.plot(np.full(40, 9.0), "o", label="points")
    high, low = sum(second[30:]) / 10, sum(first[30:]) / 10
    wanted = f"highest FedAvg, {high:.3g}; lowest IMA, {low:.3g}"
    assert finding(xr.Dataset(), panel.figure) == f"test accuracy at round 39 (mean of the last 10): {wanted}"


def test_a_single_curve_says_where_it_starts_and_equal_ones_their_value(panel):
    panel.plot([1, 2, 4], [0.2, np.nan, 0.3], label="IMA")
    assert finding(xr.Dataset(), panel.figure) == "", "two points are no curve"
    panel.plot([1, 2, 4], [0.2, 0.1, 0.3], label="IMA")
    assert finding(xr.Dataset(), panel.figure) == "test accuracy at round 4: 0.3, from 0.2"
    panel.plot([1, 2, 4], [0.5, 0.1, 0.3], label="FedAvg")
    assert finding(xr.Dataset(), panel.figure) == "test accuracy at round 4: 0.3"


def test_settings_are_compared_where_they_differ_most(panel):
    panel.set_xlabel("local epochs")
    panel.plot([1, 2, 4], [0.2, 0.1, 0.3], label="IMA")
    panel.plot([1, 2, 4], [0.2, 0.5, 0.3], label="FedAvg")
    assert (
        finding(xr.Dataset(), panel.figure) == "test accuracy at local epochs 2: highest FedAvg, 0.5; lowest IMA, 0.1"
    )


def test_a_lone_line_needs_no_name_and_places_are_those_of_the_labels(panel):
    panel.set_xlabel("local epochs")
    panel.plot([0.2, 0.1, 0.3])
    panel.axhline(0)
    panel.set_xticks([0, 1, 2], ["1", "2", "5"])
    assert finding(xr.Dataset(), panel.figure) == "test accuracy at local epochs 5: 0.3, from 0.2"
    panel.plot([0.4, 0.4, 0.4])
    assert finding(xr.Dataset(), panel.figure) == "", "which of two lines without names?"


def test_a_map_of_models_states_its_basins_and_the_loss_of_the_mean_to_take():
    coords = {"candidate": ["basin", "pruned basin", "round 9"], "basin": [1, 2], "basin_other": [1, 2]}
    ds = xr.Dataset(
        {
            "mark_chosen": ("mark", [1.0, np.nan, 0.0, 1.0]),
            "judged_loss": ("candidate", [0.75, 0.5, 0.625]),
            "basin_barrier": (("basin", "basin_other"), [[0.0, 0.5], [0.5, 0.0]]),
        },
        coords,
        {"chosen": "pruned basin"},
    )
    mean = "the mean of 2 models has a loss of 0.500, round 9 one of 0.625"
    assert finding(ds, None) == f"2 basins, with barriers up to 0.5 nats; {mean}"
    assert finding(ds.isel(basin=[0], basin_other=[0]), None) == mean


def test_critical_points_gains_and_paths_are_stated_with_what_they_are_measured_for():
    points = xr.Dataset(
        {"critical_point": (("algorithm", "seed"), [[4.0, 6.0], [np.nan, np.nan], [2.0, np.nan]])},
        {"algorithm": ["fedavg", "ima", "lss"], "seed": [0, 1]},
    )
    text = "Critical point, where the coherence turns negative, at round: FedAvg 5, LSS 2"
    assert finding(points, None) == text
    assert finding(points.isel(algorithm=[1]), None) == ""
    gains = (("concentration", "sample"), [[0.9, 0.7, np.nan], [0.2, 0.1, 0.3]])
    ds = xr.Dataset({"gain": gains}, {"concentration": [0.1, 1.0]})
    assert finding(ds, None) == "Median gain by concentration: 0.80 at 0.1, 0.20 at 1"
    shares = {"explained_alpha": 0.7, "explained_beta": 0.2}
    ds = xr.Dataset({"distance": ("mark", [0.1, 0.375])}, attrs=shares)
    assert finding(ds, None) == "The plane holds 90 % of the variance; models lie up to 0.38 off it"


def test_every_panel_is_named_with_its_own_ends():
    figure = Figure()
    (first, second), low = figure.subplots(2, 2)
    for ax, height in ((first, 0.5), (second, 4.0), (low[0], 1500.0)):
        ax.plot([0, 1, 2], [0.0, 0.1, height], label="within balanced")
        ax.plot([0, 1, 2], [0.0, 0.1, 0.25], label="between")
    first.set(title="FedAvg", ylabel="cosine")
    second.set(title="FedLAW")  # it shares the label of its row, and that of the column below is its own
    low[0].set(xlabel="round", ylabel="length")
    low[1].set(xlabel="round")
    assert finding(xr.Dataset(), figure).split(". ") == [
        "FedAvg, cosine at round 2: highest within balanced, 0.5; lowest between, 0.25",
        "FedLAW, cosine: highest within balanced, 4; lowest between, 0.25",
        "Length at round 2: highest within balanced, 1500; lowest between, 0.25",
    ]
    text = alt_text("Cosines.", figure)
    assert "Panel 3: lines over round from 0 to 2 and length from 0 to 1500" in text and ".." not in text
    for _ in range(9):
        low[1].plot([0, 1, 2], [0.0, 0.1, 1.0], label="a method with a long name " * 5)
    assert len(alt_text("Cosines.", figure)) < 400


def test_a_moving_mean_is_called_so_and_not_averaged_again(panel):
    rounds = np.arange(40)
    with look.drawing(look.read(smooth=9)):
        for name, height in (("IMA", 0.3), ("FedAvg", 0.2)):
            values = xr.DataArray(np.linspace(0, height, 40), {"round": rounds}, name="accuracy")
            curves.line_with_band(values, ax=panel, over="round", label=name)
    ends = {line.get_label(): line.get_ydata()[-1] for line in panel.lines}
    wanted = f"highest IMA, {ends['IMA']:.3g}; lowest FedAvg, {ends['FedAvg']:.3g}"
    assert finding(xr.Dataset(), panel.figure) == f"test accuracy at round 39 (moving mean of 9 rounds): {wanted}"


def test_of_maps_and_bars_no_number_is_stated_that_is_not_drawn(panel):
    panel.bar([0, 1], [1, 2])
    ds = xr.Dataset({"loss": ("layer", [1.0, 2.0], {"long_name": "loss"})}, {"layer": ["head", "body"]})
    assert finding(ds, panel.figure) == ""
    assert finding(xr.Dataset({"accuracy": ("row", [0.2, 0.3])}), panel.figure) == "", "the table has the numbers"


def test_maps_without_names_are_counted_and_a_map_of_another_number_has_no_loss():
    losses, names = [[1.0, 2.0, 0.5], [1.0, 2.0, 0.25]], [["a", "b", "mean"]] * 2
    assert "0.5 to 0.75 nats below on 2 of 2 planes" in finding(_planes(losses, names), None)
    assert finding(_planes(losses, names).assign_attrs(variable="class_error"), None) == ""


def test_nothing_is_said_of_other_pictures(panel):
    panel.bar([0, 1], [1, 2])
    assert finding(xr.Dataset({"loss": ("round", [1.0])}), panel.figure) == ""


def test_planes_with_one_minimum_are_counted_on_the_finest_grid():
    minima = [[1.0, 3.0], [2.0, 1.0], [1.0, 1.0], [np.nan, 1.0]]
    ds = xr.Dataset({"minima": (("round", "value"), minima)}, {"value": [1, 4]})
    assert finding(ds, None) == "One minimum on 2 of 3 planes"
