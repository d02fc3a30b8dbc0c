"""What an assistant may ask about runs: plain functions that take and return values of JSON.

An answer that takes long is refused with its cost first; `seconds` of the call accepts it.
"""

import inspect
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import xarray as xr
from pydantic import Field

from drift.analyses.counterfactual.interventions import interventions_effort
from drift.diagnosis.diagnose import diagnose
from drift.runs import cache
from drift.runs.registry import Registered, registered
from drift.runs.run import Run
from figures import gallery
from figures.assistants.json_values import RefusedQuestion, array, plain, require_time
from figures.assistants.record_questions import RecordQuestions
from figures.page.diagnosis_text import answer, verdict
from figures.pictures.draw_files import draw as draw_files
from landscape import plugins
from landscape.plugins import outside

SECONDS = 30.0
"""Seconds that an answer may take where the call accepts no more."""

Seconds = Annotated[float, Field(ge=0)]
"""Time that a call accepts; the server refuses one below 0."""

MOST = 2000
"""Numbers of a result in one answer at most; of a longer one each variable has its range, and its values by name."""

RESULTS = 32
"""Results that stay in memory, those asked for last."""

TIMES = {"record": 1.0, "evaluations": 10.0, "gradients": 30.0, "curvature": 120.0, "training": math.inf}
"""Seconds by kind of computation, of a model of some ten thousand parameters, where an analysis estimates none."""

WORK = re.compile("points|steps|k|directions|probes|products|batches|subsets|draws|rep.*|rounds|samples|count")
"""Options by which those seconds grow, from the default of the analysis or figure on."""

GRIDS = re.compile("plane|basin|topology")
"""Parts of the names of figures whose points are those of each axis of a grid."""

FIGURES = {"seconds": 10.0, "seconds per run": 10.0, "a minute per run": 60.0, "minutes per run": 300.0}
"""Seconds by the stated cost of a figure, the latter three for each run."""


class Questions(RecordQuestions):
    """All questions: those of the record, and those that compute, whose cost comes first."""

    def list_analyses(self) -> dict[str, Any]:
        """Every analysis of a run by name: what it computes, its options, and its kind of cost."""
        rows = {
            name: {"computes": item.description, "options": list(item.options), "cost": item.cost}
            for name, item in registered().items()
        }
        return {"analyses": rows}

    def analyse(
        self,
        run: str,
        analysis: str,
        options: Mapping[str, Any] | None = None,
        variables: Sequence[str] = (),
        seconds: Seconds = SECONDS,
    ) -> dict[str, Any]:
        """Compute an analysis of a run, such as counterfactual, what_if, coherence or eigen_rounds.

        One that is stored costs nothing. One that takes longer than `seconds` is refused with its cost.

        Args:
            run: Name of a run.
            analysis: Name, as list_analyses has it.
            options: Its options by name.
            variables: Names of the variables of the result that are wanted; by default all.
            seconds: Time that the answer may take.
        """
        opened, known = self.open(run), registered()
        if analysis not in known:
            raise RefusedQuestion(plugins.unknown("analysis", analysis, list(known)))
        result = self._result(opened, known[analysis], dict(options or {}), seconds)
        if absent := sorted(set(variables) - set(map(str, result.data_vars))):
            raise RefusedQuestion(plugins.unknown("variable", absent[0], list(map(str, result.data_vars))))
        wanted = result[list(variables)] if variables else result
        brief = not variables and sum(values.size for values in wanted.data_vars.values()) > MOST
        return {
            "analysis": analysis,
            "attributes": {str(key): plain(value) for key, value in result.attrs.items()},
            "variables": {str(name): array(values, brief=brief) for name, values in wanted.data_vars.items()},
        }

    def diagnose_run(self, run: str, test_causes: bool = False, seconds: Seconds = SECONDS) -> dict[str, Any]:
        """What drifts in a run, with intervals; with test_causes, what would help, by training rounds again.

        Args:
            run: Name of a run.
            test_causes: Whether rounds are trained again with one setting changed.
            seconds: Time that the answer may take.
        """
        opened = self.open(run)
        if test_causes:
            estimate = interventions_effort(opened)
            require_time(4 * estimate.seconds, seconds, f"{estimate}, and following what helps through the run")
        result = diagnose(opened, quick=not test_causes)
        findings = [{**plain(vars(item)), "in_words": " ".join(filter(None, answer(item)))} for item in result.findings]
        return {"verdict": verdict(result), "findings": findings, "causes": plain(result.to_dict()["causes"])}

    def list_figures(self, containing: str = "") -> dict[str, Any]:
        """The figures by name: the runs that each needs, and its cost.

        Args:
            containing: Only figures whose name contains this text.
        """
        names = [name for name in gallery.names() if containing in name]
        stated = {name: {what.lower(): gallery.constant(name, what) for what in ("NEEDS", "COST")} for name in names}
        return {"figures": stated}

    def draw(
        self, figure: str, runs: Sequence[str], options: Mapping[str, Any] | None = None, seconds: Seconds = SECONDS
    ) -> tuple[bytes, dict[str, str]]:
        """Draw a figure of runs: the picture as PNG, its caption, and what it shows in words.

        Args:
            figure: Name of the figure, as list_figures has it.
            runs: Names of the runs.
            options: Of the figure by name.
            seconds: Time that the answer may take.
        """
        opened = [self.open(name) for name in runs]
        cost = gallery.constant(figure, "COST")
        larger = growth(gallery.load(figure).data, options or {}, grid=bool(GRIDS.search(figure)))
        share = FIGURES.get(cost, math.inf) * (1 if cost == "seconds" else len(opened))
        require_time(share * larger, seconds, f"a figure that takes {cost}", larger)
        with tempfile.TemporaryDirectory() as folder:
            draw_files(figure, opened, folder, stem="figure", formats=("png",), **dict(options or {}))
            files = {"caption": "figure.txt", "shows": "figure.alt.txt"}
            texts = {what: Path(folder, name).read_text(encoding="utf-8") for what, name in files.items()}
            return Path(folder, "figure.png").read_bytes(), texts

    def _result(self, run: Run, about: Registered, options: dict[str, Any], seconds: float) -> xr.Dataset:
        """The result that is stored or was computed before, else computed if it does not take longer than accepted."""
        function = outside.load(f"{about.module}:{about.name}")
        plugins.require_options(about.name, function, options)
        key = (run.identity, run.head, function.__name__, cache.arguments_text(run, function, options))
        if (result := self._results.get(key)) is None and (result := cache.stored(run, function, options)) is None:
            effort = cache.estimated_effort(run, function, options)
            grid = about.cost == "evaluations" and not {"t", "mark_other"} & set(about.dims)
            times = growth(function, options, grid=grid)
            words = f"a computation of the kind {about.cost}"
            cost = TIMES[about.cost] * times if effort is None or math.isnan(effort.seconds) else effort.seconds
            require_time(cost, seconds, *((words, times) if effort is None else (str(effort),)))
            result = run.cached(function, **options)
        others = [item for item in self._results.items() if item[0] != key]
        self._results = dict([*others, (key, result)][-RESULTS:])
        return result


def growth(function: Callable[..., Any], options: Mapping[str, Any], *, grid: bool) -> float:
    """How many times its usual work an analysis or a figure has by its options; of `points` of a grid, their square."""
    usual = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    sizes = {name: len(value) if isinstance(value, list) else value for name, value in options.items()}
    work = {name: size for name, size in sizes.items() if WORK.fullmatch(name) and isinstance(size, int | float)}
    shares = {name: max(1.0, size / usual[name]) for name, size in work.items() if isinstance(usual.get(name), int)}
    return math.prod(share ** (2 if grid and name == "points" else 1) for name, share in shares.items())
