"""fedscape diagnose."""

import json
import re

import pytest

from drift.analyses.over_seeds import INTERVAL, Estimate
from drift.analyses.rounds.run_state import STATES
from drift.diagnosis.diagnose import Diagnosis
from drift.diagnosis.finding import finding
from figures.commands.diagnose import WIDTH
from figures.page.diagnosis_text import interval, number, percent, verdict


def test_a_diagnosis_fits_one_screen_and_tells_its_cost_before(fedscape, runs):
    code, out, err = fedscape("diagnose", runs[0].folder)
    lines = out.splitlines()
    assert code == 0 and runs[0].name in lines[0]
    texts = [line for line in lines if not line.startswith("    fedscape ")]  # a command is one line, to be copied
    assert len(lines) <= 42 and max(map(len, texts)) <= WIDTH
    assert "interventions of" in err and "trainings" in err
    said = " ".join(out.split())
    assert f"[{INTERVAL}] over seeds or rounds; rounds are not independent" in said
    assert re.search(r"the best factor on other data, \S+, gains \(clear above 0\.\d+\)", said)
    for heading in (
        "FOLLOWED (clear: every seed gains, beyond another seed)",
        "STATE",
        "centre of the basin",
        "where training stands",
        "figure ",
    ):
        assert heading in out


def test_quick_says_that_nothing_was_trained(fedscape, runs):
    code, out, _ = fedscape("diagnose", runs[1].folder, "--quick")
    assert code == 0 and "Causes were not tested" in out and "FOLLOWED" not in out


def test_json_has_causes_and_findings(fedscape, runs):
    code, out, _ = fedscape("diagnose", runs[0].folder, "--json")
    content = json.loads(out)
    assert code == 0 and {"first", "causes", "findings", "broken"} <= set(content)
    assert {"name", "gain", "clear", "test", "placebo", "command"} <= set(content["causes"][0])
    assert all(cause["command"].startswith("fedscape ") for cause in content["causes"])


def test_figures_that_it_names_exist(fedscape, runs):
    from figures.gallery import names

    content = json.loads(fedscape("diagnose", runs[0].folder, "--json")[1])
    assert {one["figure"] for one in (*content["causes"], *content["findings"])} <= set(names())


def test_a_mistake_gets_one_line_and_code_2(fedscape, tmp_path):
    code, out, err = fedscape("diagnose", "nothing", "--runs", tmp_path)
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.startswith("fedscape: no run named 'nothing'")


@pytest.mark.parametrize("value", [0.0, -0.0, -0.004, 1.5e23, -1.5e23, 3e-7, 12345.678, float("nan"), float("inf")])
def test_numbers_have_no_exponent_and_zero_no_sign(value):
    for text in (number(value, sign=True), percent(value), interval(value, value, value, "nats")):
        assert not re.search(r"\de[+-]?\d|-0([^.\d]|$)|nan|inf", text), text


@pytest.mark.parametrize("state", STATES)
def test_the_state_comes_first(state):
    fall = Estimate(0.012, 0.01, 0.014, 8)
    training = finding("training", "learns", "gain", fall, "nats", "accuracy-rounds")
    found = Diagnosis(
        "r", 9, 4, 2, 8, 1.0, 0.5, "nats", state, fall, False, (), findings=(training,), untested="", memory="anew"
    )
    said = verdict(found)
    assert said.startswith("No clear cause" if state == "not known" else ("Training", "Not finished"))
    assert ("expected to gain +0.012 [+0.01, +0.014] nats" in said) == (state == "still learning")
    assert "memory" in said


def test_advice_can_be_followed_as_it_is_printed(fedscape, runs, tmp_path):
    content = json.loads(fedscape("diagnose", runs[0].folder, "--json")[1])
    command = next(cause["command"] for cause in content["causes"] if cause["command"].startswith("fedscape train"))
    code, out, _ = fedscape(*command.split()[1:], "--runs", tmp_path, "--json")
    assert code == 0 and json.loads(out)["rounds"] == runs[0].experiment.rounds
