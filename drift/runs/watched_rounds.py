"""The numbers of a recorded round that may stop a training, and that the early warning reads."""

from math import nan

from drift.record.early_warning import broken_share, warning_numbers
from drift.runs.metric_names import under_usual
from drift.runs.run import Run
from drift.store import files
from drift.store.round_headers import has_buffers
from drift.store.round_record import Round


def watched_numbers(run: Run, record: Round) -> dict[str, float]:
    """The metrics of a round, and the numbers that the early warning reads.

    Running variances are those of rounds of other programs that kept the global model: no method of this package moves
    them below 0.
    """
    loss, negative = under_usual(record.metrics, run.metric_names).get("loss", nan), nan
    if (entries := run.about.get("buffers")) and has_buffers(run.folder, record.index):
        stored = files.read_round(run.folder, record.index)
        negative = nan if stored.end is None else broken_share(stored.end_buffers.numpy(), entries)
    excluded, sizes = len(record.extras.get("excluded", ())), record.sizes.numpy()
    known = warning_numbers(record.gram.numpy(), sizes, excluded=excluded, negative=negative, loss=float(loss))
    return {**record.metrics, **known}
