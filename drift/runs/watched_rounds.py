"""The numbers of recorded rounds that may stop a training, and that the early warning reads."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

from drift.record.early_warning import Stop, Watch, negative_share, stop_test, warning_numbers
from drift.runs.metric_names import under_usual
from drift.runs.run import Run
from drift.store import files
from drift.store.round_headers import has_buffers
from drift.store.round_record import Round


def stop_after(run: Run, stop: Stop | str | None) -> Callable[[Round], str | None]:
    """What says after each further round of a run why to stop; the early warning also sees the rounds before.

    Raises:
        ValueError: If `stop` is an unknown text.
    """
    test = stop_test(stop, run.experiment.rounds)
    if isinstance(test, Watch):
        for record in run.without_models(run.rounds()):
            test.add(record.index, watched_numbers(run, record))
    return lambda record: None if test is None else test(record.index, watched_numbers(run, record))


def watched_numbers(run: Run, record: Round) -> dict[str, float]:
    """The metrics of a round, and the numbers that the early warning reads."""
    loss = under_usual(record.metrics, run.metric_names).get("loss", nan)
    known = warning_numbers(
        record.gram.numpy(),
        run.experiment.cohort_weights(record.sizes).numpy(),
        excluded=len(record.extras.get("excluded", ())),
        negative=_negative(run, record.index),
        loss=float(loss),
    )
    return {**record.metrics, **known}


def _negative(run: Run, index: int) -> float:
    """Fraction of negative running variances in a round of another program, NaN where it kept no global model.

    No method of this package moves them below 0.
    """
    if not (entries := run.about.get("buffers")) or not has_buffers(run.folder, index):
        return nan
    record = files.read_round(run.folder, index)
    return nan if record.end is None else negative_share(record.end_buffers.numpy(), entries)
