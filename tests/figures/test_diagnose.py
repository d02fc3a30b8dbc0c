"""fedscape diagnose."""

import json

from figures.commands.diagnose import WIDTH


def test_a_diagnosis_fits_one_screen_and_tells_its_cost_before(fedscape, runs):
    code, out, err = fedscape("diagnose", runs[0].folder)
    lines = out.splitlines()
    assert code == 0 and runs[0].name in lines[0]
    assert len(lines) <= 40 and max(map(len, lines)) <= WIDTH
    assert "interventions of" in err and "trainings" in err
    for heading in ("POSSIBLE CAUSES", "STATE", "centre of the basin", "training itself", "figure "):
        assert heading in out


def test_quick_says_that_nothing_was_trained(fedscape, runs):
    code, out, _ = fedscape("diagnose", runs[1].folder, "--quick")
    assert code == 0 and "Causes were not tested" in out and "POSSIBLE CAUSES" not in out


def test_json_has_causes_and_findings(fedscape, runs):
    code, out, _ = fedscape("diagnose", runs[0].folder, "--json")
    content = json.loads(out)
    assert code == 0 and {"first", "causes", "findings", "broken"} <= set(content)
    assert {"name", "gain", "clear", "test"} <= set(content["causes"][0])


def test_figures_that_it_names_exist(fedscape, runs):
    from figures.gallery import names

    content = json.loads(fedscape("diagnose", runs[0].folder, "--json")[1])
    assert {one["figure"] for one in (*content["causes"], *content["findings"])} <= set(names())


def test_a_mistake_gets_one_line_and_code_2(fedscape, tmp_path):
    code, out, err = fedscape("diagnose", "nothing", "--runs", tmp_path)
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.startswith("fedscape: no run named 'nothing'")
