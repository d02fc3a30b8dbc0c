"""A report of a run from a stranger: names and texts in it are shown, never run."""

import shutil
from dataclasses import replace

import pytest
from browsing import MARKS, watched

from drift.runs.run import Run
from drift.store import files, links, round_headers
from figures.page.report import report

pytestmark = MARKS
EVIL = '</script><img src=x onerror="window.hacked = 1"><script>window.hacked = 2</script>\'"<b onclick=hacked>'


@pytest.fixture
def hostile(runs, tmp_path):
    """Trained runs whose folders, versions, metrics and settings were renamed to markup."""
    found = []
    for number, run in enumerate((runs[0], runs[2])):
        folder = tmp_path / f"{number}<img src=x onerror=hacked=3>"
        shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("results"))
        about = {key: value for key, value in files.read_json(folder / "run.json").items() if key != "format"}
        about["versions"] = {EVIL: EVIL}
        about["engine"] = about["classes"] = EVIL
        files.write_json(folder / "run.json", about)
        opened = Run(folder)
        for index in run.rounds():
            record = run.round(index)
            named = replace(record, metrics={**record.metrics, EVIL.replace("/", ""): 1.0})
            origin = links.origin(opened.identity, round_headers.link_before(folder, index))
            files.write_round(folder, named, run.experiment.keep, run.experiment.rounds, origin)
        tensors, following = files.read_state(run.folder)
        origin = links.origin(opened.identity, round_headers.link_before(folder, following))
        files.write_state(folder, tensors, following, origin)
        found.append(opened)
    return found


def test_markup_in_a_run_is_text_in_its_report(hostile, tmp_path):
    path = report(hostile, tmp_path / "report.html", points=4)
    assert EVIL not in path.read_text()
    with watched(path.as_uri()) as (page, told):
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[onerror], [onclick]").count() == 0
        assert told == {"requests": [path.as_uri()], "errors": []}
        assert "window.hacked = 2" in page.evaluate("document.body.textContent")
