"""What the line below a picture says of several partitions and seeds."""

import pytest

from figures.selection import identity


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (
            ["Dir(0.1), 5 of 20 clients per round", "iid, 5 of 20 clients per round"],
            "2 partitions: Dir(0.1); iid; each with 5 of 20 clients per round",
        ),
        (
            ["iid, 5 of 20 clients per round", "iid, 9 of 20 clients per round"],
            "2 partitions and cohorts: iid, 5 of 20 clients per round; iid, 9 of 20 clients per round",
        ),
        (["period drift, Dir(0.1), 5 of 20 clients per round"], "period drift, Dir(0.1), 5 of 20 clients per round"),
    ],
)
def test_the_cohort_is_stated_once_where_it_is_that_of_all_partitions(monkeypatch, texts, line):
    monkeypatch.setattr(identity, "_partition", lambda run: tuple(run.rsplit(", ", 1)))
    assert identity._partitions(texts) == line


def test_data_and_models_of_several_runs_are_told_from_each_other(numbers):
    assert numbers("accuracy-table").attrs["identity_data"].startswith("blobs, linear; ")


def test_four_successive_seeds_are_a_range():
    assert identity._shortened(["3", "4", "5", "6"]) == ["3 to 6"]
    for seeds in (["0", "1", "2"], ["0", "1", "2", "4"], ["not said", "1", "2", "3"]):
        assert identity._shortened(seeds) == seeds
