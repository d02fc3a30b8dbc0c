"""Analyses of stored models against float64: a linear model, full batches, so that all training can be written out."""

import numpy as np
from reference.linear_model import (
    EPOCHS,
    LR,
    ROUNDS,
    error,
    gradient,
    loss,
    models,
    numbers,
    own_weights,
    part,
    probabilities,
    sample_losses,
    trained,
)
from reference.registry import agree, reference

import drift
from drift.analyses.counterfactual.changes import changes
from drift.analyses.counterfactual.whatif import _samples
from drift.analyses.decomposition.evaluation_samples import select_samples
from tests.drift import hand


def test_the_record_is_full_batch_descent(run):
    """What the references below rest on: every stored client is reached by the written-out training."""
    sizes = {len(indices) for indices in run.parts}
    assert len(sizes) > 1, "unequal clients"
    for index in range(ROUNDS):
        record = run.round(index)
        for client, model in zip(record.ids.tolist(), models(record), strict=True):
            np.testing.assert_allclose(model, trained(record.start, *part(run, client)), atol=2e-6)


@reference("drift.what_if", by="losses of models averaged in float64, softmax written out")
def test_what_if(run):
    found = drift.what_if(run, windows=(2,), lowest=0.6, points=5)
    choosing, reporting = _samples(run, "half")
    for index in range(ROUNDS):
        record, own = run.round(index), found.sel(round=index)
        _, fma = own_weights(run, record.sizes)
        mean = fma @ models(record)
        gammas = np.linspace(0.6, 1, 5)
        best = gammas[np.argmin([loss(gamma * mean, choosing) for gamma in gammas])]
        variants = {"end": record.end, "fma": mean, "uniform": models(record)[record.sizes.numpy() > 0].mean(0)}
        variants |= {"gamma": best * mean}
        variants["weights"] = own.weight.values[record.ids.numpy()] @ models(record)
        if index:
            variants["ima-2"] = (record.end.double() + run.round(index - 1).end.double()).numpy() / 2
        agree("drift.what_if", own.gamma, best, relative=1e-12)
        agree("drift.what_if", own.share.values[record.ids.numpy()], fma, relative=1e-12)
        agree("drift.what_if", own.weight.values[record.ids.numpy()].sum(), 1.0, relative=1e-6)
        shrunk = [loss(gamma * mean, reporting) for gamma in gammas]
        agree("drift.what_if", own.shrink_loss, shrunk, relative=1e-5)
        for name, theta in variants.items():
            agree("drift.what_if", own.loss.sel(variant=name), loss(theta, reporting), relative=1e-5)
            agree("drift.what_if", own.error.sel(variant=name), error(theta, reporting), relative=1e-6, absolute=1e-7)
            gain = loss(record.end, reporting) - loss(theta, reporting)
            agree("drift.what_if", own.gain.sel(variant=name), gain, relative=1e-4, absolute=1e-6)
    assert np.isnan(float(found.loss.sel(variant="ima-2", round=0)))


@reference("drift.counterfactual", by="all clients trained by written-out gradient descent, float64")
def test_counterfactual(run):
    found = drift.counterfactual(run, rounds=list(range(ROUNDS)))
    previous = np.zeros(36)
    for index in range(ROUNDS):
        record, own = run.round(index), found.sel(round=index)
        start, end = record.start.double().numpy(), record.end.double().numpy()
        q, _ = own_weights(run, [len(indices) for indices in run.parts])
        p, ids = np.zeros(4), record.ids.numpy()
        p[ids] = own_weights(run, record.sizes)[0]
        updates = np.array([trained(start, *part(run, k)) - start for k in range(4)])
        frozen = np.array([-LR * EPOCHS * gradient(start, *part(run, k)) for k in range(4)])
        a = sum(q[k] * updates[k] @ frozen[k] for k in range(4)) / sum(q[k] * frozen[k] @ frozen[k] for k in range(4))
        mean, full = p @ updates, q @ updates
        vectors = {"step": end - start, "mean": mean, "full": full, "sampling": mean - full}
        vectors |= {
            "gradient": a * q @ frozen,
            "gradient_sampling": a * (p - q) @ frozen,
            "local": mean - a * p @ frozen,
        }
        for name, vector in vectors.items():
            place = own.sel(part=name)
            agree("drift.counterfactual", place.norm, np.linalg.norm(vector), relative=1e-4)
            without = loss(end - vector, run.task.split("test"))
            agree("drift.counterfactual", place.loss_without, without, relative=1e-4)
            cost = loss(end, run.task.split("test")) - without
            agree("drift.counterfactual", place.loss_cost, cost, relative=1e-3, absolute=2e-5)
        active = [k for k in range(4) if q[k] > 0]
        m = int((p > 0).sum())
        far = [np.linalg.norm(updates[k] - full) for k in active]
        agree("drift.counterfactual", own.distance[active], far, relative=1e-4)
        sampling = np.sum((mean - full) ** 2) / (m * 36)
        client = sum(np.square(far)) / (len(active) * m * 36)
        agree("drift.counterfactual", own.sampling_variance, sampling, relative=1e-4)
        agree("drift.counterfactual", own.client_variance, client, relative=1e-4)
        agree("drift.counterfactual", own.sampling_estimate, np.sum((previous - mean) ** 2) / (m * 36), relative=1e-4)
        estimate = sum(p_ > 0 and np.sum((updates[k] - mean) ** 2) for k, p_ in enumerate(p)) / (m**2 * 36)
        agree("drift.counterfactual", own.client_estimate, estimate, relative=1e-4, absolute=1e-12)
        drifts = np.sqrt(sum(p[k] * np.sum((updates[k] - mean) ** 2) for k in range(4)))
        agree("drift.counterfactual", own.client_norm, drifts, relative=1e-4, absolute=1e-6)
        previous = mean


@reference("drift.noise_or_drift", by="all clients by written-out gradient descent on all their samples, float64")
def test_noise_or_drift(run):
    """Batches of all samples leave no noise, so that two replays give the exact parts."""
    found = drift.noise_or_drift(run, rounds=list(range(ROUNDS)), clients="all", replays=2).sel(fraction=1)
    for index in range(ROUNDS):
        start, own = run.round(index).start.double().numpy(), found.sel(round=index)
        q, _ = own_weights(run, [len(indices) for indices in run.parts])
        updates = np.array([trained(start, *part(run, k)) - start for k in range(4)])
        frozen = np.array([-LR * EPOCHS * gradient(start, *part(run, k)) for k in range(4)])
        a = q @ (updates * frozen).sum(1) / (q @ (frozen**2).sum(1))
        signal = a * q @ frozen
        squares = [np.sum(signal**2), q @ ((a * frozen - signal) ** 2).sum(1)]
        squares += [q @ ((updates - a * frozen) ** 2).sum(1), 0.0]
        agree("drift.noise_or_drift", own.scale, a, relative=1e-4)
        agree("drift.noise_or_drift", own.square, squares, relative=1e-3, absolute=1e-9)
        agree("drift.noise_or_drift", own.share, np.array(squares) / sum(squares), relative=1e-3, absolute=1e-6)
        far = np.sum((q @ updates - signal) ** 2)
        agree("drift.noise_or_drift", own.mean_square.sel(cause="drift"), far, relative=2e-3, absolute=1e-9)


@reference("drift.update_change", by="all clients of both rounds by written-out gradient descent, float64")
def test_update_change(run):
    found = drift.update_change(run, rounds=list(range(1, ROUNDS)))

    def updates(index):
        start = run.round(index).start.double().numpy()
        every = np.array([trained(start, *part(run, k)) - start for k in range(4)])
        q, _ = own_weights(run, [len(indices) for indices in run.parts])
        ids = run.round(index).ids.numpy()
        return own_weights(run, run.round(index).sizes)[0] @ every[ids], q @ every

    for index in range(1, ROUNDS):
        (mean, full), (mean_before, full_before), own = updates(index), updates(index - 1), found.sel(round=index)
        now, before, moved = mean - full, mean_before - full_before, full - full_before
        size = np.sum((mean - mean_before) ** 2)
        for name, value in {
            "change": size,
            "sampling": now @ now,
            "sampling_before": before @ before,
            "full_change": moved @ moved,
            "carried": -2 * before @ moved,
            "chance": 2 * now @ (moved - before),
        }.items():
            agree("drift.update_change", own[name], value, relative=1e-4, absolute=1e-5 * size)


@reference("drift.interventions", by="the window's rounds written out with another rate, epochs or all clients")
def test_interventions(run):
    candidates = {change.name: change.settings for change in changes(run)}
    found = drift.interventions(run, length=2, starts=[1])

    def last_loss(rate=LR, steps=EPOCHS, everyone=False):
        theta = run.round(1).start.double().numpy()
        for index in (1, 2):
            ids = list(range(4)) if everyone else run.round(index).ids.tolist()
            weights, _ = own_weights(run, [len(run.parts[k]) for k in ids])
            theta = weights @ np.array([trained(theta, *part(run, k), steps, rate) for k in ids])
        return loss(theta, run.task.split("test"))  # the last half of two rounds is the second

    agree("drift.interventions", found.loss, [last_loss()], relative=1e-4)
    asked = {"everyone": {"everyone": True}} if "everyone" in candidates else {}
    for name, settings in candidates.items():
        if name.startswith("local.lr-"):
            asked[name] = {"rate": settings["local.lr"]}
        if name.startswith("local.epochs-"):
            asked[name] = {"steps": settings["local.epochs"]}
    assert len(asked) >= 4
    for name, options in asked.items():
        own = found.sel(change=name)
        agree("drift.interventions", own.changed_loss, [last_loss(**options)], relative=1e-4)
        gain = last_loss() - last_loss(**options)
        agree("drift.interventions", own.gain, [gain], relative=1e-3, absolute=2e-5)


@reference("drift.layer_drift", by="equation 13 and cosines on slices of models, loops in float64")
def test_layer_drift(run):
    found = drift.layer_drift(run)
    for layer, place in (("head.weight", slice(0, 32)), ("head.bias", slice(32, 36))):
        previous, s = np.zeros(36)[place], 0.0
        for index in range(ROUNDS):
            record, own = run.round(index), found.sel(round=index, layer=layer)
            updates = (models(record) - record.start.double().numpy())[:, place]
            weights, _ = own_weights(run, record.sizes)
            mean, active = weights @ updates, weights > 0
            m, size = int(active.sum()), updates.shape[1]
            q = np.sum((previous - mean) ** 2) / (m * size)
            r = np.sum((updates[active] - mean) ** 2) / (m**2 * size)
            gain = (s + q) / (s + q + r)
            s, previous = (1 - gain) * (s + q), mean
            agree("drift.layer_drift", own.change_variance, q, relative=1e-5)
            agree("drift.layer_drift", own.client_variance, r, relative=1e-5, absolute=1e-12)
            agree("drift.layer_drift", own.gain, gain, relative=1e-5)
            agree("drift.layer_drift", own.update_norm, np.linalg.norm(mean), relative=1e-5)
            step = np.linalg.norm((record.end.double() - record.start.double()).numpy()[place])
            agree("drift.layer_drift", own.step_norm, step, relative=1e-5)


@reference("drift.decomposition", by="theorem 1 with one model per client, loops over samples in float64")
def test_decomposition(run):
    found = drift.decomposition(run, samples_per_client=10**6)
    for index in range(ROUNDS):
        record, own = run.round(index), found.sel(round=index)
        _, p = own_weights(run, record.sizes)
        chosen = select_samples(run, record, 10**6, "train", "cohort")
        inputs, labels = numbers(chosen.samples(slice(None)))
        target, count = np.eye(4)[labels], len(labels)
        clients = np.array([probabilities(model, inputs) for model in models(record)])
        member = np.array([np.isin(chosen.numbers, run.parts[k]) for k in record.ids.tolist()])
        train, rest = np.zeros((2, count, 4))
        for k in range(len(p)):
            for i in range(count):
                (train if member[k, i] else rest)[i] += p[k] * (target[i] - clients[k, i])
        mean = p @ models(record)
        fma, wens = probabilities(mean, inputs), np.tensordot(p, clients, 1)
        far = max(np.linalg.norm(model - mean) for model in models(record))
        gap = np.linalg.norm(wens - fma, axis=1).mean()
        square = ((target - clients) ** 2).sum(2)
        expected = {
            "bias2": ((train + rest) ** 2).sum(1).mean(),
            "B_T": (train**2).sum(1).mean(),
            "B_H": (rest**2).sum(1).mean(),
            "B_TH": 2 * (train * rest).sum(1).mean(),
            "train_bias": sum(p[k] * square[k][member[k]].mean() for k in range(len(p))),
            "wens_loss": ((target - wens) ** 2).sum(1).mean(),
            "fma_loss": ((target - fma) ** 2).sum(1).mean(),
            "fma_error": (fma.argmax(1) != labels).mean(),
            "wens_error": (wens.argmax(1) != labels).mean(),
            "locality": far,
            "gap": gap,
        }
        if len(p) > 1:
            expected["heterogeneity_bias"] = sum(p[k] * square[k][~member[k]].mean() for k in range(len(p)))
            expected["gap_ratio"] = gap / far**2
        for name, value in expected.items():
            agree("drift.decomposition", own[name], value, relative=2e-5, absolute=1e-6)
        assert np.isnan(float(own["var"]))


@reference("drift.gap_scaling", by="outputs of models moved towards their mean, float64")
def test_gap_scaling(run):
    found = drift.gap_scaling(run, scales=(0.5, 1.0), outputs="probabilities")
    inputs, _ = numbers(run.task.split("test"))
    for index in range(ROUNDS):
        record, own = run.round(index), found.sel(round=index)
        _, p = own_weights(run, record.sizes)
        mean = p @ models(record)
        far = max(np.linalg.norm(model - mean) for model in models(record))
        agree("drift.gap_scaling", own.locality, far, relative=1e-9, absolute=1e-12)
        gaps = []
        for scale in (0.5, 1.0):
            moved = [probabilities(mean + scale * (model - mean), inputs) for model in models(record)]
            gaps.append(np.linalg.norm(np.tensordot(p, moved, 1) - probabilities(mean, inputs), axis=1).mean())
        agree("drift.gap_scaling", own.gap, gaps, relative=1e-9, absolute=1e-14)
        if len(p) > 1:
            slope = np.log(gaps[1] / gaps[0]) / np.log(2)
            agree("drift.gap_scaling", own.slope, slope, relative=1e-8)


@reference("drift.ntk_variance", by="the kernel of a linear model, <x, x'> + 1, and numpy.linalg.pinv")
def test_ntk_variance(run):
    found = drift.ntk_variance(run, rounds=[0, 2])
    for index in (0, 2):
        ids = run.round(index).ids.tolist()
        data = np.concatenate([part(run, k)[0] for k in ids])
        for client in ids:
            mine, own = part(run, client)[0], found.sel(round=index, client=client)
            n = len(mine)
            kernel = (
                np.concatenate([mine, data]) @ np.concatenate([mine, data]).T + 1
            ) / 4  # mean over 4 outputs: each
            kernel *= 4  # output has the same kernel, so the mean is the kernel of one
            a, cross, d = kernel[:n, :n], kernel[:n, n:], kernel[n:, n:]
            explained = np.einsum("ij,ik,kj->j", cross, np.linalg.pinv(a, rcond=1e-6, hermitian=True), cross)
            agree("drift.ntk_variance", own.variance, (np.diag(d) - explained).mean(), relative=1e-3, absolute=1e-4)
            agree("drift.ntk_variance", own.diagonal, np.diag(a).mean(), relative=1e-5)
            if n > 1:
                pairs = [(s**2).sum() - (np.diag(s) ** 2).sum() for s in (a, d)]
                squares = [pairs[0] / (n * (n - 1)), pairs[1] / (len(d) * (len(d) - 1))]
                mmd = sum(squares) - 2 * (cross**2).mean()
                agree("drift.ntk_variance", own.mmd2, mmd, relative=1e-4, absolute=1e-3)
                half = n / (2 * np.diag(a).mean())
                expression = half * mmd + np.diag(d).mean() - half * squares[1]
                agree("drift.ntk_variance", own.expression, expression, relative=1e-3, absolute=1e-2)


def test_the_written_out_gradient_is_that_of_finite_differences():
    inputs, labels = hand.random(5, 8, seed=3).numpy(), np.array([0, 1, 3, 3, 2])
    theta, step = hand.random(36, seed=4).numpy(), 1e-6
    slopes = [
        (sample_losses(theta + move, inputs, labels) - sample_losses(theta - move, inputs, labels)).mean() / (2 * step)
        for move in step * np.eye(36)
    ]
    np.testing.assert_allclose(gradient(theta, inputs, labels), slopes, atol=1e-8)
