"""A picture that cannot be drawn is left out of the report with its reason; the rest of the page is written."""

from __future__ import annotations

import warnings

import pytest
import tiny

from figures.cli import main
from figures.page.report import report

FAILING = {
    "figures.page.content.curves": "accuracy",
    "figures.page.content.trajectory": "path of",
    "figures.page.named_figures.draw": "labels-scatter",
    "figures.page.content.diagnosis": "diagnosis of",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("failed"))


def fail(*_, **__):
    raise RuntimeError("the </script> numbers are <odd>")


def test_pictures_that_fail_are_named_with_their_reasons_and_the_page_is_written(run, tmp_path, monkeypatch):
    for place in FAILING:
        monkeypatch.setattr(place, fail)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = report([run], tmp_path / "report.html", points=3)
    texts = [str(one.message) for one in told]
    failed = [one for one in texts if "could not be drawn: the </script> numbers are <odd>" in one]
    assert [name for name in FAILING.values() if not any(f": {name}" in one for one in failed)] == []
    text = path.read_text()
    assert text.count("could not be drawn: the &lt;/script&gt; numbers are &lt;odd&gt;") >= len(FAILING)
    assert text.rstrip().endswith("</html>")


def test_the_command_says_which_failed_and_exits_with_2(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("figures.page.content.curves", fail)
    with pytest.raises(SystemExit) as stop:
        main(["publish", str(run.folder), "-o", str(tmp_path / "report.html")])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "loss could not be drawn: the </script> numbers are <odd>" in shown.err
    assert (tmp_path / "report.html").exists()
