"""What is told of a long computation."""

from landscape.results.progress import with_progress


def test_items_are_counted_when_they_are_done():
    told = []
    for item in with_progress(["a", "b"], lambda done, total: told.append((done, total))):
        told.append(item)
    assert told == [(0, 2), "a", (1, 2), "b", (2, 2)]
    assert list(with_progress(["a", "b"], None)) == ["a", "b"]


def test_what_breaks_off_is_not_told_to_be_done():
    told = []
    for _ in with_progress([1, 2, 3], lambda *steps: told.append(steps)):
        break
    assert told == [(0, 3)]
