# %% [markdown]
# # 4. Your own method in one file
#
# A method is one file with one class. Its hooks default to FedAvg, and you override those that differ. The round
# loop, resuming, engines, analyses and figures work with it without changes. In this notebook you write a method,
# test it, and compare it.
#
# Notebook 3 showed that labels differ between clients, and that other *weights* than the numbers of samples would
# have helped. So this server weighs the clients of a round such that together they hold all digits as evenly as
# possible.

# %%
import inspect
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import drift
import drift.methods
import figures
from drift.method import Cohort, load
from drift.methods.fedprox import FedProx
from figures import gallery

ROUNDS = 24  # 50 and more for results
PRESET = "digits-shards2"

# %% [markdown]
# ## What FedAvg leaves open
#
# Each round calls these hooks in this order; all are pure functions:
#
# - before training: `broadcast` (the model that clients receive) and `schedule` (their settings);
# - on each client: `prepare`, `correction` (a term added to each gradient) and `finish` (values sent back);
# - on the server: `combine` (the aggregate) and `step` (from it to the new model).
#
# FedProx, for example, is only this:

# %%
print(inspect.getsource(FedProx.correction))

# %% [markdown]
# ## Write it
#
# Clients report how many samples of each class they hold (consider privacy before you do that in practice). The
# server searches weights p that bring the mixture of classes, sum_k p_k q_k, as near to uniform as possible. Its
# multiplicative updates stay on the simplex. Options are fields with a range and a description; they become settings
# such as `method.strength=0.5`.

# %%
TEXT = '''"""Balanced, an average whose clients together hold all classes as evenly as they can."""

from dataclasses import replace

import torch
from pydantic import Field

from drift.method import Combined, Method


class Balanced(Method):
    """w' = sum_k p_k w_k with p = argmin |sum_k p_k q_k - 1 / C|^2 on the simplex, q_k the class shares of client k.

    With strength s the weights are (1 - s) n_k / n + s p_k; s = 0 is FedAvg.

    Source: notebook 4 of fedscape.
    """

    strength: float = Field(1.0, ge=0, le=1, description="s: between FedAvg's weights (0) and balanced ones (1)")
    classes: int = Field(10, ge=2, description="C, number of classes")
    steps: int = Field(200, ge=1, description="multiplicative updates")

    def finish(self, client, update):
        """The update, with the number of samples of each class."""
        counts = torch.bincount(client.samples.targets, minlength=self.classes).double()
        return replace(update, report={**update.report, "labels": counts})

    def combine(self, setting, state, cohort):
        """The mean of the clients by balanced weights."""
        counts = cohort.reports["labels"]
        shares = counts / counts.sum(1, keepdim=True).clamp(min=1)
        weights = cohort.weights
        for _ in range(self.steps):
            slope = shares @ (weights @ shares - 1 / self.classes)
            weights = weights * torch.exp(-slope)
            weights = weights / weights.sum()
        weights = (1 - self.strength) * cohort.weights + self.strength * weights
        return Combined(weights.to(cohort.clients) @ cohort.clients, weights)
'''
folder = Path("my_methods")
folder.mkdir(exist_ok=True)
(folder / "balanced.py").write_text(TEXT)
sys.modules.pop("drift.methods.balanced", None)  # read again when this cell runs again
if str(folder.resolve()) not in drift.methods.__path__:
    drift.methods.__path__.append(str(folder.resolve()))

# %% [markdown]
# The last line adds the folder to those in which this process looks for methods. To keep a method, put the file into
# `drift/methods/`. Its file name is then its public name, `fedscape list methods` shows it, and the conformance tests
# (every engine, every analysis, resuming) find it.
#
# ## Test it before you believe it
#
# A setting in which a method must equal another one is a simple test. With `strength=0` every bit of the final model
# must be FedAvg's:

# %%
short = {"rounds": 3, "runs": "runs"}
plain = drift.simulate(PRESET, method="fedavg", **short)
none = drift.simulate(PRESET, "method.strength=0", method="balanced", **short)
print("strength 0 is FedAvg:", torch.equal(plain.round(-1).end, none.round(-1).end))

# %% [markdown]
# Then compute one step by hand. There are two clients; only the second one has class 1, and it has fewer samples.
# Even classes need equal weights.

# %%
Balanced = load("balanced")
two = Cohort(
    index=0,
    theta=torch.zeros(1, dtype=torch.float64),
    start=torch.zeros(1, dtype=torch.float64),
    ids=torch.tensor([3, 8]),
    sizes=torch.tensor([7, 2]),
    weights=torch.tensor([7 / 9, 2 / 9], dtype=torch.float64),
    clients=torch.tensor([[1.0], [3.0]], dtype=torch.float64),
    steps=torch.tensor([1, 1]),
    reports={"labels": torch.tensor([[7.0, 0.0], [0.0, 2.0]], dtype=torch.float64)},
)
Balanced(classes=2).combine(None, {}, two).weights.tolist(), Balanced(classes=2).combine(None, {}, two).theta.item()

# %% [markdown]
# ## Compare it
#
# Initial model, partition, cohorts and batches are the same for all methods, so you can compare them round by round.
# IMA averages *any* other method over the last rounds, yours included.

# %%
balanced = drift.simulate(PRESET, method="balanced", rounds=ROUNDS, runs="runs")
fedavg = drift.simulate(PRESET, method="fedavg", rounds=ROUNDS, runs="runs")
both = drift.simulate(PRESET, "method.name=ima", "method.base=balanced", rounds=ROUNDS, runs="runs")
runs = {"FedAvg": fedavg, "balanced": balanced, "balanced, averaged by IMA": both}
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, run in runs.items():
    ax.plot(run.rounds(), run.metrics().accuracy, label=name)
ax.set(xlabel="round", ylabel="test accuracy")
ax.legend()
plt.show()
{name: round(float(np.mean(run.metrics().accuracy[-8:])), 3) for name, run in runs.items()}

# %% [markdown]
# One seed says little. `drift.compare(PRESET, methods=["fedavg", "balanced"], seeds=range(8, 13))`
# trains five of each, and every figure then draws the mean with its 95 % interval.
#
# ## See what it did
#
# Analyses read the record, so they work with your method. The next picture shows its weights and the client drift:

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
given = balanced.cached(drift.aggregation_weights).weights
left.plot(given["round"], given.values, ".", color="tab:green")
left.axhline(1 / 5, color="black", linewidth=0.8)
left.set(xlabel="round", ylabel="weight of each client")
for run in (fedavg, balanced):
    right.semilogy(run.rounds(), run.cached(drift.drift_variances).change_variance, label=run.label)
right.set(xlabel="round", ylabel="update change")
right.legend()
plt.show()

# %% [markdown]
# A dot at 0 is a client whose digits others of its cohort hold too. Every gallery figure takes your runs:

# %%
accuracy = gallery.load("accuracy-rounds")
accuracy.draw(accuracy.data([fedavg, balanced]))

# %% [markdown]
# ## Look around
#
# Choose a round in which the weights differ much. *Weights of the clients* shows the result of other weights; click
# the name of a run to select it.

# %%
figures.explorer([fedavg, balanced, both])

# %% [markdown]
# ## Real sizes
#
# - Options in a sweep: `fedscape sweep PRESET --grid method.strength=0,0.5,1 --grid seed=8,9,10`.
# - A method whose clients have a state sets `stateful = True` and returns the state in the update's `state`. `sends`
#   names what the server sends in addition to the model. Both are stored, so that runs resume and one client can be
#   trained again.
# - To replace local training, override `local`; see `drift/methods/lss.py` and `fedsam.py`.
# - CONTRIBUTING.md has the same recipe for datasets, models, partitions and figures.
