"""Flower apps recorded as runs: a strategy that records, and a mod that sends client numbers.

Works with the message interface (`flwr.serverapp.strategy`). It needs numpy only, as Flower pins its dependencies.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from drift.record.early_warning import Stop, stop_test
from drift.record.flat_arrays import State, arrays_by_name
from drift.record.recorder import Recorder
from drift.record.tensor_parts import Narrow, entry_index

__all__ = ["client_number", "recorded"]

Strategy = TypeVar("Strategy")

_LOG = logging.getLogger("flwr")
_NAME = "fedscape"
_FAILURES = (ValueError, LookupError, RuntimeError, OSError, TypeError, AttributeError)
_HOOKS, _ASKS = ("start", "configure_train", "aggregate_train", "aggregate_evaluate"), ("configure_evaluate",)


def recorded(
    strategy: Strategy,
    folder: str | Path | None = None,
    *,
    model: State | None = None,
    narrow: Callable[[Any], Narrow] = lambda message: True,
    stop: Stop | str | None = None,
    **options: Any,
) -> Strategy:
    """The strategy, which then records the global and client models of every round in `folder`.

        strategy = drift.recorded(FedAvg(), "runs/mine", name="mine", data="digits", seed=3, settings={"lr": 0.1})

    It is the same object with the same results. Of a strategy that wraps another one (differential privacy), either can
    be recorded: the outer one with the models that clients sent, the inner one with the changed models. If recording
    fails during training (as on a full disk), that is logged once, and training continues without it.

    Clients have their numbers if the ClientApp has the mod `client_number`, else those of nodes in order of appearance.
    Models have the type of `model` or of the first arrays, float32 as a rule. Metrics of an `evaluate_fn` keep their
    names; those of the clients begin with `clients_` and `train_`. `train_failed` counts replies with an error or
    without a model. Smaller tensors end the record, but for leading blocks that a client was sent (HeteroFL), and those
    that `narrow` states.

    Args:
        strategy: Any strategy, with or without its own `start`.
        folder: Folder of the run, continued if it has rounds; None: a new one in `runs`, named after the strategy.
        model: Module with frozen or tied parameters; None: by the names of the arrays, see `FlatArrays.of`.
        narrow: Of a message to a client, the indices of its smaller tensors by name, a list per axis: {"w": [[2, 0]]}.
        stop: "early warning", or a function as `Recorder` takes it. Its reason is logged, and no client asked again.
        options: Of `drift.record.recorder.Recorder`; the default of `method` is the name of the strategy's class.

    Raises:
        ValueError: If the folder has another kind of run, or the strategy is recorded already.
    """
    if isinstance(getattr(strategy, "start", None), _Hook):
        raise ValueError("the strategy is recorded already; call recorded() once.")
    if absent := [hook for hook in _HOOKS if not callable(getattr(strategy, hook, None))]:
        raise ValueError(_explain(strategy, absent[0]))
    options.setdefault("method", type(strategy).__name__)
    recorder = Recorder(folder or _new_folder(type(strategy).__name__), model, **options)
    stop_test(stop, 1)  # refuses an unknown word at once; the number of rounds is known where the training starts
    recording = _Recording(strategy, recorder, stop, narrow)
    for name in recording.original:
        setattr(strategy, name, _Hook(getattr(recording, name)))
    return strategy


def client_number(message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
    """Mod that sends the partition number of a client to the server: `ClientApp(mods=[client_number])`.

    Without it clients are nodes, whose numbers Flower draws for every run. Strategies do not read the record it adds.

    Args:
        message, context: As the ClientApp receives them.
        call_next: The ClientApp, or its next mod.
    """
    from flwr.app import ConfigRecord

    reply = call_next(message, context)
    if reply.has_content() and "partition-id" in context.node_config:
        reply.content[_NAME] = ConfigRecord({"client": int(context.node_config["partition-id"])})
    return reply


def _new_folder(name: str) -> Path:
    folders = (Path("runs") / f"{name.lower()}{f'-{number}' if number > 1 else ''}" for number in count(1))
    return next(folder for folder in folders if not folder.exists())


def _explain(strategy: Any, absent: str) -> str:
    name, new = type(strategy).__name__, "flwr.serverapp.strategy (since Flower 1.21)"
    if callable(getattr(strategy, "aggregate_fit", None)):
        advice = f"import {name} from {new}, with an app of messages, or use drift.Recorder in your aggregate_fit"
        return f"{name} is a strategy of Flower's earlier interface (flwr.server.strategy); {advice}."
    return f"{name} has no {absent}: it is not a strategy of Flower's message interface; derive one from {new}."


class _Hook(partial[Any]):
    """A method of a strategy that is recorded."""


class _Recording:
    """State of the recording of a strategy; a round is written when its last metric is known."""

    def __init__(self, strategy: Any, recorder: Recorder, stop: Any, narrow: Callable[[Any], Narrow]) -> None:
        self.strategy, self.recorder, self.stop, self.narrow = strategy, recorder, stop, narrow
        self.original = {name: getattr(strategy, name) for name in _HOOKS + _ASKS if hasattr(strategy, name)}
        self.begun, self.globals = dict[str, np.ndarray](), dict[str, np.ndarray]()
        self.blocks: dict[int, tuple[dict[str, Any], Narrow]] = {}
        self.pending: dict[str, Any] | None = None
        self.evaluated = self.stopped = False

    def start(self, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(self.original["start"]).bind(*args, **kwargs)
        if (initial := bound.arguments.get("initial_arrays")) is not None:
            self.recorder.require_start(arrays_by_name(initial))
        if self.stop is not None:
            bound.apply_defaults()
            rounds = bound.arguments.get("num_rounds")
            self.recorder.stop_by(self.stop, None if rounds is None else self.recorder.next + rounds)
            if self.recorder.stopped:
                _LOG.warning("fedscape stops the training: %s", self.recorder.stopped)
        if (evaluate := bound.arguments.get("evaluate_fn")) is not None:
            bound.arguments["evaluate_fn"], self.evaluated = self._evaluating(evaluate), True
        try:
            return self.original["start"](*bound.args, **bound.kwargs)
        finally:
            self._write()

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> list[Any]:
        self._write()
        if self.recorder.stopped:
            return []
        self.globals = arrays_by_name(arrays)
        messages = list(self.original["configure_train"](server_round, arrays, config, grid))
        sent = [self._model(message) for message in messages]
        complete = bool(sent) and self._shapes(sent[0]) == self._shapes(self.globals)
        stored = [{name: record[name].data for name in record or ()} for record in sent]
        alike = complete and all(data == stored[0] for data in stored)
        self.begun, self.blocks = arrays_by_name(sent[0]) if alike else self.globals, {}
        try:
            for message in [] if self.stopped else messages:
                self.blocks[message.metadata.dst_node_id] = self._blocks(message)
        except _FAILURES as reason:
            self._end(reason)
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> Any:
        if self.recorder.stopped:
            return None, None
        replies = list(replies)
        received = [] if self.stopped else list(filter(None, map(self._client, replies)))
        clients = {name: client for name, client, _ in received}
        unequal = {name: {"narrow": narrow} for name, _, narrow in received if narrow}
        arrays, metrics = result = self.original["aggregate_train"](server_round, replies)
        end = self.globals if arrays is None else arrays_by_name(arrays)
        self.pending = {"start": self.begun, "clients": clients, "end": end, "unequal": unequal}
        failed = {"train_failed": float(len(replies) - len(clients))} if len(clients) < len(replies) else {}
        self.pending["metrics"] = _numbers("train_", metrics) | failed
        return result

    def configure_evaluate(self, *args: Any, **kwargs: Any) -> Any:
        return [] if self.recorder.stopped else self.original["configure_evaluate"](*args, **kwargs)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Any]) -> Any:
        result = None if self.recorder.stopped else self.original["aggregate_evaluate"](server_round, replies)
        self._add(_numbers("clients_", result))
        if not self.evaluated:
            self._write()
        return result

    def _evaluating(self, evaluate: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
        def evaluate_and_note(server_round: int, arrays: Any) -> Any:
            result = None if self.recorder.stopped else evaluate(server_round, arrays)
            self._add(_numbers("", result))
            self._write()
            return result

        return evaluate_and_note

    def _add(self, metrics: Mapping[str, float]) -> None:
        if self.pending is not None:
            self.pending["metrics"] |= metrics

    def _write(self) -> None:
        """Record the pending round; if that fails, training continues without recording."""
        pending, self.pending = self.pending, None
        if pending is None or self.stopped:
            return
        try:
            self.recorder.round(**pending)
            if self.recorder.stopped:
                _LOG.warning("fedscape stops the training: %s", self.recorder.stopped)
        except _FAILURES as reason:
            self._end(reason)

    def _end(self, reason: Exception) -> None:
        self.stopped = True
        _LOG.warning("fedscape records no further rounds, training goes on: %s", reason)

    def _client(self, reply: Any) -> tuple[Any, tuple[State, int], Narrow] | None:
        """Name, model and number of samples in a reply, and whether its arrays are blocks; None without a model."""
        arrays = None if reply.has_error() else self._model(reply)
        if arrays is None:
            return None
        key = getattr(self.strategy, "weighted_by_key", "num-examples")
        counts = [record.get(key) for record in reply.content.metric_records.values()]
        sizes = [round(value) for value in counts if isinstance(value, int | float)]
        number = reply.content.config_records.get(_NAME)
        name = str(reply.metadata.src_node_id) if number is None else int(number["client"])
        shapes, narrow = self.blocks.get(reply.metadata.src_node_id, ({}, True))
        narrow = narrow if narrow is not True else self._shapes(arrays).items() <= shapes.items()
        return name, (arrays_by_name(arrays), sizes[0] if sizes else 1), narrow

    def _model(self, message: Any) -> Any:
        """The model in a message: the record with most arrays of the global model; None if it has none of them."""
        record = max(message.content.array_records.values(), key=lambda arrays: len(self._shapes(arrays)), default=None)
        return record if self._shapes(record) else None

    def _shapes(self, record: Any) -> dict[str, Any]:
        """Shapes of the arrays of the global model that are in a record."""
        return {name: tuple(record[name].shape) for name in self.globals if record is not None and name in record}

    def _blocks(self, message: Any) -> tuple[dict[str, Any], Narrow]:
        """Shapes of the arrays in a message if they are parts of larger ones, and where; none if they are not there."""
        record, largest, where = self._model(message), self._shapes(self.globals), self.narrow(message) or True
        shapes = self._shapes(record)
        smaller = [name for name in shapes if shapes[name] != largest[name]]
        blocks = (self.globals[name][entry_index(where, name, largest[name], shapes[name])] for name in smaller)
        alike = all(map(np.array_equal, blocks, (record[name].numpy() for name in smaller)))
        if not alike and where is not True:
            raise ValueError(f"node {message.metadata.dst_node_id} was sent other entries than `narrow` states.")
        return shapes if smaller and alike else {}, where


def _numbers(prefix: str, metrics: Mapping[str, Any] | None) -> dict[str, float]:
    numbers = [(str(name), value) for name, value in (metrics or {}).items() if isinstance(value, int | float)]
    return {name if name.startswith(prefix) else prefix + name: float(value) for name, value in numbers}
