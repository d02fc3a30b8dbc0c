"""Forty questions on stored runs whose answers are known from their files and from loops over their samples."""

import json
import math
import shutil

import numpy as np
import pytest
import tiny
import torch

from drift.runs.registry import registered
from figures import gallery
from figures.assistants.json_values import RefusedQuestion
from figures.assistants.questions import Questions


@pytest.fixture(scope="module")
def ask(runs):
    """Questions about these runs; nothing may be written beside them."""
    before = {path: path.stat().st_mtime_ns for path in runs[0].folder.parent.rglob("*")}
    yield Questions(runs[0].folder.parent)
    assert {path: path.stat().st_mtime_ns for path in runs[0].folder.parent.rglob("*")} == before


@pytest.fixture(scope="module")
def fedavg(runs):
    return runs[0]


def values(run, theta, split="test"):
    """Loss and error of every sample, one after the other in float64."""
    task, samples = run.task, run.task.split(split)
    losses, errors = [], []
    for row in range(len(samples)):
        single = samples[torch.tensor([row])]
        output = task.outputs(theta.float(), single).double()
        losses.append(float(torch.logsumexp(output, 1) - output[0, single.targets]))
        errors.append(float(output.argmax() != single.targets))
    return np.array(losses), np.array(errors)


def mean(numbers):
    """Mean and standard error."""
    return float(numbers.mean()), float(numbers.std(ddof=1) / len(numbers) ** 0.5)


def told(answer, name="loss"):
    return answer[name]["value"], answer[name]["standard_error"]


def weighted(run, index, weights):
    record = run.round(index)
    named = {f"client {client}": row for client, row in zip(record.ids.tolist(), record.clients, strict=True)}
    named |= {"start": record.start, "end": record.end}
    return sum(value * named[name].double() for name, value in weights.items())


RECORDED = {
    "how many runs": (lambda ask, run: len(ask.list_runs()["runs"]), lambda run: 4),
    "runs of FedLAW": (
        lambda ask, run: [row["method"] for row in ask.list_runs("fedlaw")["runs"]],
        lambda run: ["fedlaw", "fedlaw"],
    ),
    "seeds": (lambda ask, run: sorted(row["seed"] for row in ask.list_runs("fedavg")["runs"]), lambda run: [5, 6]),
    "no such run": (lambda ask, run: ask.list_runs("nothing")["runs"], lambda run: []),
    "last accuracy in the list": (
        lambda ask, run: next(row["last_accuracy"] for row in ask.list_runs()["runs"] if row["name"] == run.name),
        lambda run: run.round(2).metrics["accuracy"],
    ),
    "rounds": (lambda ask, run: ask.describe_run(run.name)["rounds"], lambda run: 3),
    "rounds with clients": (lambda ask, run: ask.describe_run(run.name)["rounds_with_clients"], lambda run: [0, 1, 2]),
    "unit": (lambda ask, run: ask.describe_run(run.name)["loss_unit"], lambda run: "nats"),
    "learning rate": (lambda ask, run: ask.describe_run(run.name)["settings"]["local"]["lr"], lambda run: 0.05),
    "clients per round": (
        lambda ask, run: ask.describe_run(run.name)["settings"]["clients"]["per_round"],
        lambda run: 3,
    ),
    "mean accuracy": (
        lambda ask, run: ask.describe_run(run.name)["accuracy"],
        lambda run: np.mean([run.round(index).metrics["accuracy"] for index in range(3)]),
    ),
    "accuracy over rounds": (
        lambda ask, run: ask.read_numbers(run.name, "accuracy")["values"],
        lambda run: [run.round(index).metrics["accuracy"] for index in range(3)],
    ),
    "loss of one round": (
        lambda ask, run: ask.read_numbers(run.name, "loss", [1])["values"],
        lambda run: [run.round(1).metrics["loss"]],
    ),
    "rounds of the numbers": (
        lambda ask, run: ask.read_numbers(run.name, "loss")["coordinates"]["round"],
        lambda run: [0, 1, 2],
    ),
    "cohort": (
        lambda ask, run: [client["id"] for client in ask.show_round(run.name, 1)["cohort"]],
        lambda run: run.round(1).ids.tolist(),
    ),
    "last round by -1": (lambda ask, run: ask.show_round(run.name, -1)["round"], lambda run: 2),
    "samples of clients": (
        lambda ask, run: [client["samples"] for client in ask.show_round(run.name, 0)["cohort"]],
        lambda run: [len(run.parts[client]) for client in run.round(0).ids.tolist()],
    ),
    "labels of clients": (
        lambda ask, run: [client["counts"] for client in ask.show_round(run.name, 0)["cohort"]],
        lambda run: [
            np.bincount(run.labels[run.parts[client]], minlength=len(run.dataset.classes)).tolist()
            for client in run.round(0).ids.tolist()
        ],
    ),
    "weights of clients": (
        lambda ask, run: [client["weight"] * 1.0 for client in ask.show_round(run.name, 0)["cohort"]],
        lambda run: (run.round(0).sizes / run.round(0).sizes.sum()).tolist(),
    ),
    "loss of the end": (
        lambda ask, run: ask.show_round(run.name, 2)["test_loss"]["end"],
        lambda run: values(run, run.round(2).end)[0].mean(),
    ),
    "loss of the start": (
        lambda ask, run: ask.show_round(run.name, 1)["test_loss"]["start"],
        lambda run: values(run, run.round(0).end)[0].mean(),
    ),
    "losses of clients": (
        lambda ask, run: [client["loss"] for client in ask.show_round(run.name, 1)["cohort"]],
        lambda run: [values(run, theta)[0].mean() for theta in run.round(1).clients],
    ),
    "cost of a client": (
        lambda ask, run: ask.show_round(run.name, 1)["cohort"][0]["cost"],
        lambda run: cost_of_first(run, 1),
    ),
    "reasons of a round": (
        lambda ask, run: len(ask.show_round(run.name, 1)["why"]),
        lambda run: 4,
    ),
    "a model alone": (
        lambda ask, run: told(ask.evaluate(run.name, 1, {"client 0": 1} if 0 in run.round(1).ids else {"start": 1})),
        lambda run: mean(values(run, weighted(run, 1, {"client 0": 1} if 0 in run.round(1).ids else {"start": 1}))[0]),
    ),
    "its error": (
        lambda ask, run: told(ask.evaluate(run.name, 1, {"end": 1}), "error"),
        lambda run: mean(values(run, run.round(1).end)[1]),
    ),
    "other weights of clients": (
        lambda ask, run: told(ask.evaluate(run.name, 2, uneven(run))),
        lambda run: mean(values(run, weighted(run, 2, uneven(run)))[0]),
    ),
    "weights that do not sum to one": (
        lambda ask, run: told(ask.evaluate(run.name, 2, {"start": 0.5, "end": -0.2})),
        lambda run: mean(values(run, weighted(run, 2, {"start": 0.5, "end": -0.2}))[0]),
    ),
    "training samples": (
        lambda ask, run: told(ask.evaluate(run.name, 0, {"end": 1}, "train")),
        lambda run: mean(values(run, run.round(0).end, "train")[0]),
    ),
    "number of samples": (
        lambda ask, run: ask.evaluate(run.name, 0, {"end": 1}, samples=5)["samples"],
        lambda run: 5,
    ),
    "names of analyses": (lambda ask, run: sorted(ask.list_analyses()["analyses"]), lambda run: sorted(registered())),
    "coherence": (
        lambda ask, run: ask.analyse(run.name, "coherence")["variables"]["mean_cosine"]["values"],
        lambda run: [cosine(run, index) for index in range(3)],
    ),
    "one variable": (
        lambda ask, run: list(ask.analyse(run.name, "coherence", variables=["mean_cosine"])["variables"]),
        lambda run: ["mean_cosine"],
    ),
    "full participation": (
        lambda ask, run: ask.analyse(run.name, "counterfactual", {"rounds": [1]}, ["loss"], 1e9)["variables"]["loss"][
            "values"
        ],
        lambda run: [values(run, run.round(1).end)[0].mean()],
    ),
    "what if all weighed the same": (
        lambda ask, run: len(
            ask.analyse(run.name, "what_if", {"rounds": [1]}, ["loss"])["variables"]["loss"]["values"]
        ),
        lambda run: 1,
    ),
    "findings": (
        lambda ask, run: sum(bool(one["in_words"]) for one in ask.diagnose_run(run.name)["findings"]),
        lambda run: 8,
    ),
    "no causes without training": (lambda ask, run: ask.diagnose_run(run.name)["causes"], lambda run: []),
    "names of figures": (lambda ask, run: sorted(ask.list_figures()["figures"]), lambda run: gallery.names()),
    "cost of a figure": (
        lambda ask, run: ask.list_figures("accuracy-rounds")["figures"]["accuracy-rounds"]["cost"],
        lambda run: "seconds",
    ),
    "a picture": (
        lambda ask, run: ask.draw("accuracy-rounds", [run.name])[0][:8],
        lambda run: b"\x89PNG\r\n\x1a\n",
    ),
}


def cost_of_first(run, index):
    record = run.round(index)
    sizes, clients = record.sizes.double(), record.clients.double()
    aggregate, without = (sizes @ clients) / sizes.sum(), (sizes[1:] @ clients[1:]) / sizes[1:].sum()
    return values(run, aggregate)[0].mean() - values(run, without)[0].mean()


def uneven(run):
    return {
        f"client {client}": weight for client, weight in zip(run.round(2).ids.tolist(), (0.7, 0.5, -0.2), strict=True)
    }


def cosine(run, index):
    record = run.round(index)
    updates = (record.clients - record.start).double().numpy()
    units = updates / np.linalg.norm(updates, axis=1, keepdims=True)
    pairs = [(i, j) for i in range(len(units)) for j in range(i)]
    weights = [float(record.sizes[i] * record.sizes[j]) for i, j in pairs]
    return np.average([units[i] @ units[j] for i, j in pairs], weights=weights)


def test_there_are_forty():
    assert len(RECORDED) == 40


@pytest.mark.parametrize("question", RECORDED)
def test_the_answer_is_known(ask, fedavg, question):
    asked, known = RECORDED[question]
    answer, expected = asked(ask, fedavg), known(fedavg)
    if isinstance(answer, bytes) or question.startswith("names"):
        assert answer == expected
        return
    json.dumps(answer, allow_nan=False)
    if np.asarray(expected).dtype.kind == "f":
        assert answer == pytest.approx(expected, rel=2e-5, abs=2e-6)
    else:
        assert answer == expected


REFUSED = {
    "a run that is not there": lambda ask, run: ask.describe_run("nix"),
    "a number that is not there": lambda ask, run: ask.read_numbers(run.name, "acuracy"),
    "a round that is not there": lambda ask, run: ask.read_numbers(run.name, "loss", [0, 7]),
    "a round before the first": lambda ask, run: ask.read_numbers(run.name, "loss", [-4]),
    "weights beyond all numbers": lambda ask, run: ask.evaluate(run.name, 0, {"end": 1e300}),
    "no weights": lambda ask, run: ask.evaluate(run.name, 0, {}),
    "weights of zero": lambda ask, run: ask.evaluate(run.name, 0, {"end": 0.0}),
    "weights that are not finite": lambda ask, run: ask.evaluate(run.name, 0, {"end": math.nan}),
    "a client that is not there": lambda ask, run: ask.evaluate(run.name, 0, {"client 99": 1}),
    "an analysis that is not there": lambda ask, run: ask.analyse(run.name, "cohrence"),
    "an option that is not there": lambda ask, run: ask.analyse(run.name, "coherence", {"k": 3}),
    "a variable that is not there": lambda ask, run: ask.analyse(run.name, "coherence", variables=["x"]),
    "a figure that is not there": lambda ask, run: ask.draw("accuracy", [run.name]),
}


@pytest.mark.parametrize("question", REFUSED)
def test_what_cannot_be_answered_is_refused_in_a_line(ask, fedavg, question):
    with pytest.raises((ValueError, LookupError, TypeError)) as refused:
        REFUSED[question](ask, fedavg)
    assert 10 < len(str(refused.value)) < 1500 and "\n" not in str(refused.value).strip()


def test_what_takes_long_states_its_cost_first(ask, fedavg):
    for call in (
        lambda seconds: ask.analyse(fedavg.name, "eigen_rounds", {"k": 1, "rounds": [2]}, seconds=seconds),
        lambda seconds: ask.draw("accuracy-rounds", [fedavg.name], seconds=seconds),
    ):
        with pytest.raises(RefusedQuestion, match=r"this takes about \d+ s .* call again with seconds=\d+"):
            call(0.5)
        call(1e9)
    ask.analyse(fedavg.name, "eigen_rounds", {"k": 1, "rounds": [2]}, seconds=0.5)  # known from the call above


@pytest.mark.parametrize(
    ("analysis", "options", "cost"),
    [
        ("round_plane", {"points": 1000}, 10 * (1000 / 21) ** 2),
        ("round_plane", {"points": 100_000}, 10 * (100_000 / 21) ** 2),
        ("global_line", {"points": 4100}, 1000),
        ("eigen_rounds", {"k": 50}, 1200),
    ],
)
def test_the_cost_grows_with_the_points_asked_for(ask, fedavg, analysis, options, cost):
    with pytest.raises(RefusedQuestion, match=rf"takes about {cost:.0f} s .* times as large as usual"):
        ask.analyse(fedavg.name, analysis, {"round": 2, **options} if "plane" in analysis else options)
    with pytest.raises(RefusedQuestion, match=r"takes about \d+ s \(a computation of the kind \w+\)"):
        ask.analyse(fedavg.name, analysis, {"tolerance": 0.1} if "plane" in analysis else {}, seconds=0.5)


@pytest.mark.parametrize(
    ("figure", "options", "cost"),
    [
        ("planes-clients", {"points": 210}, 60 * 100),
        ("lines-globals", {"points": 410}, 10 * 10),
        ("eigen-rounds", {"rounds": 40}, 10 * 10),
        ("robustness-table", {"draws": 30, "after": [1]}, 10 * 10),
    ],
)
def test_the_cost_of_a_figure_grows_with_what_is_asked_for(ask, runs, figure, options, cost):
    for number in (1, 2):
        with pytest.raises(RefusedQuestion, match=rf"takes about {number * cost} s .*, \d+ times as large as usual\)"):
            ask.draw(figure, [run.name for run in runs[:number]], options)


def test_weights_without_a_finite_loss_are_refused_with_what_is_accepted(ask, fedavg):
    with pytest.raises(
        RefusedQuestion, match=r"weights are \{'end': 1e\+300\}: the loss is not finite; give numbers about 1"
    ):
        ask.evaluate(fedavg.name, 2, {"end": 1e300})


def test_rounds_are_counted_from_the_last_by_every_question(ask, fedavg):
    told = ask.read_numbers(fedavg.name, "loss", [-1, 0])
    assert told["coordinates"]["round"] == [2, 0]
    assert told["values"] == [fedavg.round(index).metrics["loss"] for index in (2, 0)]
    assert ask.evaluate(fedavg.name, -1, {"end": 1})["round"] == ask.show_round(fedavg.name, -1)["round"] == 2


def test_runs_of_one_method_are_told_apart_by_their_settings(runs, tmp_path):
    other = [tiny.trained(tmp_path, f"clients.partition.concentration={value}") for value in (0.5, 2.0)]
    for run in (runs[0], runs[2]):
        shutil.copytree(run.folder, tmp_path / run.name)
    (tmp_path / other[1].name / "run.json").write_text("{")
    told = {row["name"]: row.get("settings") for row in Questions(tmp_path).list_runs()["runs"]}
    key = "clients.partition.concentration"
    assert told == {runs[0].name: {key: 1.0}, other[0].name: {key: 0.5}, other[1].name: None, runs[2].name: None}
    (row,) = Questions(tmp_path).list_runs(other[0].name)["runs"]
    assert row["settings"] == {key: 0.5}, "the others of the method count, though they are not listed"


def test_a_long_result_has_ranges_and_its_values_by_name(ask, fedavg, monkeypatch):
    monkeypatch.setattr("figures.assistants.questions.MOST", 2)
    brief = ask.analyse(fedavg.name, "coherence")["variables"]["mean_cosine"]
    named = ask.analyse(fedavg.name, "coherence", variables=["mean_cosine"])["variables"]["mean_cosine"]["values"]
    assert (brief["min"], brief["max"]) == (min(named), max(named)) and brief["sizes"] == {"round": 3}


def test_stored_results_are_written_where_that_is_asked_for(runs, tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(runs[1].folder, folder / runs[1].name)
    shutil.rmtree(folder / runs[1].name / "results", ignore_errors=True)
    for store, number in ((False, 0), (True, 1)):
        Questions(folder, store=store).analyse(runs[1].name, "coherence")
        assert len(list((folder / runs[1].name).rglob("coherence*.nc"))) == number
