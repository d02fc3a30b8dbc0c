"""A picture that cannot be drawn is left out of the report with its reason; the rest of the page is written."""

from __future__ import annotations

import warnings

import pytest
import tiny

from figures.cli import main
from figures.page.report import report

FAILING = {
    "figures.page.content.client_points": "clients",
    "figures.page.content.curves": "accuracy",
    "figures.page.pictures.coherence_matrix": "matrix of",
    "figures.page.content.diagnosis": "diagnosis of",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("failed"))


def fail(*_, **__):
    raise RuntimeError("the </script> numbers are <odd>")


@pytest.mark.parametrize(("place", "name"), FAILING.items())
def test_a_picture_that_fails_is_named_with_its_reason_and_the_page_is_written(place, name, run, tmp_path, monkeypatch):
    monkeypatch.setattr(place, fail)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = report([run], tmp_path / "report.html", points=3)
    texts = [str(one.message) for one in told]
    assert any(f": {name}" in one and "could not be drawn: the </script> numbers are <odd>" in one for one in texts)
    text = path.read_text()
    assert "could not be drawn: the &lt;/script&gt; numbers are &lt;odd&gt;" in text
    assert text.rstrip().endswith("</html>")


def test_the_command_says_which_failed_and_exits_with_2(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("figures.page.content.client_points", fail)
    with pytest.raises(SystemExit) as stop:
        main(["report", str(run.folder), "-o", str(tmp_path / "report.html")])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "clients could not be drawn: the </script> numbers are <odd>" in shown.err
    assert (tmp_path / "report.html").exists()
