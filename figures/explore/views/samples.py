"""Samples: what the model that is looked at gets wrong, and where it and a client disagree; the samples themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn

from drift.runs.run import Run
from figures.explore.plane.model_choices import WRITTEN
from figures.explore.record.sample_cards import Card, cards
from figures.explore.record.sample_tables import MODES, Answer, Filter, Question, answer, asked_question, pictures
from figures.explore.shell.as_figure import Request
from figures.explore.shell.plot import Plot
from figures.explore.shell.style import HALF, WRAP
from figures.explore.shell.view import View
from figures.explore.work.versions import version
from figures.interactive.confusions import class_errors, confusion_map, group_bars
from figures.selection.statistics_text import statistics_text

STEP = 48
"""Samples that are shown at first, and more at each "more"."""


class SamplesView(View):
    """The samples behind the numbers of a model."""

    name = "samples"
    title = "Samples"
    follows = frozenset(
        {"runs", "round", "clients", "client", "model", "corners", "point", "weights", "gamma", "split"}
        | {"truth", "predicted", "growth", "samples.show", "samples.group"}
    )

    def body(self) -> pn.Column:
        """Pickers; confusion and errors; groups; the samples."""
        self._asked: tuple[Any, ...] = ()
        self._answer: Answer | None = None
        self._pictures: Any = None
        self._shown: tuple[list[int], int] = ([], 0)
        self._model = self.picker("model", "model", sizing_mode="stretch_width", max_width=190)
        self._client = self.picker("client", "against client", sizing_mode="stretch_width", max_width=150)
        self._split = self.picker("split", "samples", sizing_mode="stretch_width", max_width=170)
        self._mode = pn.widgets.RadioButtonGroup(options={text: name for name, text in MODES.items()})
        every: dict[str, Any] = {"truth": None, "predicted": None, "samples.group": ""}
        self._clear = self.button("all classes", lambda _: self.selection.change(**every), disabled=True)
        self._more = self.button("more", lambda _: self._show_cards(self._shown[1] + STEP), disabled=True)
        self.picks({"samples.show": self._mode})
        self._map = Plot("confusion matrix: samples by class and predicted class", height=400, styles=HALF)
        self._errors = Plot("error of each class", height=260)
        self._groups = Plot("groups of like samples with two predictions", height=400, styles=HALF)
        self.on_point(self._map, self._cell)
        self.on_point(self._errors, self._class)
        self.on_point(self._groups, self._group)
        self._cards = pn.pane.HTML("", sizing_mode="stretch_width")
        return pn.Column(
            pn.Row(self._model, self._client, self._split, styles=WRAP, sizing_mode="stretch_width"),
            pn.Row(self._map, self._groups, styles=WRAP, sizing_mode="stretch_width"),
            self._errors,
            pn.Row(self._mode, self._clear, styles=WRAP),
            self.busy,
            self._cards,
            self._more,
            sizing_mode="stretch_width",
        )

    def update(self, changed: set[str]) -> None:
        """Ask for predictions where they are of something else; show what there is."""
        run, index = self.explorer.run(), self.explorer.round()
        question = self._question(run, index)
        self._offer(run, question)
        asked = (version(run, [question.model]), question)
        if asked == self._asked:
            self._draw()
            return
        self._asked, self._answer, self._cards.object = asked, None, ""
        for plot in (self._map, self._errors, self._groups):
            plot.show(None)
        self.write("predicting ...")
        self.close()
        title, wanted = f"samples of the {self._called(question.model)}", lambda: asked == self._asked
        self.ask(answer, run, question, self._arrived, wanted=wanted, ended=self.fail, title=title)

    def figures(self) -> list[Request]:
        """Confusion, groups, and the samples of the selected cell."""
        run, index = self.explorer.run(), self.explorer.round()
        question, selection = self._question(run, index), self.selection
        title = f"Samples of the {self._called(question.model)} in round {index} of {run.name}"
        options: dict[str, Any] = {"model": question.model, "split": question.split, "client": question.client}
        options |= {"groups": question.groups, "truth": selection.truth, "predicted": selection.predicted}
        return [Request.from_runs("samples-round", run, title=title, round=index, **options)]

    def _question(self, run: Run, index: int) -> Question:
        return asked_question(run, index, self.selection)

    def _filter(self) -> Filter:
        selection = self.selection
        group = selection.look("samples.group")
        number = int(group) - 1 if group.isdigit() and int(group) > 0 else None
        return Filter(selection.truth, selection.predicted, number, selection.look("samples.show", "wrong"))

    def _offer(self, run: Run, question: Question) -> None:
        """What the pickers offer, without reporting that as a change."""
        selection, ids = self.selection, []
        if question.round in run.kept("clients"):
            ids = sorted(run.round(question.round).ids.tolist())
        names = ["end", "start", *(["aggregate"] if ids else []), *(f"client {client}" for client in ids)]
        names += (["point"] if selection.point else []) + (["weights"] if ids else [])
        names += [] if selection.model in names else [selection.model]
        splits = {"test samples": "test", "training samples": "train"}
        splits |= {"proxy samples": "proxy"} if run.experiment.proxy is not None else {}
        splits |= {f"data of client {question.client}": "client"} if ids else {}
        splits |= {} if selection.split in splits.values() else {selection.split: selection.split}
        mode = selection.look("samples.show", "wrong")
        with self.quietly():
            self._model.param.update(options={OFFERED.get(name, name): name for name in names}, value=selection.model)
            self._client.param.update(options=ids, value=question.client, visible=bool(ids))
            self._split.param.update(options=splits, value=selection.split)
            self._mode.value = mode if mode in MODES else "wrong"
            self._clear.disabled = not self._filter().narrow

    def _arrived(self, result: Answer) -> None:
        self._answer = result
        self._draw()

    def _draw(self) -> None:
        if self._answer is None:
            return
        result, selection = self._answer, self.selection
        question: Question = self._asked[1]
        cell = (selection.truth, selection.predicted)
        model = str(result.confusion.model.values[0])
        self._map.show(confusion_map(result.confusion, model, cell))
        labels = {str(name): self._called(str(name)) for name in result.confusion.model.values}
        self._errors.show(class_errors(result.confusion, labels, selection.truth))
        self._groups.visible = result.groups is not None and result.groups.sizes["group"] > 0
        if result.groups is not None and self._groups.visible:
            pair = f"client {question.client}", self._called(question.model)
            self._groups.show(group_bars(result.groups, result.classes, pair, self._filter().group))
        self._show_cards(STEP)

    def _show_cards(self, count: int) -> None:
        """The first `count` of the selected samples."""
        if self._answer is None:
            return
        numbers = self._filter().numbers(self._answer)
        self._shown = numbers, count
        self._more.disabled = len(numbers) <= count
        self.write(self._words(self._answer, len(numbers), min(count, len(numbers))))
        if self._pictures is not None:
            self._pictures.cancel()
        if not numbers:
            self._cards.object = ""
            return
        asked, question, shown = self._asked, self._asked[1], numbers[:count]

        def show(contents: list[bytes] | np.ndarray) -> None:
            if self._answer is not None:
                self._cards.object = cards([self._card(self._answer, number) for number in shown], contents)

        wanted = lambda: asked == self._asked and shown == self._shown[0][: self._shown[1]]  # noqa: E731
        item = (question.round, question.split, shown)
        self._pictures = self.ask(pictures, self.explorer.run(), item, show, wanted=wanted)

    def _card(self, result: Answer, number: int) -> Card:
        ds = result.predictions.isel(sample=number)
        predicted = tuple(
            (self._called(str(name)), result.class_name(int(ds.predicted[row])))
            for row, name in enumerate(ds.model.values)
        )
        return Card(int(ds.sample), result.class_name(int(ds.target)), predicted, float(ds.loss[0]))

    def _words(self, result: Answer, count: int, shown: int) -> str:
        """What is shown, in a sentence."""
        question, model = self._asked[1], self._called(self._asked[1].model)
        words = self._filter().words(result, model, question.client)
        if not count:
            return f"No such sample: {', '.join(words)}. Click a class or a cell, or show all."
        counted = f"{count} of {result.predictions.sizes['sample']} {question.split} samples"
        below = f"its class, the {model}'s prediction"
        below += "" if question.client is None else f", that of client {question.client}"
        sentences = [f"{', '.join([counted, *words])}; {shown} shown.", f"Below each: {below}."]
        if result.normalised:
            as_trained = "recomputed" not in result.predictions.attrs["statistics"]
            first, statistics = f"The {model} has{' its' * as_trained}", "own" if as_trained else "recomputed"
            sentences.append(statistics_text(first, statistics, "a client's model its", "own") + ".")
        return " ".join(sentences)

    def _called(self, name: str) -> str:
        if " * " in name:
            return "selected point" if self.selection.model == "point" else "weighted model"
        return WRITTEN.get(name, name)

    def _cell(self, point: dict[str, Any]) -> None:
        """A click on a cell selects it, or nothing where it is selected."""
        cell = int(point["y"]), int(point["x"])
        same = cell == (self.selection.truth, self.selection.predicted)
        truth, predicted = (None, None) if same else cell
        self.selection.change(truth=truth, predicted=predicted, **{"samples.group": ""})

    def _class(self, point: dict[str, Any]) -> None:
        truth = int(point["x"])
        truth_or_none = None if truth == self.selection.truth else truth
        self.selection.change(truth=truth_or_none, predicted=None, **{"samples.group": ""})

    def _group(self, point: dict[str, Any]) -> None:
        group = int(point["data"])
        text = "" if group == self._filter().group else str(group + 1)
        self.selection.change(truth=None, predicted=None, **{"samples.group": text})


OFFERED = {**WRITTEN, "point": "point on the plane", "weights": "weights of Weights"}
