"""docs/methods.md as text, from measured numbers and from what each method says of itself."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from pydantic.fields import FieldInfo

from drift.config import method as methods
from drift.config.experiment import Experiment
from drift.config.load import read
from landscape import plugins

PRESET = "common-fmnist"

HEAD = """# Methods

What does each federated method compute, and which options does it have? Choose a method by `--set method=NAME` and its
options by `--set method.OPTION=VALUE`.

## One short setting

{setting}

    fedscape compare {preset} --methods {examples} --seeds {seeds}

Accuracy is the mean test accuracy of the last ten rounds, with the standard deviation over {count} seeds. Seeds and
rounds are few, and options were not tuned: the table shows that every method works, not which is best.

Cost is the multiply-accumulates of one client's local training over FedAvg's, for the client with most samples in the
last of six rounds. Methods that hold out a fifth of its data train on less. Computation on a proxy set does not count.

"Sent" is sent to clients (down) or returned (up) in addition to the model. "Kept" stays with a client for its next
round.

"""

BUNDLES = """
## As published

`--set method.like=paper` or `method.like=code` gives a method the options of its paper or of released code;
`--set method.base.like=paper` does so for the base of IMA. They replace the options of a preset. Options on the
command line replace them, and the label is then `lss-code_changed`. Sections list the options that differ from the
defaults. Set the settings after "set too" yourself. "Lacks" names a part of the source that no option reproduces. A
bundle without a source follows that of its section. [Tests](agreement.md) compare them with published code.

## Defaults unlike the papers'

Sections have them under "Unlike the paper", and `fedscape list methods` prints them. Of partitions:

{partitions}
"""

COLUMNS = ("method", "sent", "kept", "cost", "accuracy, %")


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
    options = {name: _options(methods.load(name)) for name in names}
    sections = [_section(name, _once(name, options)) for name in names]
    return "\n".join([head + _table(COLUMNS, rows), *notes, about, *sections])


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
        f"stratified), model {task.model}, {clients.number} clients, {clients.per_round} a round, {one.rounds} rounds. "
        f"Partition: {partition}. Clients train {local.epochs} epochs by {local.optimizer} with rate {local.lr:g} "
        f"times {local.lr_decay:g} a round, momentum {local.momentum:g}, batches of {local.batch}. The proxy set has "
        f"{proxy}, taken from the test samples for all methods. Seeds {', '.join(map(str, numbers['seeds']))}: all "
        "methods have the same initial model, partition, cohorts and minibatches."
    )


def _row(name: str, one: dict[str, Any] | None) -> tuple[str, ...]:
    """Cells of a method; dashes where it was not measured."""
    about = f"[{name}](#{name})"
    if one is None:
        return about, "-", "-", "-", "-"
    down, up = ", ".join(one["received"]), ", ".join(one["uploaded"])
    sent = "; ".join(f"{way}: {what}" for way, what in (("down", down), ("up", up)) if what)
    return (
        about,
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


def _options(method: type[methods.Method]) -> dict[str, str]:
    """A line per option of a method, by its name."""
    return {
        option: f"- `{option}={_shown(field.get_default(call_default_factory=True))}`: {_meaning(field)}"
        for option, field in method.model_fields.items()
        if option != "like"
    }


def _once(name: str, options: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Lines of a method's options; those that it shares with an earlier method, three or more, as one line."""
    own = options[name]
    shared = {
        other: [option for option, line in own.items() if options[other].get(option) == line]
        for other in list(options)[: list(options).index(name)]
    }
    other = max(shared, key=lambda one: len(shared[one]), default=name)
    if len(same := shared.get(other, [])) < 3:
        return list(own.values())
    told = f"- as [{other}](#{other}): {', '.join(f'`{option}`' for option in same)}"
    return [told, *(line for option, line in own.items() if option not in same)]


def _section(name: str, options: Sequence[str]) -> str:
    """What a method is, its options, and what its preset changes."""
    found = methods.load(name)
    about = _wrapped(inspect.cleandoc(found.__doc__ or ""))
    changes = _changes(read(PRESET, method=name), read(PRESET, method="fedavg"))
    preset = f"In `{PRESET}`: {', '.join(changes)}.\n" if changes else ""
    first = plugins.describe("drift.methods", name)
    listed = "".join(f"{line}\n" for line in [*options, *_bundled(found)]) or "No options.\n"
    parts = [f"## {name}\n", f"{first}\n", f"```text\n{about}\n```\n", listed, preset]
    return "\n".join(part for part in parts if part)


def _wrapped(text: str) -> str:
    """Text in lines that fit the site's column; paragraphs with indented lines, such as formulas, stay as they are."""
    parts = text.split("\n\n")
    return "\n\n".join(part if "\n " in f"\n{part}" else "\n".join(wrap(part, 88)) for part in parts)


def _bundled(method: type[methods.Method]) -> list[str]:
    """A method's bundles, a line each, with the options that are not its defaults."""
    defaults, lines, own = method(), [], " ".join((method.__doc__ or "").rpartition("Source:")[2].split())
    for name, one in method.bundles.items():
        changed = [f"`{key}={_shown(value)}`" for key, value in one.options.items() if value != getattr(defaults, key)]
        parts = [", ".join(changed) or "the defaults"]
        parts += [f"set too `{one.settings}`"] if one.settings else []
        parts += [f"lacks {one.lacks}"] if one.lacks else []
        source = "" if one.source in own else f" ({one.source})"
        lines.append(f"- `like={name}`{source}: {'; '.join(parts)}")
    return lines


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
            found.append(f"`{before}{key}={_shown(value)}`")
    return found


def _meaning(field: FieldInfo) -> str:
    """Description of an option, and the words that it takes if the description lacks some."""
    words = typing.get_args(field.annotation) if typing.get_origin(field.annotation) is typing.Literal else ()
    stated = {*re.findall(r"\w+", field.description or ""), field.get_default(call_default_factory=True)}
    among = f" ({', '.join(words)})" if not stated.issuperset(words) else ""
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
    return "".join("|" + "|".join(cell.replace("|", "\\|") for cell in line) + "|\n" for line in lines)
