"""The figure of early warnings: a panel for each detector with numbers, and a word for the others."""

from __future__ import annotations

import tiny

from figures import gallery
from figures.gallery import early_warning
from figures.looks import look


def test_detectors_without_numbers_are_named_with_what_they_take(tmp_path):
    ds = gallery.load("early-warning").data([tiny.trained(tmp_path, "rounds=9")])
    with look.drawing(look.Look()) as drawn:
        figure = early_warning.draw(ds)
    assert len(figure.axes) == len(ds.detector) - 1
    (note,) = (note for note in drawn.notes if note.startswith("no numbers in the watched rounds"))
    assert note.endswith(": negative or huge running variances (takes batch normalisation in a recorded run)")
    with look.drawing(look.Look()) as drawn:
        early_warning.draw(ds.drop_sel(detector="variances"))
    assert not any("watched rounds" in note for note in drawn.notes)


def test_an_alarm_that_is_infinite_is_named_where_it_cannot_be_drawn(tmp_path):
    ds = gallery.load("early-warning").data([tiny.trained(tmp_path, "rounds=9")])
    infinite = ds.statistic.where(ds.detector != "client", float("inf"))
    with look.drawing(look.Look()) as drawn:
        figure = early_warning.draw(ds.assign(statistic=infinite))
    assert len(figure.axes) == len(ds.detector) - 2
    (note,) = (note for note in drawn.notes if note.startswith("no numbers in the watched rounds"))
    assert "log longest / second update (infinite, an alarm)" in note
