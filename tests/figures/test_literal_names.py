"""Names of methods, data, classes and numbers are set as they stand, whatever characters they have."""

import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import drift
from figures.axes.class_labels import class_bars
from figures.axes.matrices import matrix
from figures.looks import literal, style
from figures.pictures.draw_files import draw
from figures.texts.alt_text import alt_text

NAMES = [r"$\foo$", "a$b$c", "$x^{2$", "_hidden", r"Fed|Av_g&%$#{}~^\ !", "100 % & {x}", "50$"]


@pytest.mark.parametrize("name", [*NAMES, r"\$", r"end\$", "$$", r"$\frac{1}{2}$"])
def test_a_literal_text_is_drawn_and_read_again_as_it_stands(name):
    figure, ax = plt.subplots()
    ax.plot([0, 1, 2], label=style.literal(name))
    ax.set_title(style.literal(name) + r", $\lambda_{2}\,/\,\gamma$")
    assert [text.get_text() for text in ax.legend().get_texts()] == [style.literal(name)]  # no name is left out
    figure.canvas.draw()
    assert literal.plain(style.literal(name)).strip() == name
    assert literal.plain(ax.get_title()).strip() == f"{name}, lambda_2 / gamma"
    assert f"; {name} from 0 to 2." in alt_text("A line", figure)
    plt.close(figure)


def test_a_name_is_as_wide_as_its_characters():
    figure, ax = plt.subplots()
    plain, escaped = ax.text(0, 0, "a$b$c", parse_math=False), ax.text(0, 0, style.literal("a$b$c"))
    assert plain.get_window_extent().width == pytest.approx(escaped.get_window_extent().width)
    plt.close(figure)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run per name, of a method and data that are called so."""
    folder, start = tmp_path_factory.mktemp("runs"), nn.Linear(5, 3)
    opened = []
    for place, name in enumerate(NAMES):
        recorder = drift.Recorder(folder / f"r{place}", start, method=name, data=r"$\bad$")
        for step in range(3):
            clients = {client: (copy.deepcopy(start), 10 + client) for client in range(2)}
            for model, _ in clients.values():
                with torch.no_grad():
                    model.weight.add_(torch.randn_like(model.weight))
            numbers = {"loss": 1.0 + place / 10 - step / 10, "accuracy": 0.3 + place / 20 + step / 100}
            recorder.round(start=start, clients=clients, end=clients[0][0], metrics=numbers)
            start = clients[0][0]
        opened.append(drift.open(folder / f"r{place}"))
    return opened


@pytest.mark.parametrize("name", ["accuracy-rounds", "accuracy-table", "coherence-rounds"])
def test_names_stand_in_captions_and_alt_texts_as_they_are(runs, name, tmp_path):
    paths = {path.name: path for path in draw(name, runs, tmp_path, formats=("svg",))}
    said, seen = (paths[f"{name}{end}"].read_text() for end in (".txt", ".alt.txt"))
    assert r"Data: $\bad$" in said and all(own in said for own in NAMES)
    if name == "accuracy-rounds":
        assert sum(own in seen for own in NAMES) >= 2 and len(seen) < 400  # highest and lowest of each panel
    if name == "accuracy-table":
        rows = paths[f"{name}.table.md"].read_text()
        assert all(own.replace("|", r"\|") in rows or own in rows for own in NAMES)


def test_classes_and_marks_are_set_as_they_stand():
    names = [r"$\foo$", "a$b$c"]
    figure, (left, right) = plt.subplots(1, 2)
    pairs = xr.DataArray(np.eye(2), {"mark": names, "mark_other": names}, ["mark", "mark_other"], name="barrier")
    matrix(pairs, ax=left)
    shares = xr.DataArray([[0.4, 0.6]], {"round": [0], "class": names}, ["round", "class"])
    class_bars(xr.Dataset({"cohort_share": shares}), ax=right)
    figure.canvas.draw()
    assert [literal.plain(text.get_text()) for text in left.get_xticklabels()] == names
    assert [text.get_text() for text in right.texts] == ["0", "1"]
    labels = [literal.plain(label) for label in right.get_legend_handles_labels()[1]]
    assert labels == [f"{place} {name}" for place, name in enumerate(names)]
    plt.close(figure)
