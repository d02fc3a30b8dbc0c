"""What is odd about the batch statistics of a run's global model: negative variances, those of one client alone."""

import torch

from drift.runs.run import Run
from drift.store.round_headers import has_buffers
from drift.store.round_record import Round
from landscape.model.buffers import VARIANCE, negative_variance
from landscape.model.layout import Layout
from landscape.model.model import buffers_of


def statistics_remark(run: Run) -> str:
    """A sentence about the last global model that was kept; empty if nothing is odd or no model was kept.

    `fedscape show`, `fedscape diagnose` and the notes below pictures of models state it.
    """
    if not (rounds := run.kept("globals")) or not has_buffers(run.folder, rounds[-1]):
        return ""
    record = run.round(rounds[-1])
    if record.end is None or (buffers := buffers_of(record.end)) is None:
        return ""
    what = f"the global model of round {record.index}"
    try:
        layout = run.layout if "buffers" in run.about else run.task.layout
    except (LookupError, ValueError) as reason:  # of a run without its data, or with code that is not trusted
        return f"the batch statistics of {what} were not checked: {str(reason).rstrip('.')}"
    if layer := negative_variance(buffers, layout):
        return f"{VARIANCE} of layer {layer} is negative in {what}, which has no loss (a server optimiser moved it)"
    client, layers = _one_client(record, layout)
    names = ", ".join(layers[:3]) + (f" and {len(layers) - 3} more" if len(layers) > 3 else "")
    which = f"of layer{'s' * (len(layers) > 1)} {names} "
    return f"the batch statistics {which}of {what} are those of client {client} alone" if layers else ""


def _one_client(record: Round, layout: Layout) -> tuple[int, list[str]]:
    """The first client whose buffers some layers of the global model have, alone of several, and these layers."""
    rows, end = record.client_buffers, record.end_buffers
    if len(rows) < 2 or rows.shape[-1] != end.shape[-1] or not bool(torch.isfinite(rows).all()):
        return -1, []
    equal = dict[str, torch.Tensor]()
    for name, entries in layout.named_buffers(torch.arange(len(end))).items():
        layer, here = name.rpartition(".")[0] or "itself", entries.flatten()
        equal[layer] = equal.get(layer, torch.ones(len(rows), dtype=torch.bool)) & (rows == end)[:, here].all(1)
    owners = {layer: int(same.int().argmax()) for layer, same in equal.items() if int(same.sum()) == 1}
    first = next(iter(owners.values()), -1)
    return int(record.ids[first]), [layer for layer, owner in owners.items() if owner == first]
