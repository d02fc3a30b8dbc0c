"""A round's file that is begun before the round is trained, so that each client model is written once, to its place.

Where the models stand depends on the header, and so on names and shapes of all that the round will record. They are
those of the round before; a round that records something else is written in one go, by blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drift.store import digests, files, links, memory_budget
from drift.store.client_rows import ClientRows, FileRows, MemoryRows, RowFile
from drift.store.file_layout import Form, layout
from drift.store.keep import Keep
from drift.store.paths import round_path
from drift.store.round_record import CLIENTS, Round
from landscape.results.atomic_write import temporary_name

_META = torch.device("meta")


@dataclass
class RoundFiles:
    """The rows of a run's rounds, each in the round's own file where the cohort does not fit the budget.

    Args:
        folder: Folder of the run.
        keep: Which rounds keep which models.
        rounds: Number of rounds of the run.
        run: Identity of the run, as `drift.store.links.identity` returns it.
        before: Link of the round before the next one, computed when it is needed.
    """

    folder: Path
    keep: Keep
    rounds: int
    run: str
    before: Callable[[], str]
    _last: dict[bool, dict[str, Any]] = field(default_factory=dict)  # by whether the round evaluated the model

    def rows(self, expected: Round) -> ClientRows:
        """Rows for the client models of a round.

        Args:
            expected: The round, as far as it is known before training; its tensors may be on the device "meta".
        """
        number, start = len(expected.ids), expected.kept("start")
        if memory_budget.fits(start.dtype, (number, len(start))):
            return MemoryRows(number)
        path = temporary_name(round_path(self.folder, expected.index))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # left by a stopped process
        path.touch(exist_ok=False)
        forms, text = self._content(expected)
        before = digests.digest_before("clients", forms, text)
        return FileRows(RowFile(path, self._offset(forms, text), start.nbytes), number, start, before)

    def learn(self, record: Round, link: Callable[[], str]) -> None:
        """Remember names and shapes of what a round recorded, for those after it, and its link."""
        self.before = link
        self._last[_evaluated(record.metrics)] = {
            "metrics": dict.fromkeys(record.metrics, 0.0),
            "extras": _forms(record.extras),
            "carried": _forms(record.carried),
        }

    def _content(self, expected: Round) -> tuple[dict[str, Form], str]:
        """Forms of the tensors that the file will contain, and its description; no forms if models are rounded."""
        if self.keep.dtype != "float32":
            return {}, ""
        expected = replace(expected, **self._last.get(_evaluated(expected.metrics), {}))
        tensors, about = files.round_content(expected, self.keep, self.rounds)
        about |= links.origin(self.run, self.before())
        forms = {name: (str(value.dtype).removeprefix("torch."), tuple(value.shape)) for name, value in tensors.items()}
        return forms, json.dumps(about, sort_keys=True)

    def _offset(self, forms: dict[str, Form], text: str) -> int:
        """Byte at which the client models will stand in the file of the round; 0 if they will not, as they are."""
        if self.keep.compress or "clients" not in forms:
            return 0
        return layout(forms, digests.metadata({}, text)).places["clients"].begin


def expected_round(
    index: int,
    number: int,
    start: Tensor,
    buffers: Tensor,
    *,
    metrics: Iterable[str],
    sent: Mapping[str, Tensor],
) -> Round:
    """A round of `number` clients before it is trained: forms without content, but for what clients receive.

    Args:
        start, buffers: What clients receive, shapes (d,) and (b,).
        metrics: Names of the numbers that will be recorded.
        sent: What clients receive in addition.
    """
    size = CLIENTS + number
    return Round(
        index=index,
        ids=_empty(torch.int64, number),
        sizes=_empty(torch.int64, number),
        weights=_empty(torch.float64, number),
        gram=_empty(torch.float64, size, size),
        metrics=dict.fromkeys(metrics, 0.0),
        start=start,
        end=start,
        clients=_empty(start.dtype, number, len(start)),
        start_buffers=buffers,
        end_buffers=buffers,
        client_buffers=_empty(buffers.dtype, number, len(buffers)),
        sent=dict(sent),
    )


def _empty(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.empty(*shape, dtype=dtype, device=_META)


def _evaluated(metrics: Mapping[str, Any]) -> bool:
    return "loss" in metrics


def _forms(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to(_META) for name, value in tensors.items()}
