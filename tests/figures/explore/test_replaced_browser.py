"""A run that another one takes the place of under its name: an open page shows the numbers of the new one."""

import pytest
import tiny
from browsing import MARKS
from exploring import exploring, idle

pytestmark = [*MARKS, pytest.mark.timeout(300)]
VIEW = "document.getElementById('stage').view"
SHOWN = f"""() => {{ const {{ pictures }} = {VIEW}; return {{
    marks: pictures.map(one => one.shown.frame.marks.map(mark => mark.loss)),
    values: pictures.map(one => [...one.shown.fine].filter((_, place) => place % 97 === 0)),
    reading: pictures.map(one => one.reading.textContent),
    cards: ['point', 'clients', 'weights', 'sentences'].map(
        name => document.querySelector(`.${{name}}`).textContent) }} }}"""


def test_a_page_drops_all_of_a_run_that_was_replaced_and_asks_anew(browser, tmp_path):
    run = tiny.trained(tmp_path / "runs")
    tiny.trained(tmp_path / "runs", "method=fedprox", "method.mu=0.1")
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(60_000)
    with exploring(tmp_path / "runs") as address:
        page.goto(f"{address}#round=1&runs={run.name}&view=map&at=0.02,-0.01")
        idle(page)
        before = page.evaluate(SHOWN)
        assert "evaluated exactly" in before["reading"][0]
        other = tiny.trained(tmp_path / "elsewhere", "seed=6", "local.lr=0.5")
        run.folder.rename(tmp_path / "aside")
        other.folder.rename(run.folder)
        page.wait_for_selector(f"#stage .complaint:has-text('{run.name} was replaced by another run')")
        idle(page)
        after = page.evaluate(SHOWN)
        fresh = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        fresh.goto(address + page.evaluate("location.hash"))
        idle(fresh)
        assert after == fresh.evaluate(SHOWN)
        assert all(after[part] != before[part] for part in before)
        for one in (page, fresh):
            one.close()
