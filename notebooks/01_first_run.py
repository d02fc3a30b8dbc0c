# %% [markdown]
# # 1. A first run
#
# Federated learning averages models that were trained on different data. In this notebook you train two methods on
# real images: FedAvg and IMA, iterative moving averaging. Then you look inside a round. You see the *landscape*, that
# is the loss as a function of the parameters, and *drift*, the way training moves across it.
#
# Everything is tiny, so that the whole notebook takes seconds. For results that mean something, raise `ROUNDS` in the
# next cell; the last section has other settings.

# %%
import matplotlib.pyplot as plt

import drift
import figures
from figures import gallery
from figures.axes import surfaces

ROUNDS = 24  # 50 and more for results; 24 show what there is
RUNS = "runs"  # where runs lie; one that is there already is not trained again

# %% [markdown]
# ## Train
#
# `digits-shards2` is a preset: 1,437 images of digits in 8x8 pixels, sorted by label, cut into 40 shards and dealt to
# 20 clients, two shards each. Most clients therefore know two of the ten digits. Five of them take part in a round,
# and each trains three epochs on its own images before the server averages.
#
# You can change any setting of a preset by name: `rounds=...`, `method="ima"`, `local__lr=0.05`.

# %%
fedavg = drift.simulate("digits-shards2", method="fedavg", rounds=ROUNDS, runs=RUNS)
ima = drift.simulate("digits-shards2", method="ima", rounds=ROUNDS, runs=RUNS)
print(fedavg.name, ima.name, sep="\n")

# %% [markdown]
# The folder's name ends in a hash of all settings: the same settings give the same run. Execute the cell again and it
# returns at once; raise `ROUNDS` and another run begins. If you interrupt a run, the same cell resumes it with the
# same bits.
#
# The next picture shows which digits each client holds, and which digits the five clients of each round hold
# together:

# %%
labels = gallery.load("labels-partition")
labels.draw(labels.data([fedavg]))

# %% [markdown]
# In the bars on the right, ten equal colours would be a fair sample of the data. Rounds differ because other clients
# take part: that is *sampling drift*. Within a round, clients differ because they hold other labels: that is *client
# drift*.
#
# ## What came out
#
# Every result is an `xarray.Dataset` with named dimensions and units. You can select from it by name and draw it in
# one line.

# %%
for run in (fedavg, ima):
    run.metrics().accuracy.plot(label=run.label)
plt.legend()
fedavg.metrics()

# %% [markdown]
# FedAvg goes up and down: each round pulls it towards the digits of the clients that took part. IMA averages its last
# five models from three quarters of the rounds on. Until then both curves are the same, because all methods have the
# same initial model, cohorts and batches.
#
# ## Inside a round
#
# Each round is one record: the model that clients received, their models, their weights, and the new global model.
# Every model is a vector of 13,706 numbers.

# %%
last = fedavg.round(-1)
mean = last.weights.to(last.clients) @ last.clients
print("clients", last.ids.tolist(), "with", last.sizes.tolist(), "samples")
print("their models", tuple(last.clients.shape), "and the new one", tuple(last.end.shape))
print("weighted mean of the clients is the new model, up to", float((mean - last.end).abs().max()))

# %% [markdown]
# ## The landscape
#
# Three models span a plane. `round_plane` evaluates the test loss on a grid of the plane through three clients of a
# round.

# %%
ds = fedavg.cached(drift.round_plane, points=15)
levels = figures.common_levels(ds.loss)
ax = figures.contour(ds, levels=levels)
surfaces.colorbar(ax.figure, [ax], levels, "test loss [nats]")
plt.show()

# %% [markdown]
# Triangles are the clients, the white cross is their mean, the circle is the fitted minimum. The colours end before the
# highest losses: the tenth of the map above that scale is all yellow. One unit on either axis
# is one unit of distance between models. Each client lies high: a model that was trained on two digits is poor on all
# ten. Their mean lies far lower, which is why averaging works, but it is not the lowest point of the plane. IMA,
# FedLAW and FedEve try to come nearer to that point.
#
# The same surface in three dimensions; drag it to turn it.

# %%
figures.surface3d(ds)

# %% [markdown]
# ## Drift
#
# *Coherence* is high where the clients' updates point in one direction, and 0 where they are orthogonal. The grey line
# is every round, the blue one a mean of five rounds. In many runs coherence falls from above 0 to below 0. The picture
# marks that *critical point*, or says that there is no clear one. The two
# *variances* measure how much the clients of one round differ (client drift), and how much the mean update of a round
# differs from the expected one (update change).

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
figures.coherence(fedavg.cached(drift.coherence), ax=left)
figures.variances(fedavg.cached(drift.drift_variances), ax=right)
left.set_ylabel("coherence")
right.legend(right.lines[:2], ["client drift", "update change"])
plt.show()

# %% [markdown]
# ## Look around
#
# This is the page of `fedscape explore`. Each picture goes through three clients of the round. Under *Detail*, choose
# the samples of one client: its model then lies low, in a basin that the others do not share. Click a landscape to
# evaluate that point exactly. *Weights of the clients* shows the result of other weights.
#
# (It needs a running kernel. A viewer without one shows the last picture that was saved, or one line.)

# %%
figures.explorer([fedavg, ima])

# %% [markdown]
# ## Real sizes
#
# - `ROUNDS = 50`, and several seeds, `drift.compare("digits-shards2", methods=["fedavg", "ima"], seeds=[8,
#   9])`: differences between methods are often smaller than those between seeds.
# - `fedscape list experiments` names presets on Fashion-MNIST and CIFAR-10 with the papers' own settings.
# - `points=41` for smoother maps; the cost grows with its square.
# - All rounds keep all their models here. For larger models set `keep__clients="every 10, last 3"`.
#
# Continue with [2. planes and curvature](02_planes_and_curvature.ipynb) or [3. drift and
# diagnosis](03_drift_and_diagnosis.ipynb).
