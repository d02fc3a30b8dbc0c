"""The selection: what the address contains comes back, and followers are called once per change."""

import numpy as np
import pytest

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
from hypothesis import given
from hypothesis import strategies as st

from figures.explore.shell.selection import DEFAULTS, FIELDS, Selection

NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12)
FINITE = st.floats(-1e6, 1e6).map(lambda number: float(f"{number:.6g}"))
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "runs": st.lists(NAMES, max_size=4),
        "round": st.integers(0, 10**6),
        "clients": st.lists(st.integers(0, 10**4), max_size=5),
        "client": st.integers(0, 10**4),
        "corners": st.lists(NAMES, max_size=3),
        "point": st.lists(FINITE, max_size=3),
        "gamma": FINITE,
        "model": NAMES,
        "plane.depth": NAMES,
    },
)


@given(CHANGES)
def test_an_address_gives_the_selection_back(changes):
    selection, again = Selection(), Selection()
    selection.change(**changes)
    assert again.read("?" + selection.query) == []
    assert again.fields() == selection.fields()
    assert again.query == selection.query


def test_an_untouched_selection_needs_no_query():
    assert Selection().query == ""
    assert {name: getattr(Selection(), name) for name in FIELDS} == DEFAULTS


def test_followers_are_called_once_with_what_differs():
    selection, calls = Selection(), []
    selection.follow(calls.append)
    selection.change(round=3, clients=(1, 4), view="runs")
    selection.change(round=3)
    selection.change(**{"plane.depth": "3d"})
    assert calls == [{"round", "clients"}, {"looks", "plane.depth"}]
    assert selection.look("plane.depth") == "3d"
    selection.change(**{"plane.depth": ""})
    assert selection.looks == {}


def test_what_a_follower_changes_is_reported_to_all_afterwards():
    selection, calls = Selection(), []

    def normalise(changed):
        if "round" in changed:
            selection.change(clients=[])

    selection.change(clients=[1])
    selection.follow(normalise)
    selection.follow(calls.append)
    selection.change(round=2)
    assert calls == [{"round"}, {"clients"}]


def test_arrays_and_whole_numbers_are_accepted():
    selection = Selection()
    selection.change(weights=np.array([1, 2]), clients=np.arange(2), round=np.int64(4), gamma=1)
    assert (selection.weights, selection.clients, selection.round) == ([1.0, 2.0], [0, 1], 4)
    assert all(type(weight) is float for weight in selection.weights)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rounds_": 1}, "no field 'rounds_'"),
        ({"round": -1}, "round = -1 is not accepted"),
        ({"clients": ["a"]}, r"clients = \['a'\] is not accepted"),
        ({"weights": [float("nan")]}, "weights = "),
        ({"gamma": float("inf")}, "gamma = inf is not accepted"),
    ],
)
def test_wrong_values_are_refused_whole(fields, message):
    selection = Selection()
    with pytest.raises(ValueError, match=message):
        selection.change(view="plane", **fields)
    assert selection.view == "runs"


def test_an_address_with_wrong_parts_gives_lines_and_the_rest():
    selection = Selection()
    problems = selection.read("?round=x&clients=1,a&gamma=nan&foo=1&view=plane&token=secret&name=x")
    assert selection.fields() == {**DEFAULTS, "view": "plane"}
    assert [problem.split(",")[0] for problem in problems] == [
        "the address has round=x",
        "the address has clients=1",
        "the address has gamma=nan",
        "the address has foo",
        "the address has name",
    ]


def test_lists_of_two_selections_are_not_shared():
    first, second = Selection(), Selection()
    first.change(clients=[1])
    assert second.clients == [] and DEFAULTS["clients"] == []
