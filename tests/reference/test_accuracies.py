"""Losses, predictions, accuracies and costs of stored models against float64, counted sample by sample."""

from dataclasses import replace

import numpy as np
import tiny
import torch
from reference.linear_model import (
    FULL,
    error,
    loss,
    models,
    numbers,
    outputs,
    part,
    probabilities,
    sample_losses,
    trained,
)
from reference.registry import agree, reference

import drift
from drift.config.load import validated
from drift.simulation.simulate import simulate
from landscape.datasets import digits
from landscape.datasets._dataset import Groups
from tests import movielens


@reference("drift.client_losses", by="softmax cross-entropy written out, float64")
def test_client_losses(run):
    record, found = run.round(1), drift.client_losses(run, round=1)
    for place, client in enumerate(record.ids.tolist()):
        own, theta = found.sel(client=client), models(record)[place]
        agree("drift.client_losses", own.loss, loss(theta, run.task.split("test")), relative=1e-5)
        agree("drift.client_losses", own.error, error(theta, run.task.split("test")), relative=1e-6, absolute=1e-7)
        if not len(run.parts[client]):
            assert np.isnan(float(own.own_loss))
            continue
        for name, model in (("own_loss", theta), ("start_own_loss", record.start), ("end_own_loss", record.end)):
            agree("drift.client_losses", own[name], sample_losses(model, *part(run, client)).mean(), relative=1e-5)


@reference("drift.sample_predictions", "drift.confusion", "drift.disagreement", by="argmax and counts, one by one")
def test_predictions(run):
    record = run.round(-1)
    first = f"client {int(record.ids[0])}"
    inputs, labels = numbers(run.task.split("train"))
    thetas = {"end": record.end, first: models(record)[0]}
    found = drift.sample_predictions(run, models=list(thetas), split="train")
    counted = drift.confusion(run, models=list(thetas), split="train")
    for name, theta in thetas.items():
        p, own = probabilities(theta, inputs), found.sel(model=name)
        agree("drift.sample_predictions", own.predicted, p.argmax(1), relative=0)
        agree("drift.sample_predictions", own.confidence, p.max(1), relative=1e-5)
        agree("drift.sample_predictions", own.loss, sample_losses(theta, inputs, labels), relative=1e-5)
        table = np.zeros((4, 4))
        for label, guess in zip(labels, p.argmax(1), strict=True):
            table[label, guess] += 1
        agree("drift.confusion", counted["count"].sel(model=name), table, relative=0)
        agree("drift.confusion", counted.error.sel(model=name), (p.argmax(1) != labels).mean(), relative=1e-12)
        wrong = [np.nan if not row.sum() else 1 - row[c] / row.sum() for c, row in enumerate(table)]
        agree("drift.confusion", counted.class_error.sel(model=name), wrong, relative=1e-12)
    groups = drift.disagreement(run, split="train", groups=3)
    both = [probabilities(thetas[name], inputs).argmax(1) for name in (first, "end")]
    agree("drift.disagreement", groups.differs, both[0] != both[1], relative=0)
    for number in groups.group.values.tolist():
        rows = np.flatnonzero(groups.sample_group.values == number)
        two = [row for row in rows if both[0][row] != both[1][row]]
        own = groups.sel(group=number)
        expected = [len(two), len(two) / len(rows)]
        expected += [sum(side[row] == labels[row] for row in two) / len(two) for side in both]
        names = ("group_size", "group_share", "group_client_right", "group_other_right")
        agree("drift.disagreement", [float(own[name]) for name in names], expected, relative=1e-12)


@reference("drift.personal_accuracy", by="fine-tuning by written-out gradient descent, float64")
def test_personal_accuracy(tmp_path):
    run = tiny.trained(tmp_path, *FULL, "clients.valid_ratio=0.3")
    found = drift.personal_accuracy(run, epochs=4)
    end, sizes, rows = run.round(-1).end, [], []
    inputs, labels = numbers(run.task.samples["train"])
    for client in found.client.values.tolist():
        held = run.dataset.held_out[client]
        tuned = trained(end, inputs[run.parts[client]], labels[run.parts[client]], steps=4)
        values = []
        for theta in (end, tuned):
            right = outputs(theta, inputs[held]).argmax(1) == labels[held]
            values += [sample_losses(theta, inputs[held], labels[held]).mean(), right.mean()]
        rows.append(values)
        sizes.append(len(held))
    names = ("loss", "accuracy", "tuned_loss", "tuned_accuracy")
    for place, name in enumerate(names):
        agree("drift.personal_accuracy", found[name], np.array(rows)[:, place], relative=1e-5)
    mean = np.array(rows)[:, 1] @ np.array(sizes) / sum(sizes)
    agree("drift.personal_accuracy", found.attrs["mean_accuracy"], mean, relative=1e-6)


@reference("drift.domain_accuracy", by="samples of each domain, counted one by one")
def test_domain_accuracy(tmp_path, monkeypatch):
    load = digits.load

    def grouped(folder=None):
        dataset = load(folder)
        train, test = torch.arange(len(dataset.train)) % 3, (torch.arange(len(dataset.test)) % 5 == 0).long()
        return replace(dataset, groups={"domain": Groups(("print", "script", "ink"), train, test)})

    monkeypatch.setattr(digits, "load", grouped)
    task = {"dataset": "digits", "model": "linear", "test_samples": 150}
    clients = {"number": 3, "per_round": 2, "partition": "domains"}
    run = simulate(
        validated({"rounds": 2, "task": task, "clients": clients, "keep": {"globals": "all"}}), runs=tmp_path
    )
    found, test = drift.domain_accuracy(run), run.task.split("test")
    domains = run.dataset.groups["domain"].test.tolist()
    for index in range(2):
        theta = run.round(index).end.double().numpy()
        weight, bias = theta[:640].reshape(10, 64), theta[640:]
        guesses = (test.inputs.double().numpy().reshape(len(test), 64) @ weight.T + bias).argmax(1)
        rows = []
        for number in range(3):
            own = [
                guess == label for guess, label, d in zip(guesses, test.targets, domains, strict=True) if d == number
            ]
            rows.append(sum(map(float, own)) / len(own) if own else np.nan)
        agree("drift.domain_accuracy", found.accuracy.sel(round=index), rows, relative=1e-6)
        agree("drift.domain_accuracy", found.mean_accuracy.sel(round=index), np.nanmean(rows), relative=1e-6)
        agree("drift.domain_accuracy", found.accuracy_std.sel(round=index), np.nanstd(rows, ddof=1), relative=1e-5)


@reference("drift.ranking_rounds", by="pairs and lists counted one by one; scores are the model's own")
def test_ranking_rounds(tmp_path):
    movielens.write(tmp_path / "data" / "movielens1m")
    clients = {"number": 3, "per_round": 2, "partition": "users"}
    content = {"rounds": 2, "task": movielens.TASK, "clients": clients, "keep": {"globals": "all"}}
    run = simulate(validated(content), runs=tmp_path / "runs", data=tmp_path / "data")
    found, test = drift.ranking_rounds(run, k=(1, 3)), run.task.split("test")
    users = run.dataset.groups["user"].test.tolist()
    for index in range(2):
        scores = run.task.outputs(run.round(index).end, "test")[:, 0].tolist()
        rows = list(zip(scores, test.targets.tolist(), users, strict=True))

        def area(own):
            pairs = [(a, b) for a, hit, _ in own if hit for b, other, _ in own if not other]
            return sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)

        agree("drift.ranking_rounds", found.auc.sel(round=index), area(rows), relative=1e-12)
        lists = [[row for row in rows if row[2] == user] for user in sorted(set(users))]
        agree("drift.ranking_rounds", found.user_auc.sel(round=index), np.mean(list(map(area, lists))), relative=1e-12)
        ranks = []
        for own in lists:
            (hit,) = [score for score, label, _ in own if label]
            ranks.append(1 + sum(score >= hit for score, label, _ in own if not label))
        for k in (1, 3):
            own = found.sel(round=index, rank=k)
            agree("drift.ranking_rounds", own.hit_rate, np.mean([rank <= k for rank in ranks]), relative=1e-12)
            gains = [1 / np.log2(rank + 1) if rank <= k else 0 for rank in ranks]
            agree("drift.ranking_rounds", own.ndcg, np.mean(gains), relative=1e-12)


@reference("drift.training_cost", by="products of a linear model and bytes of its parameters, counted")
def test_cost(run):
    found, record = drift.training_cost(run, repeats=1, plain=False), run.round(-1)
    agree("drift.training_cost", found.macs, 4 * 8, relative=0)
    agree("drift.training_cost", [found.bytes_up, found.bytes_down], [len(record.ids) * 36 * 4] * 2, relative=0)
    agree("drift.training_cost", found.samples, max(len(run.parts[k]) for k in record.ids.tolist()), relative=0)
