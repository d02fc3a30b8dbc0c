# %% [markdown]
# # 6. The figures of the four papers
#
# Four papers are reproduced here: IMA and FedLAW on how to average, LSS on how to train so that averages are good,
# FedEve on the two drifts. Each figure and table of theirs that shows data is one figure of the gallery, and a
# catalogue says which runs it takes. This notebook looks through the catalogue, and draws a figure of each paper on
# tiny runs: the same picture from a toy setting, to learn to read it. The papers' own settings are a command away, and
# take hours to days.

# %%
import pandas as pd

import drift
import figures
from figures import gallery, papers
from figures.papers.catalogue import of_figure

ROUNDS = 24  # of the toy runs
PRESET = "digits-shards2"

# %% [markdown]
# ## The catalogue

# %%
for name in papers.names():
    print(f"{name:<7} {len(papers.load(name).items):>3} items   {papers.load(name).title}")


def listed(name, start=0, stop=None):
    items = papers.load(name).items[start:stop]
    return pd.DataFrame([{"item": one.item, "figure": one.figure, "shows": one.shows} for one in items])


with pd.option_context("display.max_colwidth", 100):
    print(listed("ima", 0, 8).to_string(index=False))

# %% [markdown]
# An item names the *experiment* with the paper's setting, a *quick* variant that two cores finish in minutes on real
# data, and the settings that are crossed. From these follow the commands. What is on disk is not trained again, and a
# sweep that was stopped goes on.

# %%
item = papers.load("ima").item("Fig. 6a")
print(item.shows, "\nclaim:", item.claim)
for setting in item.settings:
    for quick in (True, False):
        print(f"\n{'quick' if quick else 'the paper'}:", *papers.commands(item, setting, quick=quick), sep="\n  ")

# %% [markdown]
# Then `fedscape figures draw --paper ima runs` draws every item whose runs are there, and names the commands for each
# other one. Where a paper prints numbers, the tables show them beside the measured ones, apart and in grey.
#
# ## IMA: where averages lie
#
# The paper's first figure: clients stand on the rim of a basin, their mean inside, off its centre. Its Fig. 5c walks
# from the last aggregate (t = 0) to the mean of the last five (t = 1), and on. Where the loss between them is lower
# than at both, the two lie on two sides of one valley: rounds overshoot, and averaging them goes back.

# %%
fedavg = drift.simulate(PRESET, method="fedavg", rounds=ROUNDS, runs="runs")
ima = drift.simulate(PRESET, method="ima", rounds=ROUNDS, runs="runs")


def show(figure, runs, **options):
    print(", ".join(of_figure(figure)))
    chosen = gallery.load(figure)
    return chosen.draw(chosen.data(runs, **options))


show("planes-clients", [fedavg], points=11)

# %%
show("lines-fma-ima", [fedavg, ima], points=21)

# %% [markdown]
# ## FedLAW: weights that are learned
#
# The server learns the clients' weights, and one factor gamma for all, on a small balanced *proxy* set. Below 1, gamma
# shrinks the model, which acts like weight decay; watch how it changes once the model has learned something. On the
# right, red clients weigh more than their share of samples, blue ones less.

# %%
fedlaw = drift.simulate(PRESET, method="fedlaw", rounds=ROUNDS, runs="runs")
show("weights-learned", [fedlaw])

# %% [markdown]
# ## LSS: pools that average well
#
# Each client trains several models near one another, so that their average is good, and the averages of clients too.
# It wants few rounds from a good start. Here both begin from random values, so look at the shape and not at the gap:
# the first rounds are what LSS is about.

# %%
few = ROUNDS // 2
lss = drift.simulate(PRESET, method="lss", rounds=few, runs="runs")
short = drift.simulate(PRESET, method="fedavg", rounds=few, runs="runs")
show("accuracy-early-late", [short, lss])

# %% [markdown]
# ## FedEve: two drifts, one gain
#
# Which labels a round's clients hold, and how trusting the fusion of prediction and observation is. The paper finds a
# larger gain for more uneven clients (a smaller concentration), and hardly a change with the number of local epochs.
# Our twelve rounds hardly tell the two concentrations apart.

# %%
show("labels-scatter", [fedavg], rounds=12)

# %%
uneven = [
    drift.simulate(
        PRESET,
        "clients.partition=dirichlet",
        f"clients.concentration={value}",
        method="fedeve",
        rounds=few,
        runs="runs",
    )
    for value in (0.05, 1.0)
]
show("gain-alpha", uneven)

# %% [markdown]
# Twelve rounds of one seed are no evidence for or against a claim. `fedscape claims RUNS` tests the papers' claims on
# runs of three seeds or more, and says for each whether it holds, fails, or cannot be told.
#
# ## Look around

# %%
figures.explorer([fedavg, ima, fedlaw])

# %% [markdown]
# ## Real sizes
#
# - Data sets: `fedscape doctor` says which are found. CIFAR-10 and Fashion-MNIST come from a folder (`FEDSCAPE_DATA`)
#   or the hub.
# - Begin with the quick variants: `fedscape list experiments` shows them with their cost, and every item names its
#   own.
# - `docs/results.md` has measured numbers beside the papers', with the commands.
# - The tables' numbers for your own paper: [7. custom plots](07_custom_plots.ipynb).
