"""Weights of the clients in a browser: the best ones, their sum, and when they are forgotten."""

import numpy as np
import pytest
from browsing import MARKS
from exploring import VIEW, idle, slide

pytestmark = MARKS


def test_the_best_weights_are_a_click_away_and_stand_beside_the_round_s_own(opened):
    page = opened("#round=2&view=map")
    assert "Would other weights of the clients have a lower loss?" in page.text_content("#stage .best-weights")
    own = page.evaluate(f"{VIEW}.why.weights.base.value.loss")
    page.click("#stage .best-weights button")
    page.wait_for_selector("#stage .presets [aria-pressed=true]:has-text('Best weights')")
    idle(page)
    best = page.evaluate(f"{VIEW}.why.weights.asked.value.loss")
    assert best < own
    said = page.text_content("#stage .what-if")
    assert said.startswith(f"Loss {best:.4f}"[:9]) and f"the round's own weights ({own:.4f}"[:30] in said
    assert "The best weights of sum 1 found have a loss of" in page.text_content("#stage .best-weights")
    assert page.locator("#stage .mark.mix").count() == 1


def test_the_sum_of_fedlaw_s_weights_has_a_slider_of_its_own(opened, runs):
    page = opened("#round=2&view=map")
    scale = page.locator("#stage input[aria-label='Sum of the weights']")
    assert scale.is_hidden()  # FedAvg's sum to 1
    page.locator("#stage .look").nth(1).click()
    idle(page)
    assert scale.is_visible() and float(scale.input_value()) != 1
    scale.fill("0.9")
    idle(page)
    assert page.evaluate(f"{VIEW}.state.mix.gamma") == 0.9
    value = page.evaluate(
        f"[...{VIEW}.asks.entries.values()].find(one => one.kind === 'weights' && one.args.gamma === 0.9)"
    )
    run = next(run for run in runs if run.name == value["args"]["run"])
    record = run.round(2)
    ids, weights = record.ids.tolist(), value["value"]["weights"]
    shares = np.array([weights[str(client)] for client in ids])
    theta = 0.9 * (shares[:, None] * record.kept("clients").double().numpy()).sum(0)
    samples = run.task.split("test")
    outputs = run.task.outputs(record.kept("end").new_tensor(theta), samples)
    wanted = float(run.task.per_sample(outputs, samples.targets).mean())
    assert value["value"]["loss"] == pytest.approx(wanted, rel=1e-4)


def test_sliders_reach_as_far_as_the_weights_of_an_address(opened, runs):
    run = runs[0]
    first, second, *rest = run.round(2).ids.tolist()
    pairs = ",".join([f"{first}:2", f"{second}:-1", *(f"{client}:0" for client in rest)])
    page = opened(f"#round=2&view=map&runs={run.name}&look={run.name}&mix={run.name},2,2,{pairs}")
    sliders = page.locator("#stage .sliders label")
    assert [one.input_value() for one in sliders.locator("input").all()] == ["2", "-1", "0", "2"]
    assert sliders.locator("output").all_text_contents() == ["2.00", "\u22121.00", "0.00", "2.000"]
    assert page.locator("#stage .complaint").is_hidden()
    assert page.evaluate(f"{VIEW}.mixMark.u") != 0
    change = f"weights => {VIEW}.set({{ mix: {{ ...{VIEW}.state.mix, weights }} }})"
    for far, said in ((40, True), (0.5, False)):
        page.evaluate(change, {first: far, second: 1 - far, **dict.fromkeys(rest, 0)})
        idle(page)
        words = page.text_content("#stage .what-if ~ .small:not(.end-words)")
        assert ("Their mark is beyond this plane." in words) == said
    nothing = {first: 1, second: -1, **dict.fromkeys(rest, 0)}
    page.evaluate(change, nothing)
    idle(page)
    assert "sum to 0" in page.text_content("#stage .what-if") and page.evaluate(f"{VIEW}.mixMark") is None


def test_weights_are_dropped_at_another_round(opened):
    page = opened("#round=2&view=map")
    slide(page)
    idle(page)
    assert "mix=" in page.evaluate("location.hash")
    said = page.text_content("#stage .what-if")
    assert "the round's own weights" in said and " ± " in said
    assert ("no clear difference" in said) == (page.get_attribute("#stage .what-if", "data-gain") == "")
    assert page.locator("#stage .mark.mix").count() == 1
    page.locator("#stage .curves").press("ArrowLeft")
    idle(page)
    assert "mix=" not in page.evaluate("location.hash")
    assert page.locator("#stage .mark.mix").count() == 0
