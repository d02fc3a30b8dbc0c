"""A picture that cannot be drawn is left out of the report with its reason; the rest of the page is written."""

from __future__ import annotations

import shutil
import warnings

import pytest
import tiny

from drift.runs.run import Run
from figures.cli import main
from figures.page.remembered_runs import Failed
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


def test_damaged_runs_of_a_folder_are_left_out_and_named_and_one_named_itself_is_refused(run, tmp_path, fedscape):
    kept, cut, broken = (tmp_path / "runs" / name for name in ("kept", "cut", "broken"))
    for folder in (kept, cut, broken):
        shutil.copytree(run.folder, folder)
    record = cut / "rounds" / "000001.safetensors"
    record.write_bytes(record.read_bytes()[:100])
    (broken / "run.json").write_text("{")
    path = tmp_path / "page.html"
    code, _, err = fedscape("publish", cut, kept, "--out", path)
    assert code == 2 and "000001.safetensors cannot be read" in err and not path.exists()
    code, _, err = fedscape("publish", kept.parent, "--out", path)
    assert code == 0 and "1 run, " in err
    for name in ("cut", "broken"):
        assert f"{name}: left out, it cannot be read: " in err
        assert f'<p class="note">{name}: left out, it cannot be read: ' in path.read_text()


def test_a_page_that_is_too_large_is_refused_with_what_weighs(run, tmp_path, monkeypatch):
    monkeypatch.setattr("figures.page.report.LARGEST", 1_000_000)
    path = tmp_path / "page.html"
    weights = r"has \d+\.\d MB, 1 at most; leave out some of --figures norms-rounds \(\d.\d MB\), run Fed"
    with pytest.raises(ValueError, match=weights):
        report([run], path, points=3, figures=["norms-rounds"])
    assert not path.exists()


def test_runs_that_a_figure_of_the_page_does_not_suit_are_no_failure(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "again")
    failed = Failed()
    path = report([run, Run(tmp_path / "again")], tmp_path / "page.html", points=3, failed=failed)
    assert failed.reasons == {} and "differ in nothing; give runs that differ" in path.read_text()


def test_the_command_says_which_failed_and_exits_with_2(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("figures.page.content.curves", fail)
    with pytest.raises(SystemExit) as stop:
        main(["publish", str(run.folder), "-o", str(tmp_path / "report.html")])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "loss could not be drawn: the </script> numbers are <odd>" in shown.err
    assert (tmp_path / "report.html").exists()
