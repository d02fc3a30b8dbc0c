"""Registration of analyses: what the command line and the docs list without importing torch.

The arguments of `@analysis` are literals, so that they can be read from the source (`registered`).
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import drift
from drift.parallel.job_pool import require_workers
from landscape.plugins.option_types import require_options
from landscape.results import stated
from landscape.results.not_finite import NotFinite

if TYPE_CHECKING:
    from drift.runs.run import Run

Cost = Literal["record", "evaluations", "gradients", "curvature", "training"]
"""Kind of computation: read the record, evaluate models, compute gradients or products with the Hessian, or train."""

LOSS_UNITS = "loss"
"""Unit in an analysis's table of what is measured in the unit of the run's losses."""

UNEQUAL = "updates are as received, from the model that each client started from; its model is the start plus that"
"""What results state of clients that are late, partial, stopped or changed their updates: how they are measured."""

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Registered:
    """An analysis, as its source describes it.

    Args:
        name: Public name.
        module: Module of its function.
        description: First line of its docstring.
        options: Names of its arguments without the run.
        dims: Dimensions of its result, in the order of its variables.
        cost: Kind of computation.
    """

    name: str
    module: str
    description: str
    options: tuple[str, ...]
    dims: tuple[str, ...]
    cost: Cost


def analysis(*dims: str, cost: Cost) -> Callable[[Function], Function]:
    """Register a function of a run that returns a labelled dataset and whose other arguments have defaults.

    An option that it does not have, or whose value is not of the annotated type, and workers below 1 are refused.
    A variable whose unit is `LOSS_UNITS` gets the unit of the run's losses. A result of a run with unequal clients
    states that, and how they are measured (attribute `unequal`). The result states the batch statistics of the models
    that were evaluated, and the clients without a finite model (`landscape.results.stated`); an error about numbers
    that are not finite names the clients without a finite loss.

    Args:
        dims: Dimensions of its result, in the order of its variables.
        cost: Kind of computation. A function NAME_effort of the same module estimates its time (`drift.runs.cache`).
    """

    def labelled(function: Function) -> Function:
        @functools.wraps(function)
        def analyse(run: Run, *arguments: Any, **options: Any) -> Any:
            resumed = {"partial"} & inspect.signature(function).parameters.keys()
            checked = {name: value for name, value in options.items() if name not in resumed}
            options |= require_options(function.__name__, function, checked)
            require_workers(options.get("workers", 1))
            try:
                dataset = function(run, *arguments, **options)
            except NotFinite as reason:
                raise ValueError(f"{reason}{_without_loss(run)}") from reason
            if run.unequal and isinstance(attrs := getattr(dataset, "attrs", None), dict):
                attrs["unequal"] = f"{run.unequal}: {UNEQUAL}"
            for values in getattr(dataset, "variables", {}).values():
                if values.attrs.get("units") == LOSS_UNITS:
                    values.attrs["units"] = run.loss_units
            return dataset

        return cast(Function, stated.states_statistics(analyse))

    return labelled


def _without_loss(run: Run) -> str:
    """Clients without a finite test loss in the rounds that were read, as a sentence; "" if there are none."""
    from landscape.model.losses import normalised

    task, samples, lost = run.task, run.task.split("test"), list[str]()
    for record in map(run.round, stated.rounds_read()):
        for client, model in zip(record.ids.tolist(), () if record.clients is None else record.clients, strict=False):
            losses = normalised(task.per_sample, task.outputs(model, samples), samples.targets)
            lost += [] if losses.isfinite().all() else [f"client {client} of round {record.index}"]
    return f" Without a finite loss: {', '.join(lost)}; name other rounds." if lost else ""


def registered() -> dict[str, Registered]:
    """Every analysis by name; nothing is imported.

    Raises:
        ValueError: If two analyses have one name, or a cost is unknown.
    """
    analyses: dict[str, Registered] = {}
    folder = Path(str(drift.__file__)).parent
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "@analysis(" not in source:
            continue
        module = ".".join(("drift", *path.relative_to(folder).with_suffix("").parts))
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and (call := _registration(node)):
                if node.name in analyses:
                    raise ValueError(f"analysis {node.name} is in {analyses[node.name].module} and in {module}.")
                analyses[node.name] = _read(node, call, module)
    return dict(sorted(analyses.items()))


def _registration(node: ast.FunctionDef) -> ast.Call | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "analysis":
            return decorator
    return None


def _read(node: ast.FunctionDef, call: ast.Call, module: str) -> Registered:
    dims = tuple(ast.literal_eval(argument) for argument in call.args)
    cost = {word.arg: ast.literal_eval(word.value) for word in call.keywords}["cost"]
    if cost not in get_args(Cost):
        raise ValueError(f"analysis {node.name} has cost {cost!r}; costs are {', '.join(get_args(Cost))}.")
    options = tuple(arg.arg for arg in (*node.args.args[1:], *node.args.kwonlyargs) if arg.arg != "partial")
    return Registered(node.name, module, (ast.get_docstring(node) or "").partition("\n")[0], options, dims, cost)
