"""fedscape import: a run of checkpoints that another program wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from figures.commands.options import Data, Json, Runs, Task, flag, several
from figures.commands.requirements import require_folder
from figures.texts import console


def import_(
    path: Path,
    /,
    *,
    pattern: str | None = None,
    globals: str | None = None,
    starts: str | None = None,
    dry_run: Annotated[bool, flag("--dry-run")] = False,
    model: str | None = None,
    dataset: str | None = None,
    task: Task = None,
    name: str | None = None,
    method: str | None = None,
    set: Annotated[list[str] | None, several("--set", "KEY=VALUE")] = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a run from checkpoints that another program wrote: files of torch.save, .safetensors, .npz, or folders.

    Without --pattern, fedscape looks for round_000/global.pt, round_000/client_7.pt and so on. A file sizes.json in the
    folder may list the number of samples of each client. Name model and data by --model and --dataset, or by --task.
    Without them the run has models only, and every analysis of its loss needs --task. --set describes the training:
    with --dataset by the settings of fedscape train, otherwise by method.name, data, partition, seed or other names.

    Example: `fedscape import checkpoints --model mlp --dataset mnist --dry-run`

    Args:
        path: Folder of the checkpoints.
        pattern: Paths of the clients' models in the folder, such as 'round{round}/client{client}.pt'. Brackets choose
            one of several state dicts in a file: 'client{client}_{round}.pt[ema]'. Or the program that wrote them:
            flower, pfllib, fl-bench, fedlab, fedscape. By default fedscape.
        globals: Paths of the global models, such as 'round{round}/global.pt'. By default those of --pattern.
        starts: Paths of the models that clients received. By default the previous global model.
        model: Model of the checkpoints: a name (fedscape list models) or module:function. Goes with --dataset. By
            default unknown.
        dataset: Dataset that loss and error are measured on (fedscape list datasets). Goes with --model. By default
            unknown.
        name: Name of the run. By default that of the folder.
        method: Name of the method in figures and lists, such as FedProx. By default unknown.
        dry_run: Only show which files match, and what is missing; nothing is written.
        set: Description of the training, one or more: --set seed=1 partition=iid. By default nothing.
    """
    from dataclasses import replace

    from drift.plugins.tables import require_named

    if not path.is_dir():
        raise LookupError(f"there is no folder {path}; name the folder of the checkpoints.")

    for setting, value in (("task.model", model), ("task.dataset", dataset)):
        if value is not None:
            require_named(f"{setting}={value}")
    from drift.importers.bare import record_checkpoints
    from drift.importers.checkpoints import import_checkpoints
    from drift.importers.path_patterns import SHIPPED, Patterns, parse_patterns

    if (model is None) != (dataset is None):
        raise ValueError("give --model and --dataset together, or --task FILE.py:FUNCTION, or none of them.")
    if model is not None and task is not None:
        raise ValueError("both --model and --task were given; give one of them.")
    notes = {key: value for key, value in (("name", name), ("method", method)) if value is not None}
    if model is None:
        notes = {**_notes(set or ()), **notes}
    patterns: Patterns | None = None if pattern is None else parse_patterns(pattern)
    if globals is not None or starts is not None:
        patterns = replace(
            patterns or SHIPPED["fedscape"],
            **{name: text for name, text in (("globals", globals), ("starts", starts)) if text is not None},
        )
    if dry_run:
        _show(path, patterns, json)
        return
    require_folder(runs)
    with console.stages(f"reading {path.name}") as stage:
        if model is not None and dataset is not None:
            run = import_checkpoints(
                path,
                *(set or ()),
                model=model,
                dataset=dataset,
                patterns=patterns,
                runs=runs,
                data=data,
                progress=stage,
                told=notes,
            )
        else:
            run = record_checkpoints(path, patterns, task=task, runs=runs, progress=stage, told=notes)
    if json:
        console.put_json({"folder": str(run.folder), "rounds": run.rounds(), "unknown": run.about["unknown"]})
        return
    console.put(str(run.folder))
    console.say(f"imported rounds {', '.join(map(str, run.rounds()))}. Not known: {'; '.join(run.about['unknown'])}.")
    if task is not None or model is not None:
        console.say(f"see it:  fedscape figures gallery {run.folder}{f' --task {task}' if task else ''}")
        return
    console.say(
        f"see it:  fedscape figures draw norms-rounds {run.folder}\n"
        f"         fedscape figures draw planes-clients {run.folder} --task FILE.py:FUNCTION\n"
        "         (losses need model, loss and data: docs/howto-checkpoints.md)"
    )


_NOTED = {
    "name": ("name",),
    "method": ("method", "method.name"),
    "data": ("data", "dataset", "task.dataset"),
    "partition": ("partition", "clients.partition", "clients.partition.name"),
    "seed": ("seed",),
}
"""Settings of --set by what they state of a training."""


def _notes(texts: Sequence[str]) -> dict[str, Any]:
    """The values of --set for a run without a dataset; those without a place of their own are among its settings."""
    from figures.commands.options import arguments

    noted = {key: name for name, keys in _NOTED.items() for key in keys}
    notes: dict[str, Any] = {}
    for key, value in arguments(texts).items():
        if key in noted:
            notes[noted[key]] = value
        else:
            notes.setdefault("settings", {})[key] = value
    return notes


def _show(path: Path, patterns: object, json: bool) -> None:
    from drift.importers.models import preview_import
    from drift.importers.path_patterns import Patterns

    summary = preview_import(path, patterns if isinstance(patterns, Patterns) else None)
    if json:
        console.put_json(summary)
        return
    console.pairs({key: value for key, value in summary.items() if not isinstance(value, list)})
    for key, lines in summary.items():
        if isinstance(lines, list) and lines:
            console.put(f"\n{key}")
            for line in lines[:40]:
                console.put(f"  {line}")
            if len(lines) > 40:
                console.put(f"  and {len(lines) - 40} more")
    console.say("\nnothing was written; without --dry-run this becomes a run.")
