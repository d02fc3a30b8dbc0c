"""Analyses of the record against loops over models in float64: hostile cohorts, weights that are not the sizes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from reference.registry import agree, reference

import drift
from tests.drift import hand
from tests.drift.holding import LabelRun

D, K = 5, 6

HELD = [[0, 0, 1, 2], [1] * 5, [2, 0], [0, 1, 2, 2, 2, 1, 0], [1], []]
"""Labels of the clients; one has a single sample, one has none."""

COHORTS = {
    "unequal": ([4, 0, 3], [1, 4, 7], [0.5, 0.15, 0.25]),
    "one client": ([3], [7], [0.9]),
    "identical clients": ([0, 1, 2], [4, 5, 2], [0.2, 0.5, 0.3]),
    "a zero update and a client without samples": ([1, 5, 3], [5, 0, 7], [0.6, 0.0, 0.4]),
    "every client diverged": ([], [], []),
    "one of four diverged": ([2, 4, 0], [2, 1, 4], [0.1, 0.2, 0.7]),
    "nobody moved": ([0, 1], [4, 5], [0.5, 0.5]),
    "nobody has samples": ([5, 2], [0, 0], [0.5, 0.5]),
}


def made(index, name):
    """A round with random start, previous update and step; updates as its name says."""
    ids, sizes, weights = COHORTS[name]
    start, updates = 3 + hand.random(D, seed=index), hand.random(len(ids), D, seed=100 + index)
    if name == "identical clients":
        updates[:] = updates[0]
    if name.startswith("a zero"):
        updates[0] = 0
    if name == "nobody moved":
        updates[:] = 0
    clients = start + updates
    group = hand.cohort(clients, start=start, sizes=sizes, ids=ids, index=index) if ids else None
    if group is None:
        empty = hand.cohort(start[None], start=start, sizes=[1], ids=[0], index=index)
        whole = hand.record(empty, torch.full_like(start, torch.nan), previous=hand.random(D, seed=7))
        nothing = {name: getattr(whole, name)[:0] for name in ("ids", "sizes", "weights", "clients")}
        return replace(whole, **nothing, gram=whole.gram[:3, :3].nan_to_num(), end=start)
    end = start + 0.8 * hand.random(D, seed=200 + index)
    record = hand.record(group, end, previous=hand.random(D, seed=300 + index), weights=hand.vector(*weights))
    return replace(record, extras={"excluded": torch.tensor([5])}) if name.startswith("one of") else record


@pytest.fixture(params=["samples", "uniform"])
def run(request):
    """Eight hostile rounds of six clients; the experiment weighs clients by samples, or equally."""
    experiment = hand.experiment(number=K, rounds=8, clients={"weighting": request.param})
    records = [made(index, name) for index, name in enumerate(COHORTS)]
    return LabelRun(records, experiment=experiment, d=D, held=HELD)


def arrays(record):
    """Updates (m, d), start, end, weights used, sizes, and FMA's weights, as NumPy float64."""
    sizes = record.sizes.double().numpy()
    fma = sizes / sizes.sum() if sizes.sum() else np.full(len(sizes), 1 / max(len(sizes), 1))
    start = record.start.numpy()
    return record.clients.numpy() - start, start, record.end.numpy(), record.weights.double().numpy(), sizes, fma


def own_weights(run, sizes):
    """Weights of the experiment, written out."""
    if not sizes.sum():
        return np.full(len(sizes), 1 / max(len(sizes), 1))
    own = sizes if run.experiment.clients.weighting == "samples" else (sizes > 0).astype(float)
    return own / own.sum()


def cosine(first, second):
    lengths = np.sqrt(first @ first) * np.sqrt(second @ second)
    return first @ second / lengths if lengths > 0 else 0.0


def column(run, measure):
    """One number per round; NaN where the round has none."""
    return np.array([measure(record) for record in run.records])


@reference("drift.coherence", by="loops over pairs of client updates, float64")
def test_coherence(run):
    def value(record, mean):
        updates, _, _, used, *_ = arrays(record)
        m, lambdas = len(updates), used / used.sum() if len(used) else used
        if m < 2:
            return np.nan
        pairs = [(i, j) for i in range(m) for j in range(m) if i != j]
        total = sum(lambdas[i] * lambdas[j] * cosine(updates[i], updates[j]) for i, j in pairs)
        return total / sum(lambdas[i] * lambdas[j] for i, j in pairs) if mean else total / m

    found = drift.coherence(run, groups={"a": [0, 2, 3], "b": [1, 4, 5]})
    agree("drift.coherence", found.coherence, column(run, lambda record: value(record, False)), relative=1e-12)
    agree("drift.coherence", found.mean_cosine, column(run, lambda record: value(record, True)), relative=1e-12)
    plain = found.coherence.values
    smooth = [np.nan] * 2 + [
        np.nanmean(plain[t - 2 : t + 1]) if np.isfinite(plain[t - 2 : t + 1]).any() else np.nan for t in range(2, 8)
    ]
    agree("drift.coherence", found.coherence_smooth, smooth, relative=1e-12)

    def between(record, rows, columns):
        updates, _, _, used, *_ = arrays(record)
        ids = record.ids.tolist()
        pairs = [(i, j) for i in range(len(ids)) for j in range(len(ids)) if i != j]
        pairs = [(i, j) for i, j in pairs if ids[i] in rows and ids[j] in columns and used[i] * used[j] > 0]
        total = sum(used[i] * used[j] for i, j in pairs)
        if not pairs or len(ids) < 2:
            return np.nan
        return sum(used[i] * used[j] * cosine(updates[i], updates[j]) for i, j in pairs) / total

    for pair, (rows, columns) in {"a-a": ([0, 2, 3],) * 2, "a-b": ([0, 2, 3], [1, 4, 5])}.items():
        expected = column(run, lambda record, rows=rows, columns=columns: between(record, rows, columns))
        agree("drift.coherence", found.group_cosine.sel(pair=pair), expected, relative=1e-12)


@reference("drift.pairwise", "drift.cohort_table", by="loops over client updates, float64")
def test_tables_of_one_round(run):
    for record in run.records:
        updates, start, end, used, sizes, fma = arrays(record)
        if not len(updates):
            continue
        expected = [[cosine(a, b) for b in updates] for a in updates]
        agree("drift.pairwise", drift.pairwise(run, round=record.index).cosine, expected, relative=1e-12)
        found = drift.cohort_table(run, round=record.index)
        mean = own_weights(run, sizes) @ updates
        rows = {
            "update_norm": [np.linalg.norm(a) for a in updates],
            "distance": [np.linalg.norm(a - mean) for a in updates],
            "cosine_mean": [cosine(a, mean) for a in updates],
            "cosine_step": [cosine(a, end - start) for a in updates],
            "weight": used,
            "relative_weight": used / used.sum(),
            "share": fma,
            "samples": sizes,
            "cosine": expected,
        }
        for name, values in rows.items():
            agree("drift.cohort_table", found[name], values, relative=1e-12, absolute=3e-7 * (name == "distance"))


@reference("drift.update_norms", "drift.locality", by="norms of differences of models, float64")
def test_norms_and_locality(run):
    def norms(record):
        updates, start, end, _, sizes, fma = arrays(record)
        own = [np.linalg.norm(update) for update, share in zip(updates, fma, strict=True) if share > 0] or [np.nan]
        mean = np.linalg.norm(own_weights(run, sizes) @ updates) if len(updates) else np.nan
        return [np.linalg.norm(start), np.linalg.norm(end), np.linalg.norm(end - start), mean, np.mean(own), min(own)]

    found, expected = drift.update_norms(run), column(run, norms)
    names = ("start_norm", "end_norm", "step_norm", "mean_update_norm", "update_norm_mean", "update_norm_min")
    for place, name in enumerate(names):
        agree("drift.update_norms", found[name], expected[:, place], relative=1e-12)

    def far(record):
        clients, fma = record.clients.numpy(), arrays(record)[-1]
        if not len(clients):
            return [np.nan, np.nan]
        mean = sum(share * client for share, client in zip(fma, clients, strict=True))
        lengths = np.array([np.linalg.norm(client - mean) for client in clients])
        return [lengths[fma > 0].max(), fma @ lengths]

    found, expected = drift.locality(run), column(run, far)
    for place, name in enumerate(("locality", "mean_distance")):
        agree("drift.locality", found[name], expected[:, place], relative=1e-7)  # from squares: root of rounding
        assert float(found[name][1]) < 1e-6, "one client is its own mean"


@reference(
    "drift.regularisation_ratio",
    "drift.regularisation_ratio_mean",
    "drift.aggregation_weights",
    by="the step written out with models, float64",
)
def test_balance_and_weights(run):
    def terms(record):
        _, start, end, used, *_ = arrays(record)
        if not len(used):
            return [np.nan] * 4
        gamma = used.sum()
        shrink = 0 if abs(gamma - 1) < 1e-6 else 1 - gamma
        first, second = np.linalg.norm(end - start + shrink * start), np.linalg.norm(shrink * start)
        return [gamma, first, second, first / second if second else np.nan]

    found, expected = drift.regularisation_ratio(run), column(run, terms)
    names = ("gamma", "optimisation", "regularisation", "ratio")
    for place, name in enumerate(names):
        agree("drift.regularisation_ratio", found[name], expected[:, place], relative=1e-12)
    middle = drift.regularisation_ratio_mean(run, window=(0.0, 0.75))
    for place, name in enumerate(names):
        agree("drift.regularisation_ratio_mean", middle[name], np.nanmean(expected[:7, place]), relative=1e-12)
    agree("drift.regularisation_ratio_mean", middle.ratio_std, np.nanstd(expected[:7, 3], ddof=1), relative=1e-12)

    weights, ratio = np.full((2, len(run.records), K), np.nan)
    for row, record in enumerate(run.records):
        *_, used, sizes, fma = arrays(record)
        for place, client in enumerate(record.ids.tolist()):
            weights[row, client] = used[place] / used.sum()
            ratio[row, client] = weights[row, client] / fma[place] if sizes[place] else np.nan
    found = drift.aggregation_weights(run)
    agree("drift.aggregation_weights", found["weights"], weights, relative=1e-12)
    agree("drift.aggregation_weights", found.weight_ratio, ratio, relative=1e-12)
    agree("drift.aggregation_weights", found.gamma, expected[:, 0], relative=1e-12)


@pytest.mark.parametrize("center", ["weighted", "uniform"])
@reference("drift.drift_variances", by="equation 13 over models and the filter of equation 12, loops in float64")
def test_drift_variances(run, center):
    rows, s, last = [], 0.3, -1
    for record in run.records:
        updates, *_, sizes, _ = arrays(record)
        active = sizes > 0
        if not active.any():
            rows.append([np.nan] * 5)
            continue
        m, mean = int(active.sum()), own_weights(run, sizes) @ updates
        centre = updates[active].mean(0) if center == "uniform" else mean
        momentum = hand.random(D, seed=300 + record.index).numpy()
        q = np.sum((momentum - mean) ** 2) / (m * D) if record.index - 1 == last else np.nan
        last = record.index
        r = sum(np.sum((update - centre) ** 2) for update in updates[active]) / (m**2 * D)
        gain = (s + q) / (s + q + r)
        after = (1 - gain) * (s + q)
        rows.append([q, r, q / (q + r), gain, after])
        s = s if np.isnan(q) else after
    found = drift.drift_variances(run, center=center, sigma0=0.3)
    for place, name in enumerate(("change_variance", "client_variance", "change_share", "gain", "sigma")):
        agree("drift.drift_variances", found[name], np.array(rows)[:, place], relative=1e-12)
    zero = drift.drift_variances(run, momentum="zero").change_variance[0]
    updates, *_, sizes, _ = arrays(run.records[0])
    agree("drift.drift_variances", zero, np.sum((own_weights(run, sizes) @ updates) ** 2) / (3 * D), relative=1e-12)


def divergence(first, second):
    """Jensen-Shannon divergence of two lists of labels, in nats, from its definition."""
    p, q = (np.array([list(labels).count(label) / len(labels) for label in range(3)]) for labels in (first, second))

    def information(a, b):
        return sum(x * np.log(x / y) for x, y in zip(a, b, strict=True) if x > 0)

    return information(p, (p + q) / 2) / 2 + information(q, (p + q) / 2) / 2


@reference("drift.label_scatter", by="lists of labels, counted one by one")
def test_label_scatter(run):
    whole = [label for labels in HELD for label in labels]
    found = drift.label_scatter(run)
    within, between = [], []
    for record in run.records:
        own = [HELD[client] for client in record.ids.tolist() if HELD[client]]
        cohort = [label for labels in own for label in labels]
        within.append(np.mean([divergence(labels, cohort) for labels in own]) if own else np.nan)
        between.append(divergence(cohort, whole) if own else np.nan)
        for client in record.ids.tolist():
            counts = [HELD[client].count(label) for label in range(3)]
            agree("drift.label_scatter", found["count"].sel(round=record.index, client=client), counts, relative=0)
    agree("drift.label_scatter", found.within_divergence, within, relative=1e-12, absolute=1e-16)
    agree("drift.label_scatter", found.between_divergence, between, relative=1e-12, absolute=1e-16)


@reference("drift.heterogeneity", by="mixtures of class shares and their similarities, written out")
def test_heterogeneity(run):
    shares = [np.array([labels.count(c) / len(labels) for c in range(3)]) if labels else None for labels in HELD]

    def mixture(ids, weights):
        usable = [(w, shares[k]) for w, k in zip(weights, ids, strict=True) if shares[k] is not None]
        total = sum(w for w, _ in usable)
        return sum(w * share for w, share in usable) / total if usable and total else np.full(3, np.nan)

    everybody = mixture(range(K), own_weights(run, np.array([len(labels) for labels in HELD], float)))
    found = drift.heterogeneity(run)
    agree("drift.heterogeneity", found.share, everybody, relative=1e-12)
    for ending in ("", "_data"):
        rows = []
        for record in run.records:
            *_, used, sizes, _ = arrays(record)
            p = mixture(record.ids.tolist(), used if not ending else own_weights(run, sizes))
            middle = (p + everybody) / 2
            parts = [
                sum(a * np.log(a / m) for a, m in zip(side, middle, strict=True) if a > 0) for side in (p, everybody)
            ]
            js = np.nan if np.isnan(p).any() else 1 - sum(parts) / 2 / np.log(2)
            overlap = 1 - np.abs(p - everybody).sum() / 2
            rows.append([overlap, p @ everybody / np.sqrt((p @ p) * (everybody @ everybody)), js])
        for place, name in enumerate(("overlap", "cosine", "jensen_shannon")):
            agree("drift.heterogeneity", found[f"{name}{ending}"], np.array(rows)[:, place], relative=1e-12)


@reference("drift.weight_factors", "drift.pooled_factors", by="Pearson's formula and Fisher's z, written out")
def test_weight_factors(run):
    sums = np.zeros(K)
    taken = np.zeros(K, bool)
    for record in run.records:
        *_, used, _, _ = arrays(record)
        for weight, client in zip(used, record.ids.tolist(), strict=True):
            sums[client] += weight / used.sum()
            taken[client] = True
    usable = [k for k in range(K) if HELD[k] and taken[k]]
    size = np.array([len(HELD[k]) for k in usable], float)
    spread = [np.var([HELD[k].count(c) / len(HELD[k]) for c in range(3)]) for k in usable]
    factors = {"size": size, "balance": 1 / np.maximum(spread, 1e-8)}
    factors["product"] = factors["size"] * factors["balance"]
    found = drift.weight_factors(run)
    twice = drift.pooled_factors([found, found])
    for name, values in factors.items():
        x, y = values - values.mean(), sums[usable] - sums[usable].mean()
        r = (x @ y) / np.sqrt((x @ x) * (y @ y))
        for result, number, called in (
            (found, len(usable), "weight_factors"),
            (twice, 2 * len(usable), "pooled_factors"),
        ):
            ends = [np.tanh(np.arctanh(r) + sign * 1.959963984540054 / np.sqrt(number - 3)) for sign in (-1, 1)]
            own = result.sel(factor=name)
            agree(f"drift.{called}", [own.pearson, own.low, own.high], [r, *ends], relative=1e-9)


@reference("drift.server_epochs", by="the recorded curves, searched epoch by epoch")
def test_server_epochs(run):
    gamma, shares = (
        np.array([0.9, 0.8, 0.86, 0.851, 0.85]),
        np.array([[0.5, 0.5], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7], [0.3, 0.7]]),
    )
    extras = {"gamma_epochs": gamma, "lambda_epochs": shares, "proxy_loss_epochs": gamma**2}
    extras |= {"gamma": np.array(0.85), "lambda": shares[-1]}
    last = run.records[6]
    changed = replace(last, extras={name: torch.from_numpy(np.array(value)) for name, value in extras.items()})
    other = replace(run, records=[changed])

    def first_settled(curve, reach):
        for epoch in range(len(curve)):
            if all(np.abs(curve[later] - curve[-1]).max() <= 0.05 * reach for later in range(epoch, len(curve))):
                return epoch + 1
        return np.nan

    found = drift.server_epochs(other)
    agree("drift.server_epochs", found.gamma_settled, first_settled(gamma[:, None], 0.1), relative=0)
    agree("drift.server_epochs", found.lambda_settled, first_settled(shares, 0.4), relative=0)
    agree("drift.server_epochs", found["lambda"], shares, relative=0)
    agree("drift.server_epochs", found.proxy_loss, gamma**2, relative=0)


def warnings_by_hand(run, losses):
    """Statistics of the early warning by detector, from the models of all rounds, each written out."""
    cosines, directions, gaps, steps = [], [], [], []
    for record in run.records:
        updates, start, end, *_, sizes, _ = arrays(record)
        own = sizes if sizes.sum() else np.ones(len(sizes))
        ids = [k for k in range(len(updates)) if own[k] > 0 and np.any(updates[k])]
        pairs = [(i, j, own[i] * own[j]) for i in ids for j in ids if i != j]
        some = len(ids) > 1
        cosines.append(
            sum(w * cosine(updates[i], updates[j]) for i, j, w in pairs) / sum(w for *_, w in pairs) if some else np.nan
        )
        squares = sum(cosine(updates[i], updates[j]) ** 2 for i in ids for j in ids)
        directions.append(np.log(len(ids) ** 2 / squares) if some else np.nan)
        lengths = sorted(np.linalg.norm(updates[k]) for k in ids)
        gaps.append(np.log(lengths[-1] / lengths[-2]) if len(ids) > 2 else np.nan)
        gaps[-1] = np.inf if "excluded" in record.extras else gaps[-1]
        step = np.linalg.norm(end - start)
        steps.append(np.log(step / np.linalg.norm(start)) if step > 0 else np.nan)

    def mean_of_three(values, last):
        some = [value for value in values[max(0, last - 2) : last + 1] if not np.isnan(value)]
        return sum(some) / len(some) if last >= 2 and some else np.nan

    def fall(values, last):
        means = [mean_of_three(values, index) for index in range(last + 1)]
        return np.nan if np.isnan(means[-1]) else max(value for value in means if not np.isnan(value)) - means[-1]

    rise = []
    for last in range(len(losses)):
        known = [-value for value in losses[: last + 1] if not np.isnan(value)]
        means = [sum(known[place : place + 3]) / 3 for place in range(len(known) - 2)]
        rise.append(np.log(-means[-1]) - min(np.log(-mean) for mean in means) if means else np.nan)
    known = [value for value in losses if not np.isnan(value)]
    count = len(losses)
    return {
        "coherence": [fall(cosines, last) for last in range(count)],
        "rank": [fall(directions, last) for last in range(count)],
        "client": gaps,
        "rate": steps,
        "variances": [np.nan] * count,
        "rise": rise,
        "stall": [np.nan] * (count - 1) + [np.log(min(known) / known[0])],
    }


@reference("drift.early_warning", by="means and falls over lists of models, written out, float64")
def test_early_warning(run):
    losses = [2.0, np.nan, 1.5, 1.0, np.nan, 0.8, 3.0, 9.0]
    for record, loss in zip(run.records, losses, strict=True):
        record.metrics["loss"] = loss
    found = drift.early_warning(run, planned=24)
    for name, expected in warnings_by_hand(run, losses).items():
        column, finite = found.statistic.sel(detector=name).values, ~np.isinf(expected)
        assert np.array_equal(column[~finite], np.array(expected)[~finite])
        agree("drift.early_warning", column[finite], np.array(expected)[finite], relative=1e-12)
        limit = found.limit.sel(detector=name).item()
        over = np.flatnonzero(np.nan_to_num(np.array(expected), nan=-np.inf) > limit)
        first = over[0] if len(over) else np.nan
        np.testing.assert_equal(found.first_alarm.sel(detector=name).item(), first)
        alarms = found.alarm.sel(detector=name).values
        np.testing.assert_array_equal(alarms, [float(len(over) > 0 and index >= first) for index in range(8)])
    assert found.first_alarm.sel(detector="client") == 5  # the round with a client that was not finite
