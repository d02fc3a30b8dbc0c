"""The explorer of a notebook cell, without a notebook: messages, selection, and what is stored."""

from __future__ import annotations

import json
import re
import shutil
import time

import pytest
import tiny

pytest.importorskip("anywidget", reason="no anywidget here; pip install 'fedscape[explore]'")

import figures
from figures.explore.address import address_of, selection_of
from figures.explore.work.open_runs import OpenRuns

RUNS = ["fedavg-a-s0-1", "ima-b,c-s0-2"]


@pytest.fixture
def cell(tmp_path):
    """An explorer, and what it sends."""
    run = tiny.trained(tmp_path)
    explorer = figures.explorer(run)
    explorer.sent = sent = []
    explorer.send = sent.append
    yield explorer
    explorer.close()


def answer(explorer, page, number):
    """The answer to an ask of a page."""
    ends = time.monotonic() + 60
    while True:
        for content in list(explorer.sent):
            message = content.get("message", {})
            if content["page"] == page and message.get("id") == number and {"value", "error"} & message.keys():
                return message
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_page_of_a_cell_is_told_that_it_is_heard_and_gets_its_own_answers(cell):
    for page in ("a", "b"):
        cell._handle_custom_msg({"page": page, "begin": True}, [])
        assert {"page": page, "began": True} in cell.sent
    cell._handle_custom_msg({"page": "a", "message": {"id": 1, "ask": "scene"}}, [])
    cell._handle_custom_msg({"page": "b", "message": {"id": 1, "ask": "sceen"}}, [])
    assert [run["state"] for run in answer(cell, "a", 1)["value"]["runs"]] == ["complete"]
    assert "sceen" in answer(cell, "b", 1)["error"]
    assert {"page": "a", "heard": True} in cell.sent


def test_the_oldest_page_is_forgotten_and_a_closed_cell_answers_none(cell):
    for page in "abcde":
        cell._handle_custom_msg({"page": page, "begin": True}, [])
    assert [*cell._sessions] == [*"bcde"]
    sessions = list(cell._sessions.values())
    cell.close()
    assert all(session._closed.is_set() for session in sessions)


def test_what_a_notebook_stores_of_a_cell_is_small(cell):
    assert len(json.dumps(cell.get_state(), default=str)) < 4e5


def test_a_saved_notebook_has_the_picture_of_the_page_and_a_line(cell, monkeypatch):
    shown, changed = [], []

    class Handle:
        def update(self, data, raw):
            changed.append(data)

    def display(data, **options):
        shown.append(data)
        return Handle() if options.get("display_id") else None

    monkeypatch.setattr("IPython.display.display", display)
    cell._ipython_display_()
    cell._handle_custom_msg({"picture": "aGVsbG8="}, [])
    assert "when this cell is run" in shown[0]["text/html"] and "application/vnd.jupyter.widget-view+json" in shown[2]
    assert [data["image/png"] for data in changed] == ["aGVsbG8="]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Two runs of three rounds with four clients, three of them a round."""
    made, folder = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("runs")
    run = tiny.trained(made)
    for name in RUNS:
        shutil.copytree(run.folder, folder / name)
    return OpenRuns([folder])


def test_a_selection_is_read_as_it_is_shown(opened):
    fields = {"round": 2, "runs": RUNS, "look": RUNS[1], "view": "relief", "metric": "class 3", "point": [0.5, -2.0]}
    address = address_of("#filter=ima", fields, opened)
    assert "filter=ima" in address and "ima-b%2Cc-s0-2" in address
    assert selection_of(address) == fields
    ids = opened.run(RUNS[1]).round(2).ids.tolist()
    weights = dict(zip(ids, (0.25, 0.5, 0.25), strict=True))
    weighted = address_of(address, {"weights": weights, "gamma": 0.5}, opened)
    assert weighted.endswith(f"mix=ima-b%2Cc-s0-2,2,0.5,{','.join(f'{k}:{v}' for k, v in weights.items())}")
    assert selection_of(weighted) == {**fields, "weights": weights, "gamma": 0.5}
    assert selection_of(address_of(weighted, {"weights": None, "point": None}, opened)).keys() == fields.keys() - {
        "point"
    }


def test_a_run_that_is_looked_at_comes_on_the_stage_beside_those_there(opened):
    alone = address_of("", {"runs": RUNS[:1]}, opened)
    assert selection_of(address_of(alone, {"look": RUNS[1]}, opened)) == {"runs": RUNS, "look": RUNS[1]}


def test_a_negative_round_counts_from_the_last(opened):
    assert selection_of(address_of("", {"round": -1, "runs": RUNS[:1]}, opened))["round"] == 2
    weights = dict.fromkeys(opened.run(RUNS[1]).round(1).ids.tolist(), 0.5)
    stated = selection_of(address_of("", {"round": -2, "look": RUNS[1], "weights": weights}, opened))
    assert stated["round"] == 1 and stated["weights"] == weights


@pytest.mark.parametrize("given", [3, None, [None]])
def test_what_is_no_run_is_refused_in_a_line(given):
    with pytest.raises(ValueError, match="give a run, its folder, a folder of runs, or several of them"):
        figures.explorer(given)


REFUSED = [
    ({"rond": 3}, "round"),
    ({"round": -4}, "round is -4; give the number of a round."),
    ({"round": 99}, "round is 99; give one that has a landscape: 0 to 2."),
    ({"client": 77}, "client is 77; give 0 to 3."),
    ({"client": "x"}, "client is 'x'; give the number of a client."),
    ({"view": "triangle"}, "view is 'triangle'; give map, relief, difference, path, models."),
    ({"metric": "f1"}, "metric is 'f1'; give loss, error or class 3."),
    ({"model": "nosuch"}, "give end, start, aggregate, point, weights or client 3."),
    ({"runs": ["fedavg"]}, "fedavg-a-s0-1"),
    ({"runs": []}, "runs are none; give 1 to 4."),
    ({"runs": [RUNS[0]] * 5}, "give 1 to 4."),
    ({"runs": RUNS[:1], "look": RUNS[1]}, "look is 'ima-b,c-s0-2'; give a run on the stage: fedavg-a-s0-1."),
    ({"point": [1.0]}, "u and v"),
    ({"point": [1.0, float("nan")]}, "point is nan; give a number of at most 1e+30."),
    ({"weights": {3: 1}}, "look= and round="),
    ({"round": 1, "look": RUNS[0], "weights": [1, 2]}, "by client"),
    ({"round": 1, "look": RUNS[0], "weights": {99: 1.0}}, "weights are of clients 99; give those of "),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_a_field_that_is_not_accepted_is_one_line_in_plain_words(opened, fields, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        address_of("", fields, opened)
    assert not re.search(r"[\\|\n]|\.\+", str(refused.value)), "no regular expression"


@pytest.mark.parametrize("value", [11, -11, 1e300])
def test_weights_are_as_large_as_the_page_takes_them(opened, value):
    weights = dict.fromkeys(opened.run(RUNS[0]).round(1).ids.tolist(), 0.5)
    stated = {"round": 1, "look": RUNS[0]}
    first = next(iter(weights))
    for fields in ({"weights": dict.fromkeys(weights, 0)}, {"weights": weights, "gamma": 0}):
        with pytest.raises(ValueError, match="neither gamma nor the sum of the weights may be 0"):
            address_of("", {**stated, **fields}, opened)
    for fields in ({"weights": {**weights, first: value}}, {"weights": weights, "gamma": value}):
        with pytest.raises(ValueError, match="give a number of at most 10"):
            address_of("", {**stated, **fields}, opened)
