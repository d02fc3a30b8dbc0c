from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import xarray as xr
from blocks import leave_out_layout

from figures import gallery
from figures.axes.curves import curve, seeds_at
from figures.gallery import AnyOf
from figures.looks import style
from figures.pictures.draw_files import draw
from figures.texts import latex
from figures.texts.alt_text import alt_text
from figures.texts.caption import caption, caption_latex
from figures.texts.write import write

PAGE = ("accuracy-rounds", "planes-clients", "lines-globals", "variance-rounds", "norms-rounds", "coherence-rounds")
TABLES = ("accuracy-table", "rounds-target")


@pytest.fixture(scope="module")
def drawn(runs, tmp_path_factory):
    """Folder of six figures and two tables, and the files by figure."""
    folder = tmp_path_factory.mktemp("page")
    options = {"planes-clients": {"points": 4}, "lines-globals": {"points": 5, "lines": 2}}
    with pytest.MonkeyPatch.context() as patch:
        leave_out_layout(patch)
        return folder, {
            name: draw(name, AnyOf(runs), folder, formats=("pdf",), **options.get(name, {}))
            for name in (*PAGE, *TABLES)
        }


def test_a_caption_states_methods_data_partition_seeds_rounds_and_bands(drawn):
    folder, _ = drawn
    text = (folder / "accuracy-rounds.txt").read_text()
    assert text.startswith(
        "Test accuracy and loss over rounds, one line per method. Test accuracy at round 2: highest "
    )
    assert ". Methods: " in text
    for part in ("FedAvg, FedLAW", "Data: blobs, linear", "partition: ", "Seeds 5, 6; 3 rounds"):
        assert part in text
    assert "(LSS paper" not in text
    assert "2 seeds" in text
    tex = (folder / "accuracy-rounds.tex").read_text()
    assert re.fullmatch(r"\\caption\{.*\}\n\\label\{fig:accuracy-rounds\}\n", tex, re.DOTALL)
    assert "\\label{tab:accuracy-table}" in (folder / "accuracy-table.tex").read_text()


def test_alternative_text_states_axes_and_ends_of_lines(drawn):
    text = (drawn[0] / "accuracy-rounds.alt.txt").read_text()
    assert re.search(r"Panel 1: lines over round from \S+ to \S+ and test accuracy from \S+ to", text)
    assert "Test accuracy at round 2: highest" in text and "Test loss [nats] at round 2: highest" in text
    texts = [path.read_text() for path in drawn[0].glob("*.txt")]
    assert not [one for one in texts if ".." in one]
    assert max(len(path.read_text()) for path in drawn[0].glob("*.alt.txt")) < 400
    assert "contour map" in (drawn[0] / "planes-clients.alt.txt").read_text()


def _curves(seeds):
    coords = {"algorithm": ["fedavg"], "seed": range(seeds), "round": [0, 1, 2]}
    values = np.linspace(0.1, 0.9, 3 * seeds).reshape(1, seeds, 3)
    return xr.Dataset({"accuracy": (tuple(coords), values, {"long_name": "accuracy", "units": "fraction"})}, coords)


def test_a_figure_adds_its_own_words_and_may_name_its_band():
    ds = _curves(3).assign_attrs(caption="the run was stopped early", band="band: 95 % interval")
    figure, axs = style.panels()
    curve(ds, ax=axs[0, 0])
    assert caption("Accuracy (IMA paper, Fig. 1).", ds, figure) == (
        "Accuracy. Accuracy at round 2: 0.6, from 0.4. The run was stopped early. Band: 95 % interval."
    )
    assert caption("Accuracy.", _curves(1)) == "Accuracy."
    assert "FedAvg from 0.4 to 0.6" in alt_text("Accuracy", figure)


@pytest.mark.parametrize("seeds", [1, 3, 5])
@pytest.mark.parametrize("shape", ["curve", "bars"])
def test_a_caption_names_bands_or_whiskers_where_there_are_any(seeds, shape):
    ds = _curves(seeds)
    figure, axs = style.panels()
    if shape == "curve":
        curve(ds, ax=axs[0, 0])
    else:
        seeds_at(ds.accuracy.values[0, :, -1], 0.0, axs[0, 0])
    about = "mean and 95 % t interval of 5 seeds"
    expected = {"curve": f" Lines and bands: {about}.", "bars": f" Bars and whiskers: {about}."}[shape]
    text = caption("Accuracy.", ds, figure)
    assert text.endswith(expected) if seeds == 5 else not {"bands", "whiskers"} & set(text.split())


def test_numbers_of_an_alternative_text_are_those_of_the_drawn_lines():
    values = np.array([0.123456, 0.5, np.nan, 0.75, np.nan])
    figure, axs = style.panels()
    axs[0, 0].plot(np.arange(5) * 10, values, label="first")
    axs[0, 0].plot(np.arange(5) * 10, values[::-1] + 1, label="second")
    axs[0, 0].plot([0, 40], [2, 2], label="level")
    axs[0, 0].set(xlabel="round", ylabel="loss", xlim=(40, 0), ylim=(-1.25, 2.5))
    said = alt_text("Loss.", figure)
    assert said == (
        "Loss. Panel: lines over round from 0 to 40 and loss from 0.123 to 2; first from 0.123 to 0.75, "
        "second from 1.75 to 1.12."
    )


def test_signs_of_latex_are_escaped():
    text = "50 % of_a & b # $ {x} ~ ^ \\ < \u03bb\u2081 \u00b1"
    assert latex.escape(text) == (
        r"50 \% of\_a \& b \# \$ \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \textless{} "
        r"$\lambda$$_1$ $\pm$"
    )
    assert caption_latex("a_b", "my figure_2").endswith("\\label{fig:my-figure-2}\n")


def test_a_figure_of_a_user_has_a_caption_of_its_name():
    assert gallery.names()
    assert caption("mine", xr.Dataset()) == "Mine."


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: install texlive-latex-recommended")
def test_a_page_with_six_figures_and_two_tables_compiles(drawn):
    folder, files = drawn
    assert all((folder / f"{name}.pdf") in paths for name, paths in files.items())
    parts = [
        f"\\begin{{figure}}\\centering\\includegraphics[width=0.8\\linewidth]{{{name}.pdf}}\n\\input{{{name}.tex}}\\end{{figure}}"
        for name in PAGE
    ]
    parts += [
        f"\\begin{{table}}\\centering\n\\input{{{name}.tex}}\n\\input{{{name}.table.tex}}\\end{{table}}"
        for name in TABLES
    ]
    head = "\\documentclass{article}\n\\usepackage{graphicx,booktabs}\n\\begin{document}\n"
    refs = "".join(f"\\ref{{fig:{name}}} " for name in PAGE) + "".join(f"\\ref{{tab:{name}}} " for name in TABLES)
    (folder / "page.tex").write_text(head + refs + "\n\\clearpage\n".join(parts) + "\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "undefined" not in done.stdout
    assert "Missing character" not in (folder / "page.log").read_text()


def test_an_alternative_text_begins_with_a_whole_sentence(tmp_path):
    figure, axs = style.panels(1, 1)
    axs[0, 0].plot([0, 1, 2], [1.0, 2.0, 4.0])
    headline = "Barriers between clients (Frankle et al. 2020)"
    (text,) = (path for path in write(tmp_path / "barriers", headline, xr.Dataset(), figure) if "alt" in path.name)
    assert text.read_text().startswith(f"{headline}. ")
