from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import class_labels, drifts
from figures.looks import style


def _ax():
    return Figure().subplots()


def _coherence(critical: list[float]) -> xr.Dataset:
    values = np.array([[0.3, 0.1, -0.1, -0.2]] * 2)
    return xr.Dataset(
        {
            "coherence": (("algorithm", "round"), values),
            "coherence_smooth": (("algorithm", "round"), values / 2),
            "critical_point": ("algorithm", critical),
            "critical_low": ("algorithm", [value - 1 for value in critical]),
            "critical_high": ("algorithm", [value + 1 for value in critical]),
        },
        coords={"algorithm": ["fedavg", "fedlaw-gws"], "round": [0, 1, 2, 3]},
    )


def test_coherence_marks_the_critical_point_of_a_method_that_has_one():
    ax = drifts.coherence(_coherence([2.0, np.nan]), ax=_ax())
    (line,) = [line for line in ax.lines if line.get_label() == "critical point, 95 % bootstrap interval"]
    assert set(line.get_xdata()) == {2}
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert [(line.get_xdata()[0], line.get_color()) for line in dotted] == [(2, style.colour("fedavg"))]
    (band,) = ax.patches
    assert (band.get_x(), band.get_width()) == (1, 2)
    (name,) = ax.texts
    assert (name.get_text().strip(), name.get_position()[0]) == ("FedAvg", 2)
    assert ax.get_title() == "no clear critical point: FedLAW (GWS)", "above the panel, where no line runs"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.15, 0.05, -0.05, -0.1])


def test_coherence_of_one_run_without_a_critical_point_says_so():
    ds = _coherence([2.0, np.nan]).isel(algorithm=1, drop=True)
    ax = drifts.coherence(ds, ax=_ax())
    assert (ax.get_title(), len(ax.texts)) == ("no clear critical point", 0)
    assert not ax.patches


def test_seeds_without_a_critical_point_are_counted():
    seeds = [_coherence([2.0, np.nan]), _coherence([np.nan, np.nan])]
    ax = drifts.coherence(xr.concat(seeds, xr.IndexVariable("seed", [0, 1])), ax=_ax())
    (name,) = ax.texts
    assert name.get_text().strip() == "FedAvg"
    assert ax.get_title() == "no clear critical point: FedAvg (1 of 2 seeds), FedLAW (GWS) (2 of 2 seeds)"
    assert len(ax.patches) == 1


def test_variances_are_solid_for_clients_and_dashed_for_the_period():
    values = {
        name: ("round", np.array([1e-4, 2e-4, 3e-4]) * scale)
        for name, scale in {"client_variance": 1, "change_variance": 5}.items()
    }
    ax = drifts.variances(xr.Dataset(values, coords={"round": [0, 1, 2]}), ax=_ax())
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]
    assert ax.lines[1].get_ydata()[0] == pytest.approx(5e-4)
    assert ax.get_yscale() == "log"


def _gains(epochs: list[int]) -> xr.Dataset:
    values = np.arange(3 * len(epochs) * 5, dtype=float).reshape(3, len(epochs), 5) / 100
    values[0, 0, 3:] = np.nan
    return xr.Dataset(
        {"gain": (("concentration", "epochs", "sample"), values)},
        coords={"concentration": [0.1, 1, 10], "epochs": epochs},
    )


def test_gains_have_one_box_a_concentration_and_epochs():
    ax = drifts.kalman_gains(_gains([1, 5]), ax=_ax())
    assert len(ax.patches) == 6
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["Dir(0.1)", "Dir(1)", "Dir(10)"]
    assert ax.get_legend_handles_labels()[1] == ["1 epoch", "5 epochs"]


def test_boxes_stand_around_the_tick_of_their_partition_where_epochs_are_absent():
    ds = _gains([1, 3, 5])
    ds.gain[1, 1:] = ds.gain[2, 0] = np.nan
    ax = drifts.kalman_gains(ds, ax=_ax())
    medians = [line for line in ax.lines if line.get_linewidth() == 1.2 and np.isfinite(line.get_ydata()).all()]
    middles = sorted(float(np.mean(line.get_xdata())) for line in medians)
    width = 0.8 / 3
    np.testing.assert_allclose(middles, [-width, 0, width, 1, 2 - width / 2, 2 + width / 2], atol=1e-12)


def test_the_median_of_a_box_leaves_missing_rounds_out():
    ax = drifts.kalman_gains(_gains([3]), ax=_ax())
    medians = [line.get_ydata()[0] for line in ax.lines if line.get_linewidth() == 1.2]
    np.testing.assert_allclose(medians, [0.01, 0.07, 0.12])


def test_averaged_has_a_line_a_round_over_the_number_of_models():
    error = np.random.default_rng(0).uniform(size=(2, 4, 3))
    error[:, 3, 1:] = np.nan
    ds = xr.Dataset(
        {"error": (("round", "models", "draw"), error, {"long_name": "error", "units": "fraction"})},
        coords={"round": [0, 8], "models": [1, 2, 3, 4]},
    )
    ax = drifts.averaged(ds, ax=_ax())
    assert [line.get_label() for line in ax.lines] == ["round 0", "round 8"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.nanmean(error[0], axis=-1))


def _partition() -> xr.Dataset:
    count = np.array([[7, 0, 0], [0, 2, 0], [1, 1, 1], [0, 0, 9], [3, 0, 0]])
    return xr.Dataset(
        {"count": (("client", "class"), count), "cohort_share": (("round", "class"), [[0.5, 0.25, 0.25], [1, 0, 0]])},
        coords={"client": range(5), "class": ["cat", "dog", "owl"], "round": [0, 1]},
    )


def test_bubbles_lie_at_clients_and_classes_with_area_by_samples():
    ax = class_labels.bubbles(_partition(), ax=_ax(), largest=90)
    (cloud,) = ax.collections
    assert [tuple(place) for place in cloud.get_offsets()] == [(0, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 2), (4, 0)]
    np.testing.assert_allclose(cloud.get_sizes(), [70, 20, 10, 10, 10, 90, 30])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["cat", "dog", "owl"]


def test_mixture_stacks_to_one():
    ax = class_labels.class_bars(_partition(), ax=_ax())
    tops = {}
    for bar in ax.patches:
        middle = round(bar.get_x() + bar.get_width() / 2)
        tops[middle] = max(tops.get(middle, 0), bar.get_y() + bar.get_height())
    assert tops == {0: 1, 1: 1}


def test_parts_of_a_few_bars_are_named_where_there_is_room():
    ds = _partition()
    named = {(text.get_text(), *text.get_position()) for text in class_labels.class_bars(ds, ax=_ax()).texts}
    assert named == {("cat", 0, 0.25), ("dog", 0, 0.625), ("owl", 0, 0.875), ("cat", 1, 0.5)}
    long = class_labels.class_bars(ds.assign_coords({"class": ["cat", "dog", "ostrich"]}), ax=_ax())
    assert [text.get_text() for text in long.texts] == ["0", "0", "1", "2"]
    assert long.get_legend_handles_labels()[1] == ["0 cat", "1 dog", "2 ostrich"]
    many = ds.isel(round=[0] * 13).assign_coords(round=range(13))
    assert not class_labels.class_bars(many, ax=_ax()).texts
    ds["cohort_share"][0] = [0.86, 0.09, 0.05]
    assert [text.get_text() for text in class_labels.class_bars(ds.isel(round=[0]), ax=_ax()).texts] == ["cat"]


@pytest.mark.parametrize("count", [3, 10, 27])
def test_classes_have_different_colours(count):
    assert len({str(colour) for colour in class_labels.shade(count)}) == count


def _groups() -> xr.Dataset:
    values = np.array([[0.3, 0.2, np.nan], [0.1, 0.0, -0.1], [0.2, np.nan, -0.2], [0.1, 0.1, 0.1]])
    return xr.Dataset(
        {
            "group_cosine": (("round", "pair"), values),
            "group_cosine_smooth": (("round", "pair"), values / 2),
            "evenness": ("client", [0.9, 0.2, np.nan, 0.5, 1.0]),
            "balanced": ("client", [1, 0, np.nan, 0, 1]),
        },
        coords={"round": [0, 1, 2, 3], "pair": ["even-even", "even-odd", "odd-odd"], "client": range(5)},
    )


def test_groups_have_a_line_within_each_and_one_between():
    ax = drifts.group_cosines(_groups(), ax=_ax())
    named = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in named] == ["within even", "even to odd", "within odd"]
    np.testing.assert_allclose(named[1].get_xydata(), [[0, 0.1], [1, 0], [3, 0.05]])
    assert len({str(line.get_color()) for line in named}) == 3
    assert [line.is_dashed() for line in named] == [False, True, True]


def test_evenness_is_sorted_and_leaves_out_clients_without_samples():
    ax = drifts.evenness(_groups(), ax=_ax())
    balanced, imbalanced = ax.collections
    np.testing.assert_allclose(balanced.get_offsets(), [[2, 0.9], [3, 1.0]])
    np.testing.assert_allclose(imbalanced.get_offsets(), [[0, 0.2], [1, 0.5]])


def test_bubbles_name_a_part_of_many_classes_each_at_its_place():
    names = [f"class {number}" for number in range(100)]
    counts = xr.Dataset(
        {"count": (("client", "class"), np.ones((3, 100), int))}, coords={"client": range(3), "class": names}
    )
    ax = class_labels.bubbles(counts)
    labels = {label.get_text(): place for label, place in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    assert 20 < len(labels) <= class_labels.LABELS
    assert all(names[int(place)] == name for name, place in labels.items())
