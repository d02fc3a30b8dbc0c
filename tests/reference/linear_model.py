"""A linear model and its training on full batches, written out in float64."""

import numpy as np

LR, EPOCHS, ROUNDS = 0.3, 3, 3

FULL = (
    "local.batch=1000",
    f"local.epochs={EPOCHS}",
    f"local.lr={LR}",
    "local.momentum=0.0",
    "keep.clients=all",
    "keep.globals=all",
    "clients.partition.concentration=0.3",
)


def matrices(theta):
    """Weights (4, 8) and bias (4,) of a stored model, float64."""
    values = np.asarray(theta, np.float64)
    return values[:32].reshape(4, 8), values[32:]


def numbers(samples):
    """Inputs (n, 8) and labels (n,)."""
    return samples.inputs.double().numpy(), samples.targets.numpy()


def outputs(theta, inputs):
    weight, bias = matrices(theta)
    return inputs @ weight.T + bias


def probabilities(theta, inputs):
    z = outputs(theta, inputs)
    z = np.exp(z - z.max(1, keepdims=True))
    return z / z.sum(1, keepdims=True)


def sample_losses(theta, inputs, labels):
    z = outputs(theta, inputs)
    top = z.max(1)
    return np.log(np.exp(z - top[:, None]).sum(1)) + top - z[np.arange(len(z)), labels]


def loss(theta, samples):
    return float(sample_losses(theta, *numbers(samples)).mean())


def error(theta, samples):
    inputs, labels = numbers(samples)
    return float((outputs(theta, inputs).argmax(1) != labels).mean())


def gradient(theta, inputs, labels):
    """Of the mean cross-entropy: (p - y)' x / n and its mean."""
    off = probabilities(theta, inputs)
    off[np.arange(len(labels)), labels] -= 1
    return np.concatenate([(off.T @ inputs / len(labels)).ravel(), off.mean(0)])


def trained(theta, inputs, labels, steps=EPOCHS, rate=LR):
    """Gradient descent on the whole data."""
    theta = np.asarray(theta, np.float64)
    for _ in range(steps if len(labels) else 0):
        theta = theta - rate * gradient(theta, inputs, labels)
    return theta


def part(run, client):
    inputs, labels = numbers(run.task.samples["train"])
    return inputs[run.parts[client]], labels[run.parts[client]]


def own_weights(run, sizes):
    """Weights of the experiment, and those of FMA."""
    sizes = np.asarray(sizes, float)
    own = sizes if run.experiment.clients.weighting == "samples" else (sizes > 0).astype(float)
    return own / own.sum(), sizes / sizes.sum()


def models(record):
    return record.clients.double().numpy()
