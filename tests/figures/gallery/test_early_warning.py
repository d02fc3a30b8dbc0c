"""The figure of early warnings: a panel for each detector with numbers, and a word for the others."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

import drift
from drift.record.recorder import Recorder
from figures import gallery
from figures.gallery import early_warning
from figures.looks import look


def test_detectors_without_numbers_are_named_with_what_they_take(tmp_path):
    ds = gallery.load("early-warning").data([tiny.trained(tmp_path, "rounds=9")])
    with look.drawing(look.Look()) as drawn:
        figure = early_warning.draw(ds)
    assert len(figure.axes) == len(ds.detector) - 1
    assert sum(ax.get_title() == "no alarm" for ax in figure.axes) == int(ds.first_alarm.isnull().sum()) - 1
    (note,) = (note for note in drawn.notes if note.startswith("no numbers in the watched rounds"))
    assert note.endswith(": negative or huge running variances (takes batch normalisation in a recorded run)")
    with look.drawing(look.Look()) as drawn:
        early_warning.draw(ds.drop_sel(detector="variances"))
    assert not any("watched rounds" in note for note in drawn.notes)


def test_an_alarm_that_is_infinite_has_its_ring_and_a_word_in_a_run_of_one_round(tmp_path):
    start, broken = ({"w": np.full(6, value, np.float32)} for value in (1, np.nan))
    Recorder(tmp_path, start).round(start=start, clients={0: (broken, 10), 1: (broken, 10)}, end=start)
    ds = gallery.load("early-warning").data([drift.open(tmp_path)])
    assert ds.first_alarm.sel(detector="client").item() == 0
    with look.drawing(look.Look()) as drawn:
        figure = early_warning.draw(ds)
    (ax,) = figure.axes
    assert ax.get_ylabel() == "log longest / second update"
    assert ax.get_title().startswith("alarm: ") and ax.get_title().endswith(", round 0")
    (ring,) = (line for line in ax.lines if line.get_label() == "first alarm")
    assert ring.get_xdata() == [0]
    assert ax.get_ylim()[0] < ring.get_ydata()[0] < ax.get_ylim()[1]
    assert [tick for tick in ax.get_xticks() if -0.5 <= tick <= 0.5] == [0]
    assert "infinite, an alarm with its ring at the upper edge: log longest / second update" in drawn.notes


def test_a_run_that_did_not_move_is_refused_with_what_each_detector_takes(tmp_path):
    start, recorder = {"w": np.ones(6, np.float32)}, Recorder(tmp_path)
    recorder.round(start=start, clients=dict.fromkeys(range(3), (start, 10)), end=start)
    ds = gallery.load("early-warning").data([drift.open(tmp_path)])
    with pytest.raises(LookupError, match=r"log global step / model \(takes a model that moved\)"):
        early_warning.draw(ds)
