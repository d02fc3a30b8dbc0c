"""How figures look: the words, what honours them, and what refuses them."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import figures
from figures import gallery
from figures.axes.finish import finish
from figures.axes.footnote import footnote
from figures.commands.look_options import LookOptions
from figures.looks import look, matplotlib_style, style
from figures.looks.layout import PAGE
from figures.looks.look_values import WIDTHS
from figures.pictures.draw_files import split_words


def test_the_command_line_and_python_have_the_same_words():
    options = {part.name for part in fields(LookOptions)}
    assert options - {"no_note", "no_log"} == set(look.WORDS) - {"note"}
    assert LookOptions(methods=["ima"], rounds="2:5", no_note=True).words() == {
        "methods": ["ima"],
        "rounds": "2:5",
        "note": False,
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"seeds": "all"}, "seeds is 'all'; give lines, band or interval"),
        ({"legend": "left"}, "give above, below, right, inside or none"),
        ({"width": "wide"}, "give column, page, slide, or inches"),
        ({"rounds": "50:10"}, "has to be below"),
        ({"rounds": "ten"}, "give two ends, such as 10:50"),
        ({"smooth": 0}, "whole number from 1"),
        ({"levels": 1}, "whole number from 2"),
        ({"labels": ["Ours"]}, "give METHOD=TEXT"),
        ({"colour": "red"}, "no option of a look is called 'colour'"),
    ],
)
def test_a_wrong_word_is_refused_with_what_is_accepted(words, told):
    with pytest.raises(ValueError, match=told):
        look.read(**words)


def test_ranges_and_limits_are_read_from_texts_and_pairs():
    words = look.read(rounds="10:", xlim=(0, 3), ylim=["test accuracy=0.5:", "test loss=:2"], labels="ima=Ours, really")
    assert words.rounds == (10, None)
    assert words.xlim == {"": (0, 3)}
    assert words.ylim == {"test accuracy": (0.5, None), "test loss": (None, 2)}
    assert words.labels == {"ima": "Ours, really"}


def test_settings_of_the_user_win_over_ours_and_a_style_that_is_asked_for_over_both():
    with style.context():
        assert (mpl.rcParams["font.size"], mpl.rcParams["legend.fontsize"]) == (8, 7)
    with mpl.rc_context({"font.family": "serif", "font.size": 12, "grid.color": "red", "legend.fontsize": 11}):
        with style.context():
            assert mpl.rcParams["font.family"] == ["serif"]
            assert (mpl.rcParams["font.size"], mpl.rcParams["xtick.labelsize"]) == (12, 10.5)
            assert (mpl.rcParams["legend.fontsize"], style.small()) == (11, 11)
            assert mpl.rcParams["grid.color"] == "red"
            assert not mpl.rcParams["axes.spines.top"], "a setting that the user left alone is ours"
        with look.drawing(look.read(style="nature")), style.context():
            assert mpl.rcParams["font.size"] == 7


@pytest.mark.parametrize("venue", look.VENUES)
def test_every_venue_has_its_fonts_and_widths(venue, recwarn):
    with look.drawing(look.read(style=venue, width="column")), style.context():
        figure, _ = style.panels(1, 3)
        assert figure.get_figwidth() == look.VENUES[venue]["column"]
        assert 7 <= mpl.rcParams["font.size"] <= 8
        family = mpl.rcParams["font.family"][0]
        assert mpl.rcParams[f"font.{family}"], "no family is installed"


def test_a_style_sheet_of_the_user_is_taken_and_an_unknown_style_refused(tmp_path):
    sheet = tmp_path / "mine.mplstyle"
    sheet.write_text("lines.linewidth: 3.5\n")
    with look.drawing(look.read(style=str(sheet))), style.context():
        assert mpl.rcParams["lines.linewidth"] == 3.5
    with (
        look.drawing(look.read(style="acm")),
        pytest.raises(ValueError, match="no style 'acm'; give ieee"),
        style.context(),
    ):
        pass


def test_panels_side_by_side_are_stacked_in_a_column():
    with look.drawing(look.read(width="column")):
        figure, axs = style.panels(1, 3, height=2.5, width_ratios=(1, 2, 3))
        assert axs.shape == (1, 3)
        assert [style.is_first(ax) for ax in axs[0]] == [True] * 3
        assert [style.is_lowest(ax) for ax in axs[0]] == [False, False, True]
        assert figure.get_figwidth() == WIDTHS["column"]
        _, turned = style.panels(2, 3, turned=True)
        assert turned.shape == (2, 3)
        assert [style.is_first(ax) for ax in turned[:, 0]] == [True, False]
    with look.drawing(look.read(width="page")):
        _, axs = style.panels(1, 3)
        assert [style.is_first(ax) for ax in axs[0]] == [True, False, False]


def test_maps_in_a_column_have_the_same_ticks_at_any_size_so_that_none_is_added_beside_its_neighbour(numbers):
    figure = gallery.load("planes-clients").draw(numbers("planes-clients"), width="column")
    before = [ax.get_yticks().tolist() for ax in figure.axes]
    figure.set_size_inches(figure.get_size_inches() * 3)
    figure.draw_without_rendering()
    assert [ax.get_yticks().tolist() for ax in figure.axes[:4]] == before[:4]


@pytest.mark.parametrize(("count", "across"), [(3, 1), (4, 2), (10, 2), (40, 5)])
def test_many_panels_in_a_column_stand_side_by_side_and_are_no_taller_than_a_page(count, across):
    with look.drawing(look.read(width="column")):
        figure, axs = style.panels(1, count)
    first = {ax.get_subplotspec().colspan.start for ax in axs.flat}
    assert len(first) == across and figure.get_figheight() <= PAGE
    with look.drawing(look.read(width="page")):
        assert style.panels(20, 3)[0].get_figheight() == PAGE


def _curves(seeds: int = 2) -> xr.Dataset:
    values = np.random.default_rng(0).uniform(0.2, 0.9, (2, seeds, 12))
    return xr.Dataset(
        {
            name: (("algorithm", "seed", "round"), values, {"long_name": name})
            for name in ("accuracy", "loss", "local_loss")
        },
        coords={"algorithm": ["fedavg", "ima"], "seed": range(seeds), "round": range(12)},
    )


def test_words_of_a_look_are_seen_in_the_picture():
    figure = gallery.load("accuracy-rounds").draw(
        _curves(),
        width="page",
        title="Two methods",
        labels={"ima": "Ours", "x": "rounds trained"},
        legend="below",
        ylim="test accuracy=0:1",
        log=False,
        palette="tab10",
    )
    first, *rest = figure.axes
    assert figure.get_figwidth() == WIDTHS["page"]
    assert [text.get_text() for text in figure.texts] == ["Two methods"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FedAvg", "Ours"]
    assert first.get_ylim() == (0, 1)
    assert rest[0].get_ylim() != (0, 1)
    assert {ax.get_yscale() for ax in figure.axes} == {"linear"}
    assert first.get_xlabel() == "rounds trained"
    assert first.lines[0].get_color() == mpl.colors.to_hex("tab:blue")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"levels": 5}, "cannot apply levels: it has no contour maps"),
        ({"xlim": "radius=0:1"}, "cannot apply xlim"),
        ({"ylim": (0, 1)}, "several quantities share it"),
        ({"palette": "cividis"}, "cannot apply palette"),
        ({"labels": {"lss": "Soups"}}, "cannot apply labels"),
        ({"methods": "ima"}, "cannot apply methods"),
    ],
)
def test_a_word_that_a_figure_cannot_honour_is_refused(words, told):
    with pytest.raises(ValueError, match=told):
        gallery.load("accuracy-rounds").draw(_curves(), **words)
    with pytest.raises(ValueError, match="cannot apply seeds: it has no line of several seeds"):
        gallery.load("accuracy-rounds").draw(_curves(1), seeds="interval")


def test_differences_to_a_method_are_paired_by_seed(runs):
    accuracy = [run.metrics().accuracy.values for run in runs]
    with look.drawing(look.read(paired_to="fedavg")):
        ds = gallery.load("accuracy-rounds").data(runs)
    assert ds.algorithm.values.tolist() == ["fedlaw"]
    for place in range(2):
        np.testing.assert_allclose(
            ds.accuracy.sel(algorithm="fedlaw").values[place], accuracy[2 + place] - accuracy[place]
        )
    figure = gallery.load("accuracy-rounds").draw(ds)
    assert all("minus that of FedAvg" in " ".join(ax.get_ylabel().split()) for ax in figure.axes)
    assert all(ax.get_yscale() == "linear" for ax in figure.axes)
    with look.drawing(look.read(paired_to="fedavg")):
        table = gallery.load("accuracy-table").data(runs, last=1)
    assert table.row.values.tolist() == ["fedlaw"]
    np.testing.assert_allclose(
        np.sort(table.measured.values.ravel()),
        np.sort([accuracy[2 + place][-1] - accuracy[place][-1] for place in (0, 1)]),
    )


def test_rounds_of_other_cohorts_have_no_paired_difference(runs, monkeypatch):
    from figures.gallery import _paired

    real = _paired.recorded

    def with_another(run):
        cohorts = {**real(run).cohorts(), **({1: "other"} if run.label == "fedlaw" else {})}
        return SimpleNamespace(cohorts=lambda: cohorts)

    monkeypatch.setattr(_paired, "recorded", with_another)
    with look.drawing(look.read(paired_to="fedavg")):
        ds = gallery.load("accuracy-rounds").data(runs)
    missing = ds.accuracy.isnull().all(("algorithm", "seed")).values
    assert missing.tolist() == [index == 1 for index in ds["round"].values]


def test_an_absent_reference_and_figures_without_methods_are_refused(runs):
    with look.drawing(look.read(paired_to="lss")), pytest.raises(LookupError, match="no run is of method lss"):
        gallery.load("accuracy-rounds").data(runs)
    with look.drawing(look.read(paired_to="fedavg")), pytest.raises(ValueError, match="cannot apply paired_to"):
        gallery.load("labels-partition").data(runs[:1])


def test_methods_and_rounds_select_what_is_shown(runs):
    with look.drawing(look.read(methods=["fedavg"], rounds="1:2")):
        ds = gallery.load("accuracy-rounds").data(runs)
    assert ds.algorithm.values.tolist() == ["fedavg"]
    assert ds["round"].values.tolist() == [1, 2]
    with look.drawing(look.read(rounds="1:2")), pytest.raises(ValueError, match=r"as in --set rounds=\[0,10\]"):
        gallery.load("weight-histogram").data(runs)
    with look.drawing(look.read(methods=["ima"])), pytest.raises(LookupError, match="ima"):
        gallery.load("accuracy-rounds").data(runs)


def test_a_word_that_a_figure_has_as_an_option_is_that_option():
    assert split_words("coherence-rounds", {"methods": ["fedavg"], "smooth": 5}) == (
        {},
        {"methods": ["fedavg"], "smooth": 5},
    )
    assert split_words("labels-partition", {"rounds": 3}) == ({}, {"rounds": 3})
    assert split_words("labels-partition", {"rounds": "1:3"}) == ({"rounds": "1:3"}, {})
    assert split_words("numbers-rounds", {"paired_to": "fedavg"}) == ({}, {"reference": "fedavg"})
    with pytest.raises(ValueError, match="no option"):
        split_words("accuracy-rounds", {"widht": "column"})


def test_a_figure_is_drawn_into_axes_and_parts_of_another_one(runs):
    whole = Figure(figsize=(6.9, 4), layout="constrained")
    left, right = whole.subfigures(1, 2)
    assert figures.picture("accuracy-rounds", runs, subfigure=left) is left
    assert len(left.axes) == 3
    above, below = right.subplots(2, 1)
    figures.picture("numbers-rounds", runs, ax=above, seeds="lines")
    assert above.lines
    part = figures.picture("norms-rounds", runs, ax=below)
    assert len(part.axes) == 3
    assert below not in right.axes
    assert not [text for text in whole.texts if text.get_label() == "footnote"]


def test_numbers_state_how_their_seeds_are_drawn(runs, tmp_path):
    figures.draw("accuracy-rounds", runs, tmp_path, width="column", formats=["png"])
    text = " ".join((tmp_path / "accuracy-rounds.txt").read_text().split())
    assert "hin lines: 2 seeds, thick: their mean" in text
    assert not (tmp_path / "accuracy-rounds.pdf").exists()


def test_a_font_that_is_not_installed_is_named_with_the_one_in_its_place(monkeypatch):
    monkeypatch.setattr(matplotlib_style.font_manager, "get_font_names", lambda: ["STIXGeneral", "DejaVu Sans"])
    expected = "font Times New Roman of style icml is not installed; STIXGeneral is in its place."
    assert matplotlib_style.substitute("icml") == expected
    monkeypatch.setattr(matplotlib_style.font_manager, "get_font_names", lambda: ["Times New Roman", "STIXGeneral"])
    assert matplotlib_style.substitute("icml") == matplotlib_style.substitute("ggplot") == ""


def test_a_figure_of_a_venue_keeps_its_fonts_where_it_is_saved_without_the_style():
    with look.drawing(look.read(style="neurips")), style.context():
        figure, axs = style.panels(1, 1)
        axs[0, 0].set_title("two\nlines")
        footnote(figure, "below")
        finish(figure, list(axs.flat), look.current())
        there = mpl.rcParams["font.serif"]
    title, note = axs[0, 0].title, figure.texts[-1]
    assert [text.get_fontfamily() for text in (title, note)] == [there, there]
    assert title._linespacing == 1.0 and title.get_math_fontfamily() == "stix"


@pytest.mark.parametrize("words", ["font.family: NoSuchFont", "font.family: serif\nfont.serif: NoSuchFont"])
def test_a_font_of_a_style_sheet_that_is_not_there_is_said_once(words, tmp_path, caplog):
    file = tmp_path / "own.mplstyle"
    file.write_text(f"{words}\n")
    expected = f"font NoSuchFont of style {file} is not installed; DejaVu Sans is in its place."
    assert matplotlib_style.substitute(str(file)) == expected
    with look.drawing(look.Look(style=str(file))), style.context():
        figure = Figure()
        figure.text(0, 0, "words")
        figure.draw_without_rendering()
    assert "findfont" not in caplog.text
    file.write_text("font.size: 9\n")
    assert matplotlib_style.substitute(str(file)) == ""
