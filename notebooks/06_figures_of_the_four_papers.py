# %% [markdown]
# # 6. The figures of the four papers
#
# fedscape draws the figures of four papers: IMA and FedLAW on how to average, LSS on how to train so that averages
# are good, FedEve on the two drifts. Each of their figures and tables that shows data is one figure of the gallery,
# and a catalogue lists the runs that it needs. This notebook reads the catalogue, and draws a figure of each paper
# from tiny runs, so that you learn to read it. The papers' own settings take hours to days.

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
# data, the settings that are crossed, and the commands. Runs on disk are not trained again, and the same command
# resumes a sweep that was stopped.

# %%
item = papers.load("ima").item("Fig. 6a")
print(item.shows, "\nclaim:", item.claim)
for setting in item.settings:
    for quick in (True, False):
        print(f"\n{'quick' if quick else 'the paper'}:", *papers.commands(item, setting, quick=quick), sep="\n  ")

# %% [markdown]
# Then `fedscape figures draw --paper ima runs` draws every item whose runs exist, and prints the commands for the
# others. Tables show the numbers of a paper in grey, next to the measured ones.
#
# ## IMA: where averages lie
#
# In the paper's first figure clients lie on the rim of a basin, and their mean lies inside, off its centre. Its Fig.
# 5c is the line from the last aggregate (t = 0) through the mean of the last five (t = 1). If the loss between them
# is lower than at both, the two lie on two sides of one valley: rounds overshoot, and averaging corrects this.

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
# The server learns the clients' weights, and one factor gamma for all, on a small balanced *proxy* set. Below 1,
# gamma shrinks the model, which acts like weight decay; it changes during training. On the right, red clients weigh
# more than their share of samples, blue ones less.

# %%
fedlaw = drift.simulate(PRESET, method="fedlaw", rounds=ROUNDS, runs="runs")
show("weights-learned", [fedlaw])

# %% [markdown]
# ## LSS: pools that average well
#
# Each client trains several models near one another, so that their average is good, and the averages of clients too.
# LSS needs few rounds from a good start. Here both methods begin from random values, so compare the shapes in the
# first rounds, not the final accuracies.

# %%
few = ROUNDS // 2
lss = drift.simulate(PRESET, method="lss", rounds=few, runs="runs")
short = drift.simulate(PRESET, method="fedavg", rounds=few, runs="runs")
show("accuracy-early-late", [short, lss])

# %% [markdown]
# ## FedEve: two drifts, one gain
#
# The next pictures show the labels of the clients of a round, and the Kalman gain, which weighs observation against
# prediction. The paper reports a larger gain for more uneven clients (a smaller concentration), and hardly a change
# with the number of local epochs. In our twelve rounds the two concentrations hardly differ.

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
# Twelve rounds of one seed are not evidence for or against a claim. `fedscape claims RUNS` tests the papers' claims
# on runs of three seeds or more, with a verdict for each.
#
# ## Look around

# %%
figures.explorer([fedavg, ima, fedlaw])

# %% [markdown]
# ## Real sizes
#
# - Datasets: `fedscape doctor` lists those on this machine. CIFAR-10 and Fashion-MNIST come from a folder
#   (`FEDSCAPE_DATA`) or the hub.
# - Begin with the quick variants: `fedscape list experiments` shows them with their cost.
# - `docs/results.md` has measured numbers next to the papers', with the commands.
# - Use the numbers in your own paper: [7. custom plots](07_custom_plots.ipynb).
