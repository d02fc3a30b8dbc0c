"""A report shows figures that are asked for by name, the user's own too, each with caption, text and data."""

from __future__ import annotations

import base64
import csv
import io
import re

import pytest

from figures import gallery
from figures.cli import app
from figures.page.report import report

OWN = '''"""A figure of my own."""

import matplotlib.pyplot as plt


class Mine:
    """Test loss, mine."""

    NEEDS = "one run"
    COST = "none"

    @staticmethod
    def data(runs):
        return runs[0].metrics()[["loss"]]

    @staticmethod
    def draw(ds):
        figure, ax = plt.subplots()
        ax.plot(ds["round"], ds["loss"])
        ax.set(xlabel="round", ylabel="loss, nats", title="Mine")
        return figure
'''


def section(text):
    return re.search(r'<h2 id="named">Figures</h2>(.*?)</details>', text, re.DOTALL)[1]


@pytest.mark.usefixtures("capsys")
def test_the_command_shows_a_built_in_figure_and_one_of_your_own(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    words = ["publish", str(runs[0].folder), "-o", "page.html", "--figures", "norms-rounds", "mine.py:Mine"]
    assert app(words, result_action="return_value") == 0
    shown = section((tmp_path / "page.html").read_text())
    pictures = [base64.b64decode(text) for text in re.findall(r'src="data:image/png;base64,([^"]+)"', shown)]
    assert len(pictures) == 2 and all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert all(len(text) > 40 for text in re.findall(r'alt="([^"]+)"', shown))
    table = base64.b64decode(re.findall(r'href="data:text/csv;base64,([^"]+)"', shown)[1]).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    losses = [runs[0].round(index).metrics["loss"] for index in runs[0].rounds()]
    assert [float(row["loss"]) for row in rows] == pytest.approx(losses, rel=1e-12)


def test_a_figure_that_these_runs_do_not_allow_has_the_reason_in_its_place(runs, tmp_path):
    path = report(runs[:1], tmp_path / "page.html", points=4, figures=["gain-alpha"])
    shown = section(path.read_text())
    assert "<img" not in shown
    assert re.search(r'<p class="note">gain-alpha: \w+.*run', shown)


def test_without_names_there_is_no_such_section_and_a_wrong_name_is_refused_first(runs, tmp_path):
    assert 'id="named"' not in report(runs[:1], tmp_path / "page.html", points=4).read_text()
    with pytest.raises(ValueError, match="Did you mean 'norms-rounds'"):
        report(runs[:1], tmp_path / "other.html", figures=["norm-rounds"])
    assert not (tmp_path / "other.html").exists()
    assert "norms-rounds" in gallery.names()
