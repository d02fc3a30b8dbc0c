# %% [markdown]
# # 5. Your own model, data and checkpoints
#
# This notebook shows four ways to analyse what you have:
#
# 1. a model of your own, trained by fedscape on one of its datasets;
# 2. your own training loop on your own data, which records its rounds by one call;
# 3. a folder of checkpoints that another program wrote;
# 4. three files of weights and a loss: a landscape without any federated training.
#
# The first three give a *task* and a *run*, on which everything else works; the last one needs the task alone.

# %%
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import drift
import figures
import landscape
from drift import read_tensors
from drift.importers.bare import record_checkpoints
from drift.importers.path_patterns import Patterns
from landscape import task_from

ROUNDS = 8  # of each training here; yours has its own

# %% [markdown]
# ## 1. Your model on a known dataset
#
# A model is a function `(shape, classes, **options) -> nn.Module` in a file, named `module:function`, so that a run
# can record it. Modules of any library work, also with batch normalisation.

# %%
Path("my_model.py").write_text('''"""A small residual network for tiny images."""

from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(2, width), nn.ReLU())

    def forward(self, x):
        return x + self.inner(x)


def net(shape, classes, width=8):
    body = [nn.Conv2d(shape[0], width, 3, padding=1), Block(width), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(width * (shape[1] // 2) * (shape[2] // 2), classes))
''')
mine = drift.simulate(
    "digits-shards2",
    "clients.partition=iid",
    task__model="my_model:net",
    task__model_options={"width": 6},
    rounds=ROUNDS,
    runs="runs",
)
print(mine.task.layout.size, "parameters, accuracy", float(mine.metrics().accuracy[-1]))

# %% [markdown]
# Other people who open this run need `my_model.py`, and must say that they trust it, because importing a module runs
# it: `drift.open(folder, trust="my_model:net")`, or `--trust my_model:net` on the command line.
#
# ## 2. Your data and your training loop
#
# This loop does not use fedscape for training. It has images of handwritten digits at six sites, each of which holds
# mostly a third of the ten digits. Only the three lines with `recorder` are added. (A Flower app needs one line, see
# `docs/howto-flower.md`.)

# %%
digits = landscape.open_dataset("digits").test
x, y = digits.inputs.flatten(1), digits.targets
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
train, test = order[:240], order[240:]
draw = np.random.default_rng(1)
sites = [np.flatnonzero(draw.random(len(train)) < np.where(y[train] % 3 == site % 3, 0.42, 0.04)) for site in range(6)]
print([np.bincount(y[train][site], minlength=10).tolist() for site in sites])


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))


def copied(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


# %%
shutil.rmtree("runs/sites", ignore_errors=True)  # a folder that holds rounds is gone on with; begin anew here
shutil.rmtree("checkpoints", ignore_errors=True)
model, loss = net(), nn.CrossEntropyLoss(reduction="none")
recorder = drift.Recorder("runs/sites")
for index in range(ROUNDS):
    start, clients = copied(model), {}
    Path(f"checkpoints/round{index}").mkdir(parents=True)
    for number, site in enumerate(sites):
        model.load_state_dict(start)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(10):
            optimizer.zero_grad()
            loss(model(x[train][site]), y[train][site]).mean().backward()
            optimizer.step()
        clients[number] = (copied(model), len(site))
        torch.save(copied(model), f"checkpoints/round{index}/client{number}.pt")
    total = sum(size for _, size in clients.values())
    model.load_state_dict({name: sum(state[name] * size for state, size in clients.values()) / total for name in start})
    torch.save(copied(model), f"checkpoints/round{index}/global.pt")
    correct = float((model(x[test]).argmax(1) == y[test]).float().mean())
    recorder.round(start=start, clients=clients, end=copied(model), metrics={"accuracy": correct})

# %% [markdown]
# The record has models, not data. Drift (norms, angles, variances) needs no more. A landscape needs the task: a
# model, a loss with one value for each sample, and samples by split. `parts` has the training samples of each client,
# for analyses that need them.

# %%
task = (net(), loss, {"train": (x[train], y[train]), "test": (x[test], y[test])})
recorded = drift.open("runs/sites", task=task, parts=[site.tolist() for site in sites])
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
figures.variances(recorded.cached(drift.drift_variances), ax=left)
left.legend(left.lines[:2], ["client drift", "update change"])
figures.contour(recorded.cached(drift.round_plane, round=1, points=15), ax=right)
plt.show()

# %% [markdown]
# All six sites take part in every round, so update change is only the change of the mean update between rounds, and
# it falls quickly. Client drift falls far more slowly: the sites still disagree.
#
# ## 3. A folder of checkpoints
#
# The loop above also saved checkpoints, as programs usually do. A pattern tells which file is which; formats are .pt,
# .pth, .safetensors and .npz, and no code of a file runs. Without a saved start, clients received the global model of
# the previous round, so the first round is only the start of the second.

# %%
imported = record_checkpoints("checkpoints", Patterns("round{round}/client{client}.pt"), task=task, runs="runs")
same = torch.equal(imported.round(3).clients, recorded.round(3).clients)
print(imported.name, "has rounds", imported.rounds(), "and the same models:", same)

# %% [markdown]
# On the command line, `fedscape import checkpoints --pattern "round{round}/client{client}.pt" --dry-run` lists the
# matching files and writes nothing. `sizes.json` in the folder has the number of samples of each client; without it
# all count the same.
#
# ## 4. Three files of weights
#
# A plane through any three models of one architecture needs no rounds and no clients.

# %%
files = [f"checkpoints/round{ROUNDS - 1}/{name}.pt" for name in ("client0", "client1", "client2")]
alone = task_from(task)
models = [alone.layout.theta(read_tensors(file)) for file in files]
ds = landscape.surface(alone, landscape.plane(*models, labels=["site 0", "site 1", "site 2"], points=15), split="train")
figures.contour(ds)
plt.show()
print("barrier between sites 0 and 1:", round(float(landscape.barrier(alone, *models[:2]).barrier), 3), "nats")

# %% [markdown]
# ## Look around
#
# The recorded run and the imported one stand side by side. Everything that works on trained runs works on them.

# %%
figures.explorer([recorded, imported])

# %% [markdown]
# ## Real sizes
#
# - Models of a hundred million parameters: `keep__clients="every 10, last 3"`, `keep__dtype="bfloat16 deltas"`, or in
#   a recorder `Recorder(folder, clients="last 3", rounds=N)`. The Gram matrix of each round is always kept.
# - Models of `transformers`, adapters of `peft`: `docs/howto-transformers.md`. Inputs may be tuples or dicts.
# - For tasks other than classification, give a `landscape.Task` with metrics of your own.
