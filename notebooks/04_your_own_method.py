# %% [markdown]
# # 4. Your own method in one file
#
# A method is one file with one class: its hooks default to FedAvg, you override what differs, and everything else (the
# round loop, resuming, all engines, all analyses, all figures) works with it unasked. In this notebook you write one,
# test it, and compare it.
#
# Notebook 3 found that labels differ between clients and that other *weights* than the numbers of samples would have
# helped. So let the server weigh the clients of a round such that together they hold all digits as evenly as possible.

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
# Hooks are called in this order each round: `broadcast` (what clients receive), `schedule` (their settings), then on
# each client `prepare`, `correction` (what is added to each gradient), `finish` (what is sent back beside the model),
# and on the server `combine` (the plain aggregate) and `step` (from it to the new model). All are pure: values in,
# values out. FedProx, for example, is this and nothing more:

# %%
print(inspect.getsource(FedProx.correction))

# %% [markdown]
# ## Write it
#
# Clients report how many samples of each class they hold (think about privacy before you do that in earnest). The
# server looks for weights p that bring the mixture of classes, sum_k p_k q_k, as near to uniform as possible, by
# multiplicative updates that stay on the simplex. Options are fields, with a range and a description; they become
# settings such as `method.strength=0.5`, and an unknown or impossible one is refused in one line.

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
# The last line makes the folder one more place where methods are looked for, in this process. To keep a method, put
# the file into `drift/methods/`: its file name is its public name, `fedscape list methods` shows it, and the
# conformance tests (every engine, every analysis, resuming, round trips) run over it unasked.
#
# ## Test it before you believe it
#
# A method that has a setting in which it must equal another one has a test for free. With `strength=0` every bit of
# the final model must be FedAvg's:

# %%
short = {"rounds": 3, "runs": "runs"}
plain = drift.simulate(PRESET, method="fedavg", **short)
none = drift.simulate(PRESET, "method.strength=0", method="balanced", **short)
print("strength 0 is FedAvg:", torch.equal(plain.round(-1).end, none.round(-1).end))

# %% [markdown]
# And one step by hand: two clients, the second one alone knows class 1 and holds fewer samples. Even classes need
# equal weights.

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
# Everything but the method is the same: initial model, partition, cohorts, batches. So rounds can be compared one by
# one and not only in the mean. IMA averages *any* other method over the last rounds, yours included.

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
# trains five of each, and every figure then draws the mean with a band of one standard deviation.
#
# ## See what it did
#
# Analyses know nothing about your method and need not: they read the record. The weights it gave, and what they did to
# client drift:

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
# A dot at 0 is a client whose digits others of its cohort hold already. And any gallery figure takes your runs:

# %%
accuracy = gallery.load("accuracy-rounds")
accuracy.draw(accuracy.data([fedavg, balanced]))

# %% [markdown]
# ## Look around
#
# Choose a round in which the weights differ much. *Weights of the clients* shows what other weights would have given;
# click the name of a run to look at it.

# %%
figures.explorer([fedavg, balanced, both])

# %% [markdown]
# ## Real sizes
#
# - Options in a sweep: `fedscape sweep PRESET --grid method.strength=0,0.5,1 --grid seed=8,9,10`.
# - A method whose clients keep something sets `stateful = True` and returns it in the update's `state`; what the
#   server sends beside the model is named in `sends`. Both are stored, so that runs resume and one client can be
#   trained again.
# - Local training of another kind overrides `local`; see `drift/methods/lss.py` and `fedsam.py`.
# - CONTRIBUTING.md has the same recipe for datasets, models, partitions and figures.
