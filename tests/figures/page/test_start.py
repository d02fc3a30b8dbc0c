"""A page begins with the round, the samples and the seeds that an address states."""

import packed_pages
import pytest
import tiny

from figures.page import carried_models
from figures.page.report import report
from figures.page.start import Start, round_of_all
from figures.selection.groups import groups


def test_an_address_states_round_samples_grid_and_quantity():
    start = Start.read("#round=12&view=map&points=9&samples=all&split=client%203&metric=class%207&seeds=a,b", 15, 1000)
    assert (start.round, start.seeds) == (12, ["a", "b"])
    assert start.how == {"points": 9, "samples": None, "split": "client 3", "quantity": "class 7"}
    assert Start.read("", 4, 20).how == {"points": 4, "samples": 20, "split": "test", "quantity": "loss"}
    assert Start.read("#metric=error", 4, 20).how["quantity"] == "loss", "the error is on every landscape"


def test_the_round_is_on_the_stage_beside_those_that_are_evenly_spaced(runs, monkeypatch):
    monkeypatch.setattr("figures.page.start.ROUNDS", 2)
    monkeypatch.setattr("figures.page.start.MOST", 2)
    begins = {round: Start.read(f"#round={round}", 4, 20) for round in (1, 2, 9)}
    assert Start.read("", 4, 20).rounds(runs[0]) == [0, 2] and begins[1].rounds(runs[0]) == [0, 1, 2]
    assert begins[9].rounds(runs[0]) == [0, 2] and begins[9].first([0, 4]) == 4
    assert begins[2].first([1, 3]) == 1, "the lower of two that are as near, as the stage has it"


def test_a_small_model_has_more_rounds(runs, monkeypatch):
    rounds = Start.read("", 15, 1000).rounds
    monkeypatch.setattr("figures.page.start.ROUNDS", 2)
    assert rounds(runs[0]) == [0, 1, 2]
    work = runs[0].layout.size * len(runs[0].task.split("test")) * 15**2
    monkeypatch.setattr("figures.page.start.WORK", 2.5 * work)
    assert rounds(runs[0]) == [0, 2], "as many as the work allows"
    monkeypatch.setattr("figures.page.start.WORK", 0)
    assert rounds(runs[0]) == [0, 2], "and at least these"


def test_models_of_the_round_come_first(runs, monkeypatch):
    start, grouped = Start.read("#round=1", 4, 1000), groups(runs[:2])
    monkeypatch.setattr(carried_models, "MORE", 1)
    shown = {"runs": [{"key": name, "shown": {str(index): {"plane": 1} for index in range(3)}} for name in grouped]}
    (run,) = carried_models.with_models(shown, grouped, start)["runs"]
    assert [index for index, frame in run["shown"].items() if "carried" in frame] == [1]
    monkeypatch.undo()
    for address, wanted in (("#round=1", [0, 1, 2]), ("#round=1&split=client%200", [1])):
        start = Start.read(address, 4, 1000)
        shown = {"runs": [{"key": name, "shown": {str(index): {"plane": 1} for index in range(3)}} for name in grouped]}
        (run,) = carried_models.with_models(shown, grouped, start)["runs"]
        assert [index for index, frame in run["shown"].items() if "carried" in frame] == wanted, "one set of samples"


def test_a_report_begins_where_its_address_says(runs, tmp_path):
    path = report(
        runs[:1], tmp_path / "page.html", points=3, samples=20, address="#round=1&split=train", what_if={"of": [1]}
    )
    scene = packed_pages.content(path.read_text(), "scene")
    assert (scene["start"], scene["split"]) == ("#round=1&split=train", "train")
    assert scene["what_if"] == {"of": [1]}
    assert {frame["split"] for frame in scene["runs"][0]["shown"].values()} == {"train"}
    assert [one["name"] for one in scene["runs"][0]["names"]] == [runs[0].name]


def test_the_round_of_a_page_is_one_of_all_its_runs_that_have_landscapes(runs, tmp_path):
    bare = tiny.trained(tmp_path, "keep.clients=none")
    short = tiny.trained(tmp_path / "short", "rounds=2")
    assert [round_of_all([bare, *runs], index) for index in (1, -1)] == [1, 2]
    for some, index in ((runs, 7), ([*runs, short], -1)):
        with pytest.raises(LookupError, match=f"has no round {index if index > 0 else 2}; it has 0 to "):
            round_of_all(some, index)
    with pytest.raises(LookupError, match="kept no clients in round 1"):
        round_of_all([bare], 1)


def test_an_address_that_states_no_number_is_refused():
    with pytest.raises(ValueError, match="invalid literal"):
        Start.read("#round=x", 15, 1000)
