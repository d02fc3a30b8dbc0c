from __future__ import annotations

import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from drift.config import method as methods
from figures.axes import method_looks
from figures.looks import style


def _figure() -> Figure:
    figure, axs = style.panels(1, 2)
    for ax in axs.flat:
        ax.plot([0, 1, 3], [1, 2, 5], label=style.label("ima"))
    style.key(figure, axs.flat, title="two lines")
    return figure


def test_known_methods_have_different_colours():
    colours = [style.colour(name) for name in style.METHODS]
    assert len(set(colours)) == len(colours)
    assert style.GLOBAL not in colours
    assert style.CLIENT not in colours


def _luminance(colour: str) -> float:
    """Relative luminance of the Web Content Accessibility Guidelines."""
    parts = np.array(to_rgb(colour))
    return float(np.where(parts > 0.04045, ((parts + 0.055) / 1.055) ** 2.4, parts / 12.92) @ [0.2126, 0.7152, 0.0722])


def test_lines_of_all_methods_stand_out_from_white_paper():
    pale = {name: style.colour(name) for name in methods.names() if 1.05 / (_luminance(style.colour(name)) + 0.05) < 3}
    assert not pale


def test_methods_of_the_four_papers_differ_in_grey_print():
    lightness = sorted(116 * _luminance(style.colour(name)) ** (1 / 3) - 16 for name in style.METHODS)
    assert min(np.diff(lightness)) > 6


@pytest.mark.parametrize("name", ["fedadam", "fedasam", "fedprox", "fedeve", "scaffold", "fednova", "fedyogi"])
def test_a_method_that_averages_another_one_is_told_from_it_and_from_ima_in_grey(name):
    both = f"{name}+ima"
    for other in (name, "ima"):
        assert style.dash(both) != style.dash(other) and style.marker(both) != style.marker(other)
        lightness = [116 * _luminance(style.colour(one)) ** (1 / 3) - 16 for one in (both, other)]
        assert abs(lightness[0] - lightness[1]) > 5
    assert 1.05 / (_luminance(style.colour(both)) + 0.05) > 3
    assert method_looks.line_look(both)["markerfacecolor"] == "white" and "marker" not in method_looks.line_look(name)
    assert style.colour(f"{both}, lr 0.1") != style.colour(f"{both}, lr 0.2")


@pytest.mark.parametrize(
    "names",
    [
        "fedavg fedprox fedasam fedfa fednova fedadam fedyogi fedgma",
        "fedavg fedprox feddyn feddf fedbe server_ft fedlaw shrink",
        "fedavg fedprox moon fedbn fedfomo fedrep fedbabu swa swad soups diwa lss",
        "fedavg fedavgm fedprox scaffold fedadam fedeve",
    ],
)
def test_methods_that_stand_in_one_table_of_a_paper_differ_in_colour(names):
    assert len({style.colour(name) for name in names.split()}) == len(names.split())


def test_labels_are_written_as_in_the_papers():
    assert [style.label(name) for name in ("fedavg", "ima", "fedlaw", "fedlaw-gws", "fedeve", "lss")] == [
        "FedAvg",
        "IMA",
        "FedLAW",
        "FedLAW (GWS)",
        "FedEve",
        "LSS",
    ]
    assert style.label("fedlaw-early_stopped") == "FedLAW (early stopped)"
    assert style.label("mine") == "mine"
    assert style.label("fedprox+ima") == "FedProx+IMA"
    assert style.label("fedlaw-gws+ima") == "FedLAW (GWS)+IMA"


def test_every_method_has_a_written_name():
    assert [name for name in methods.names() if style.label(name) == name] == []


def test_an_unknown_method_keeps_its_colour_in_another_process():
    code = "from figures.looks import style; print(style.colour('mine-x'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == style.colour("mine-x")


def test_order_puts_known_methods_first():
    assert style.order(["zz", "lss", "fedavg", "aa"]) == ["fedavg", "lss", "aa", "zz"]


def test_context_ends_with_its_block():
    before = mpl.rcParams["pdf.fonttype"], mpl.rcParams["font.size"]
    with style.context():
        assert mpl.rcParams["pdf.fonttype"] == 42
    assert (mpl.rcParams["pdf.fonttype"], mpl.rcParams["font.size"]) == before


def test_saved_files_are_the_same_bytes_and_carry_no_date(tmp_path):
    first = style.save(_figure(), tmp_path / "a" / "one")
    second = style.save(_figure(), tmp_path / "b" / "one")
    assert [path.name for path in first] == ["one.pdf", "one.png", "one.svg"]
    for a, b in zip(first, second, strict=True):
        content = a.read_bytes()
        assert content == b.read_bytes()
        assert b"Date" not in content
    assert b"/Subtype /Type3" not in first[0].read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["one.pdf", "one.png", "one.svg"]


def test_clip_paths_of_an_svg_are_numbered_whatever_the_last_bits_of_places(tmp_path):
    plain, named = [], []
    for place, nudge in enumerate((0, 1e-9)):
        figure = Figure(figsize=(4, 3))
        for left in (0.1, 0.6):
            figure.add_axes((left + nudge, 0.1, 0.3, 0.8)).plot([0, 1], [1, 2])
        with style.context():
            figure.savefig(tmp_path / "plain.svg", metadata={"Date": None})
        plain.append((tmp_path / "plain.svg").read_text())
        named.append(style.save(figure, tmp_path / f"{place}", ["svg"])[0].read_text())
    first, second = (re.findall(r'<clipPath id="(.*?)"', text) for text in plain)
    assert first != second, "matplotlib's own names no longer depend on the last bits"
    for text in named:
        assert re.findall(r'<clipPath id="(.*?)"', text) == ["p0", "p1"]
        assert set(re.findall(r"url\(#(.*?)\)", text)) == {"p0", "p1"}
    assert named[0].count("url(#p0)") == named[1].count("url(#p0)") == plain[0].count(f"url(#{first[0]})")


def test_places_of_axes_are_round_and_stay_in_the_layout():
    """The solver's last bits vary between processes, and an SVG may show them in its last decimal."""
    figure, axs = style.panels(1, 3, width_ratios=(1, 1, 0.7))
    for label in ("y", "a label of two lines\nthat takes room"):
        axs[0, 0].set_ylabel(label)
        figure.draw_without_rendering()
        places = np.array([ax.get_position().get_points() for ax in axs[0]])
        np.testing.assert_array_equal(places, np.round(places, 9))
        lefts = [ax.get_tightbbox().x0 for ax in axs[0]]
        assert 0 < lefts[0] < 10 and all(ax.get_in_layout() for ax in axs[0])


def test_all_formats_have_the_panels_of_the_first_and_the_figure_keeps_its_layout(tmp_path, monkeypatch):
    figure = _figure()
    engine, execute, places = figure.get_layout_engine(), ConstrainedLayoutEngine.execute, []

    def counted(self: ConstrainedLayoutEngine, fig: Figure) -> None:
        execute(self, fig)
        places.append([ax.get_position().bounds for ax in fig.axes])

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", counted)
    style.save(figure, tmp_path / "once")
    assert len(places) == 1
    np.testing.assert_allclose([ax.get_position().bounds for ax in figure.axes], places[0], atol=1e-8)
    assert figure.get_layout_engine() is engine
    plain = Figure()
    style.save(plain, tmp_path / "none", ("png",))
    assert plain.get_layout_engine() is None


def test_a_figure_that_cannot_be_saved_keeps_its_layout(tmp_path):
    figure = _figure()
    engine = figure.get_layout_engine()
    (tmp_path / "one.png").mkdir()
    with pytest.raises(IsADirectoryError):
        style.save(figure, tmp_path / "one", ("svg", "png"))
    assert figure.get_layout_engine() is engine is not None


def test_saving_in_an_unknown_format_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="'gif'; the formats are pdf, png, svg"):
        style.save(_figure(), tmp_path / "one", formats=("png", "gif"))
    assert not list(tmp_path.iterdir())


def test_panels_have_the_asked_width_and_shape():
    figure, axs = style.panels(2, 3, width=style.NARROW)
    assert axs.shape == (2, 3)
    assert figure.get_figwidth() == style.NARROW
    assert isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)


def test_key_names_each_label_once():
    (legend,) = _figure().legends
    assert [entry.get_text() for entry in legend.get_texts()] == ["IMA"]


@pytest.mark.parametrize(("unit", "text"), [("nats", "loss [nats]"), ("1", "loss"), ("fraction", "loss")])
def test_axis_text_has_a_unit_where_there_is_one(unit, text):
    assert style.text(xr.DataArray([1.0], attrs={"long_name": "loss", "units": unit})) == text


def test_logarithmic_axis_has_a_few_plain_numbers():
    _, axs = style.panels()
    ax = axs[0, 0]
    ax.plot([0, 1], [0.3, 7])
    style.logarithmic(ax)
    ax.figure.draw_without_rendering()
    low, high = ax.get_ylim()
    shown = [tick.get_text() for tick in ax.get_yticklabels() if low <= tick.get_position()[1] <= high]
    assert shown == ["0.5", "1", "2", "5"]


def test_same_range_covers_every_panel():
    _, axs = style.panels(1, 2)
    axs[0, 0].plot([0, 1], [0, 3])
    axs[0, 1].plot([0, 1], [-5, 1])
    style.same_range(*axs.flat)
    assert axs[0, 0].get_ylim() == axs[0, 1].get_ylim()
    assert axs[0, 0].get_ylim()[0] <= -5
    assert axs[0, 0].get_ylim()[1] >= 3


def test_a_figure_shows_itself_as_png_at_the_end_of_a_notebooks_cell():
    figure, axs = style.panels()
    axs[0, 0].plot([0, 1], [0, 3])
    assert figure._repr_png_().startswith(b"\x89PNG")
