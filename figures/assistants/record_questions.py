"""Questions about runs whose answers are recorded, or take the evaluation of one model.

Nothing is written beside the runs unless `store` says so.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_models
from drift.analyses.landscapes.named_models import named_models, sum_name
from drift.analyses.rounds.run_state import run_state
from drift.analyses.selected_samples import selected_samples
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.runs.run_names import find
from drift.simulation.compare import last_words, mean_of_last
from drift.simulation.run_index import Row, index
from drift.store.numpy_files import read_json
from figures.assistants.json_values import RefusedQuestion, array, estimate, plain
from figures.explore.work import stopping
from figures.page.paired_losses import round_losses
from figures.page.stage_round import cohort_values
from figures.page.why import why
from figures.selection.groups import differing_names, grouped
from landscape import plugins
from landscape.results.parsed_text import dotted


class OpenedRuns:
    """Answers about the runs in a folder.

    Args:
        runs: Folder of the runs.
        data: Folder of the datasets; None: as they are found.
        task: A task in place of the recorded ones, FILE.py:FUNCTION.
        store: Whether results are stored in the folders of the runs, so that they are not computed again.
    """

    def __init__(self, runs: Path, *, data: Path | None = None, task: str | None = None, store: bool = False) -> None:
        self._folder, self._data, self._task, self._store = runs, data, task, store
        self._results: dict[tuple[str, ...], xr.Dataset] = {}

    def open(self, name: str) -> Run:
        run = open_run(find(self._folder, name), data=self._data, task=self._task)
        return replace(run, context=replace(run.context, store=self._store, progress=stopping.step))


class RecordQuestions(OpenedRuns):
    """Questions that read the record or evaluate a model of a round."""

    def list_runs(self, containing: str = "") -> dict[str, Any]:
        """The runs: name, method, data, model, partition, seed, rounds done and in all, last_accuracy (fraction).

        last_accuracy is that of the last round; pages and describe_run have the mean of the last ten rounds. Where runs
        of one method differ in more than their seed, their settings say how.

        Args:
            containing: Only runs whose name contains this text.
        """
        every = index(self._folder)
        settings = _distinguishing([row for row in every if not row.get("problem")])
        rows = [row | {"settings": settings.get(row["name"]), "last_accuracy": row.get("accuracy")} for row in every]
        shown = [row | dict.fromkeys(("folder", "metrics", "updated", "accuracy")) for row in rows]
        known = [{key: plain(value) for key, value in row.items() if value not in (None, {})} for row in shown]
        return {"runs": [row for row in known if containing in row["name"]]}

    def describe_run(self, run: str) -> dict[str, Any]:
        """A run: settings, state, rounds with client models, and the accuracy over its last ten rounds.

        Args:
            run: Name of a run, or the beginning of a unique name.
        """
        opened = self.open(run)
        accuracy = None
        with suppress(LookupError, KeyError, ValueError):
            accuracy = plain(mean_of_last(opened))
        return {
            "name": opened.name,
            "method": opened.label,
            "settings": plain(opened.about["experiment"]),
            "state": run_state(opened).name,
            "rounds": len(opened.rounds()),
            "rounds_with_clients": opened.kept("clients"),
            "rounds_with_global_models": opened.kept("globals"),
            "accuracy": accuracy,
            "accuracy_is": last_words([opened], 10),
            "numbers": opened.number_names(),
            "loss_unit": opened.loss_units,
        }

    def read_numbers(self, run: str, name: str, rounds: Sequence[int] = ()) -> dict[str, Any]:
        """A recorded number of a run over its rounds, such as accuracy, loss or client_variance.

        Args:
            run: Name of a run.
            name: Name of the number, as describe_run lists it.
            rounds: Some rounds; negative ones count from the last. By default all.
        """
        opened = self.open(run)
        recorded = opened.metrics()
        if name not in recorded:
            raise RefusedQuestion(plugins.unknown("number", name, sorted(map(str, recorded.data_vars))))
        values = recorded[name]
        return array(values.sel(round=list(map(opened.require_round, rounds))) if rounds else values)

    def show_round(self, run: str, round: int) -> dict[str, Any]:
        """One round: losses of start, clients, aggregate and end, what each client costs, and why, in sentences.

        A client's cost is the loss of the aggregate minus its loss without the client: positive where it harms.

        Args:
            run: Name of a run.
            round: A round with client models; negative ones count from the last.
        """
        opened = self.open(run)
        record = opened.round(opened.require_round(round))
        if record.clients is None:
            stored = opened.kept("clients")
            raise RefusedQuestion(
                f"round {record.index} of {opened.name} kept no clients; rounds that did: {stored or 'none'}."
            )
        losses = round_losses(opened, record, None)
        cohort = cohort_values(opened, record, losses, None)
        named = {name: plain(float(losses[name])) for name in ("start", "aggregate", "end") if name in losses}
        return {
            "round": record.index,
            "unit": opened.loss_units,
            "test_loss": named,
            "cohort": plain(cohort),
            "why": plain(why(opened, record.index, losses, cohort)),
        }

    def evaluate(
        self, run: str, round: int, weights: Mapping[str, float], split: str = "test", samples: int | None = None
    ) -> dict[str, Any]:
        """Loss and error of a weighted sum of models of a round, exactly, each with its standard error.

        The standard error is that of the mean over the samples. Weights of clients answer what if they weighed so.

        Args:
            run: Name of a run.
            round: Number of the round; negative ones count from the last.
            weights: Weight of each model: start, end, aggregate, client 3, round 12. They need not sum to one.
            split: test, train, proxy, or client 3 for the samples of that client.
            samples: Largest number of samples, selected at random; by default all.
        """
        opened = self.open(run)
        if not weights or not all(math.isfinite(value) for value in weights.values()):
            raise RefusedQuestion(f"weights are {dict(weights)}; give a finite number for one model or more.")
        position = opened.require_round(round)
        if not (name := sum_name(list(weights), list(weights.values()))):
            raise RefusedQuestion("all weights are 0; give one model or more a weight.")
        model = named_models(opened, position, [name]).models
        selected = selected_samples(opened, position, split, samples)
        metrics = ("loss", *(("error",) if "error" in opened.task.metrics else ()))
        single = evaluate_models(opened, model, selected, metrics=metrics, groups=torch.arange(len(selected)))
        means = evaluate_models(opened, model, selected, metrics=metrics)
        if not means["loss"].isfinite().all():
            raise RefusedQuestion(f"weights are {dict(weights)}: the loss is not finite; give numbers about 1.")
        answers = {metric: estimate(means[metric][0], single[metric][0].flatten()) for metric in metrics}
        units = {"loss": opened.loss_units, "error": "fraction"}
        return {"model": name, "round": position, "split": split, "samples": len(selected), **answers, "units": units}


def _distinguishing(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """By the name of a run, the settings in which the runs of its method differ, the seed left out."""
    settings = {}
    for few in grouped(rows, lambda row: row["method"]).values():
        tables = [dotted(read_json(Path(row["folder"], "run.json"))["experiment"]) for row in few]
        names = [name for name in differing_names(tables) if name != "seed"]
        for row, table in zip(few, tables, strict=True):
            settings[row["name"]] = {name: table[name] for name in names if table.get(name) is not None}
    return settings
