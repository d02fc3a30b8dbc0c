"""docs/methods.md as text, from measured numbers and from what each method says of itself."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic.fields import FieldInfo

from drift.config import method as methods
from drift.config.experiment import Experiment
from drift.config.load import read
from landscape import plugins

PRESET = "common-fmnist"

HEAD = """# Methods

Written by `python -m benchmarks.methods`, and again by every `make docs`; do not edit by hand. Each method is one file
in `drift/methods/`, chosen by `--set method=NAME`, its options by `--set method.OPTION=VALUE`.

## One short setting

{setting}

    fedscape compare {preset} --methods {examples} --seeds {seeds}

Accuracy: test accuracy in percent, mean of the last ten rounds, then mean and standard deviation over {count} seeds.
Differences of a point or two mean little with so few seeds. The rounds are few, the options the papers' (see each
method), and none was tuned beyond what it takes to train: this shows that every method works, not which is best.

Cost: multiply-accumulates of one client's local training relative to FedAvg's with the same model and the same client,
the one with most samples in the last of six rounds. Methods that hold out a fifth of the client's data train on less.
What a server computes on its proxy set is not in it.

Sent: what clients receive (down) and return (up) beside the model in that round; numbers that only report on the
training are among them. Kept: what a client keeps for the next round that it takes part in.

"""

BUNDLES = """
## As published

`--set method.like=paper` or `method.like=code` gives a method the options that its paper states or that released code
has, where the section of the method lists such a bundle. What a preset says of these options gives way; what is set on
the command line wins, and the label then says so: `lss-code_changed`. The base of IMA has bundles as well:
`--set method.base.like=paper`. The run records the word beside all options. "Beside it" are settings outside the method
that go with a bundle and are to be given too. [Agreement with published code](agreement.md) says what was compared.

## Defaults unlike the papers'

Sections of methods say so under "Unlike the paper", and so does `fedscape list methods`. Of partitions:

{partitions}
"""

COLUMNS = ("method", "paper", "sent beside the model", "kept by clients", "cost", "accuracy, %")


def page(numbers: dict[str, Any], names: Sequence[str] | None = None) -> str:
    """The whole page: the setting, one table of methods, one section per method.

    Args:
        numbers: As docs/results/methods.json holds them.
        names: Methods on the page; by default all.
    """
    names, measured, seeds = names or methods.names(), numbers["methods"], numbers["seeds"]
    head = HEAD.format(
        setting=_setting(numbers),
        preset=PRESET,
        examples="fedavg ima",
        seeds=" ".join(map(str, seeds)),
        count=len(seeds),
    )
    rows = [_row(name, measured.get(name)) for name in names]
    notes = [_note(name, measured[name]) for name in names if name in measured and _apart(measured[name])]
    about = BUNDLES.format(partitions=_unlike("drift.partitions"))
    return "\n".join([head + _table(COLUMNS, rows), *notes, about, *(_section(name) for name in names)])


def _unlike(package: str) -> str:
    """Plug-ins whose defaults are not what a reader of the paper expects, as a list."""
    told = {name: plugins.paragraph(package, name, "Unlike the paper:") for name in plugins.names(package)}
    return "\n".join(f"- `{name}`: {text}" for name, text in told.items() if text)


def _setting(numbers: dict[str, Any]) -> str:
    """The setting in words, from the preset itself."""
    one = read(PRESET, method="fedavg")
    task, clients, local = one.task, one.clients, one.local
    partition = ", ".join(f"{key} {value}" for key, value in one.resolved()["clients"]["partition"].items())
    proxy = f"{one.proxy.per_class} images a class" if one.proxy else "none"
    return (
        f"Preset `{PRESET}`: {task.dataset} ({task.train_samples} training and {task.test_samples} test samples, "
        f"stratified), model {task.model}, {clients.number} clients, {clients.per_round} a round, partition "
        f"({partition}), {one.rounds} rounds, {local.epochs} local epochs of {local.optimizer} with rate {local.lr:g} "
        f"times {local.lr_decay:g} a round, momentum {local.momentum:g}, batches of {local.batch}; proxy set (out of "
        f"the test samples, for all): {proxy}. Seeds {', '.join(map(str, numbers['seeds']))}; for one seed, all "
        "methods have the same initial model, partition, cohorts and minibatches. Machine: "
        f"{numbers['processor']}, one thread, torch {numbers['torch']}."
    )


def _row(name: str, one: dict[str, Any] | None) -> tuple[str, ...]:
    """Cells of a method; dashes where it was not measured."""
    about = f"[{name}](#{name})", plugins.sentence(plugins.source("drift.methods", name))
    if one is None:
        return *about, "-", "-", "-", "-"
    down, up = ", ".join(one["received"]), ", ".join(one["uploaded"])
    sent = "; ".join(f"{way}: {what}" for way, what in (("down", down), ("up", up)) if what)
    return (
        *about,
        sent or "-",
        ", ".join(one["kept"]) or "-",
        f"{one['macs'] / one['fedavg_macs']:.2f}",
        _percent(one["accuracy"]) + (" (*)" if _apart(one) else ""),
    )


def _apart(one: dict[str, Any]) -> bool:
    """Whether a method was measured with another model or number of rounds than the preset's."""
    plain = read(PRESET, method="fedavg")
    return (one["model"], one["rounds"]) != (plain.task.model, plain.rounds)


def _note(name: str, one: dict[str, Any]) -> str:
    return (
        f"\n(*) {name} was trained on {one['model']} for {one['rounds']} rounds; FedAvg has "
        f"{_percent(one['fedavg_accuracy'])} there.\n"
    )


def _section(name: str) -> str:
    """What a method is, its options, and what its preset changes."""
    found = methods.load(name)
    about = inspect.cleandoc(found.__doc__ or "")
    options = [
        (f"`{option}`", _shown(field.get_default(call_default_factory=True)), _meaning(field))
        for option, field in found.model_fields.items()
        if option != "like" or found.bundles
    ]
    table = _table(("option", "default", "meaning"), options) if options else "No options.\n"
    changes = _changes(read(PRESET, method=name), read(PRESET, method="fedavg"))
    preset = f"In `{PRESET}`: {', '.join(changes)}.\n" if changes else ""
    first = plugins.describe("drift.methods", name)
    parts = [f"## {name}\n", f"{first}\n", f"```text\n{about}\n```\n", table, _bundled(found), preset]
    return "\n".join(part for part in parts if part)


def _bundled(method: type[methods.Method]) -> str:
    """A table of a method's bundles; empty where it has none."""
    rows = [
        (
            f"`{name}`",
            one.source,
            ", ".join(f"`{option} = {_shown(value)}`" for option, value in one.options.items()),
            f"`{one.settings}`" if one.settings else "-",
            one.lacks or "-",
        )
        for name, one in method.bundles.items()
    ]
    return _table(("like", "source", "options", "beside it", "not to be had"), rows) if rows else ""


def _changes(own: Experiment, plain: Experiment) -> list[str]:
    """Settings of a method's preset that are not its defaults or not those of FedAvg's preset."""
    held, other = own.resolved(), plain.resolved()
    defaults = {"name": own.method.name(), **type(own.method)().model_dump(mode="json")}
    changed = _unequal(held.pop("method"), defaults, "method.")
    other.pop("method")
    return changed + _unequal(held, other, "")


def _unequal(one: dict[str, Any], other: dict[str, Any], before: str) -> list[str]:
    found = []
    for key, value in one.items():
        if isinstance(value, dict) and isinstance(other.get(key), dict):
            found += _unequal(value, other[key], f"{before}{key}.")
        elif value != other.get(key):
            found.append(f"`{before}{key} = {_shown(value)}`")
    return found


def _meaning(field: FieldInfo) -> str:
    """Description of an option, and what it may be where that is a list of words."""
    words = typing.get_args(field.annotation) if typing.get_origin(field.annotation) is typing.Literal else ()
    among = f" (one of {', '.join(words)})" if words else ""
    return f"{field.description}{among}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, methods.Method):
        return value.name()
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return "absent" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _percent(accuracies: list[float]) -> str:
    spread = f" ± {100 * np.std(accuracies, ddof=1):.1f}" if len(accuracies) > 1 else ""
    return f"{100 * np.mean(accuracies):.1f}{spread}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
