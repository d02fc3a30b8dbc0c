"""A path that is played in a real browser: nothing moves unasked, and its marker is where its line ends."""

import pytest
from browsing import MARKS, chromium

from drift.analyses.landscapes.projected_plane import trajectory_plane
from figures.interactive.paths import trajectory_play

pytestmark = MARKS

STATE = """() => {
  const plot = document.querySelector(".js-plotly-plot"), way = plot.querySelectorAll(".scatterlayer .trace")[1];
  const line = (way.querySelector("path.js-line") || { getAttribute: () => "" }).getAttribute("d");
  const points = [...way.querySelectorAll(".points path")];
  return { active: plot._fullLayout.sliders[0].active, points: points.length, end: (line || "").split(/[ML]/).pop(),
           marker: points.at(-1).getAttribute("transform").slice(10, -1) };
}"""


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    ds = runs[0].cached(trajectory_plane, clients=True, points=4)
    file = tmp_path_factory.mktemp("path") / "path.html"
    trajectory_play(ds).write_html(file, auto_play=False)
    return file.as_uri()


def test_a_path_is_played_on_request_and_its_marker_does_not_lag(path):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 900, "height": 600})
        page.goto(path)
        page.wait_for_selector(".scatterlayer .trace .points path", state="attached")
        page.wait_for_timeout(500)
        first = page.evaluate(STATE)
        assert first["active"] == 2 and first["points"] == 3 and first["end"] == first["marker"]
        page.evaluate(f"window.seen = []; const state = {STATE}; setInterval(() => seen.push(state()), 20)")
        page.get_by_text("Play", exact=True).click()
        page.wait_for_function("seen.length && seen.some((one) => one.active === 0) && seen.at(-1).active === 2")
        seen = page.evaluate("seen")
    assert {one["active"] for one in seen} == {0, 1, 2}
    begun = next(number for number, one in enumerate(seen) if one["active"] == 0)
    for one in seen[begun:]:
        assert one["points"] == one["active"] + 1
        assert one["points"] == 1 or one["end"] == one["marker"]
