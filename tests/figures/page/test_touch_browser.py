"""The stage by touch: a tap, a drag, two fingers."""

import pytest
from browsing import MARKS

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def touch(page, kind, *places):
    """Fingers at places (x, y): touchStart, touchMove or touchEnd."""
    if not hasattr(page, "session"):
        page.session = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
    page.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def middle_of(page, selector):
    page.locator(selector).first.scroll_into_view_if_needed()
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box


def test_a_tap_on_a_map_picks_the_point(opened):
    page = opened("#round=2&runs=fedavg&view=map", **PHONE)
    x, y, box = middle_of(page, "#stage .ground")
    page.touchscreen.tap(x + 0.2 * box["width"], y)
    u, v = page.evaluate(f"{VIEW}.state.point")
    half = page.evaluate(f"{VIEW}.pictures[0].shown.half")
    assert (u, v) == pytest.approx((0.4 * half, 0), abs=0.05 * half)


def test_a_drag_across_a_relief_turns_it(opened):
    page = opened("#round=2&runs=fedavg&view=relief", **PHONE)
    before = page.evaluate(f"{VIEW}.camera.azimuth")
    x, y, box = middle_of(page, "#stage .ground")
    x, y = x - 0.3 * box["width"], y - 0.3 * box["height"]  # beside the marks
    touch(page, "touchStart", (x, y))
    for step in range(1, 6):
        touch(page, "touchMove", (x + 14 * step, y))
    touch(page, "touchEnd")
    page.wait_for_function(f"before => Math.abs({VIEW}.camera.azimuth - before + 35) < 4", arg=before)
    assert page.evaluate(f"{VIEW}.state.point") is None
    page.wait_for_function("location.hash.includes('turn=')")


def test_a_drag_on_the_time_line_moves_the_round_and_two_fingers_zoom(opened):
    page = opened("#round=0&runs=fedavg&view=map", **PHONE)
    *_, box = middle_of(page, "#stage .curves")
    y = box["y"] + box["height"] / 2
    at = lambda share: (box["x"] + 58 + share * (box["width"] - 76), y)  # noqa: E731 - of the rounds
    touch(page, "touchStart", at(0))
    for share in (0.3, 0.6, 1):
        touch(page, "touchMove", at(share))
    touch(page, "touchEnd")
    page.wait_for_function(f"() => {VIEW}.state.round === 2")
    page.evaluate(f"for (const run of {VIEW}.runs) run.rounds = [...Array(41).keys()]; {VIEW}.set({{ smooth: 1 }})")
    touch(page, "touchStart", at(0.4))
    touch(page, "touchStart", at(0.4), at(0.6))
    for wider in (0.1, 0.2, 0.3):
        touch(page, "touchMove", at(0.4 - wider / 2), at(0.6 + wider / 2))
    # rounds 16 and 24 stay below the two fingers; moves arrive with the next frame
    page.wait_for_function(f"() => [12, 28].every((end, i) => Math.abs({VIEW}.state.span?.[i] - end) <= 1)")
    for nearer in (0.2, 0.05):
        touch(page, "touchMove", at(0.5 - nearer / 2), at(0.5 + nearer / 2))
    touch(page, "touchEnd")
    page.wait_for_function(f"() => {VIEW}.state.span === null")  # fingers that come together show all rounds
    assert page.evaluate("[visualViewport.scale, scrollX]") == [1, 0]
