# %% [markdown]
# # 3. Drift and diagnosis
#
# Two effects make a federated model drift. *Client drift*: clients hold different data, so their updates point in
# different directions. *Sampling drift*: each round has another cohort, so each round optimises another loss. This
# notebook measures both, compares the estimates with exact values and with the loss that they cost, and lets
# `diagnose` find the causes of a high loss.

# %%
import matplotlib.pyplot as plt
import numpy as np

import drift
import figures

ROUNDS = 24  # 50 and more for results
PRESET = "digits-shards2"
run = drift.simulate(PRESET, method="fedavg", rounds=ROUNDS, runs="runs")

# %% [markdown]
# For comparison, the same clients with *fair shares*: each holds a random part of all images.

# %%
fair = drift.simulate(PRESET, "clients.partition=iid", method="fedavg", rounds=ROUNDS, runs="runs")
runs = {"two shards a client": run, "fair shares": fair}
fig, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained")
for name, one in runs.items():
    variances = one.cached(drift.drift_variances)
    axes[0].plot(one.rounds(), one.metrics().accuracy, label=name)
    axes[1].semilogy(one.rounds(), variances.client_variance)
    axes[2].semilogy(one.rounds(), variances.change_variance)
for ax, title in zip(axes, ("test accuracy", "client-drift variance", "update change"), strict=True):
    ax.set(xlabel="round", title=title)
axes[0].legend()
plt.show()

# %% [markdown]
# With fair shares both variances begin ten to twenty times lower, rise while the model learns fastest, and fall again
# to minibatch noise. With two shards a client they are high from the first round on, because clients never agree.
# They fall only as updates get shorter.
#
# These series need no client models. Every round stores the *Gram matrix* of its updates, from which norms, angles,
# coherence and both variances follow. So you have them for every round, even without stored models.
#
# ## Estimate and truth
#
# Both variances are estimates from one cohort. The record allows the exact answer: `counterfactual` trains *all* 20
# clients from the recorded start of a round, and so splits its step into
#
# > step = full + sampling + server, where *full* is the step under full participation.
#
# `loss_cost` is the loss due to a part: if it is positive, the round would have ended lower without this part.

# %%
exact = run.cached(drift.counterfactual, rounds=[3, 12, ROUNDS - 1])
exact.loss_cost.sel(part=["sampling", "local"]).to_pandas().round(3)

# %% [markdown]
# If *sampling* is positive, the clients that took part pulled the model to where the loss of the others is higher.
# FedEve predicts this part from earlier rounds and weighs it against client drift by a *Kalman gain*. With a gain
# near 1 it trusts the round, near 0 the prediction.

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
for name, one in runs.items():
    left.plot(one.rounds(), one.cached(drift.drift_variances).gain, label=name)
    right.plot(one.rounds(), one.cached(drift.coherence).coherence_smooth)
left.set(xlabel="round", ylabel="Kalman gain", ylim=(0, 1.02))
left.legend()
right.axhline(0, color="grey", linewidth=0.8)
right.set(xlabel="round", ylabel="coherence, mean of 3 rounds")
plt.show()

# %% [markdown]
# *Coherence* (right) is the weighted sum of cosines between the clients' updates. With fair shares it rises while all
# clients learn the same, and falls when each client learns its own noise. FedLAW calls the round in which it changes
# from positive to negative the critical point (`critical_point`, with an interval). Disjoint labels make updates
# almost orthogonal from the first round. The gain (left) hardly differs between the two settings: it is a ratio of
# both drifts, and both are larger here.
#
# ## What if the server had aggregated differently?
#
# `what_if` keeps the clients of a round and changes the server: other weights, a shrunken mean, a mean of the last
# few rounds. Weights and factors are chosen on one half of the test set and tested on the other.

# %%
tried = run.cached(drift.what_if, rounds=[6, 12, 18, ROUNDS - 1])
gain = tried.gain.mean("round").to_series().drop("end").sort_values()
gain.plot.barh(figsize=(6.5, 2.5), xlabel="gain [nats]")
plt.show()

# %% [markdown]
# A bar to the right is loss saved in the mean of these rounds. `weights` gains where some clients of a cohort deserve
# a higher weight than their number of samples gives. Short windows (`ima-3`) gain because rounds jump around a common
# centre. A long one (`ima-9`) loses because it includes early models. That is why IMA begins late in training.
#
# ## Diagnose
#
# `diagnose` does this for you. It repeats rounds of the record with one setting changed, follows the changes that
# gain through the run, and answers eight questions. On the command line: `fedscape diagnose RUN`. Here `quick` reads
# only the record, in seconds, and leaves out answers that need training. Without `quick` it takes minutes, and causes
# come first.

# %%
found = drift.diagnose(run, quick=True)
for cause in found.causes:  # none with quick
    print(f"{cause.title:<28} gain {cause.gain.value:+.2f} nats  {'clear' if cause.clear else 'not clear'}")
for finding in found.findings:
    print(f"- {finding.statement}")

# %% [markdown]
# A cause is *clear* only if its change gains at the end of the run: with every seed, more than another seed does, and
# at least 2 % of the loss. It has the command to run (`cause.command`) and a figure to look at (`cause.figure`).
# `docs/diagnosis.md` has the tests of `diagnose` on runs with known causes.
#
# What would more clients per round gain, and what would even labels gain?

# %%
more = drift.simulate(PRESET, "clients.per_round=10", method="fedavg", rounds=ROUNDS, runs="runs")
for name, one in {"5 of 20 clients": run, "10 of 20 clients": more, "fair shares": fair}.items():
    print(f"{name:<18} accuracy of the last five rounds {float(np.mean(one.metrics().accuracy[-5:])):.3f}")

# %% [markdown]
# ## Look around
#
# The time line has client drift, update change, gain and coherence over rounds. Select a round: the table of its
# clients shows which of them raise the loss. Click a client there to find it on the picture.

# %%
figures.explorer([run, fair, more], below="coherence")

# %% [markdown]
# ## Real sizes
#
# - `drift.decomposition` splits a model's error into bias, variance and covariance over retrained clients, and
#   `drift.ntk_variance` predicts the variance; both state their cost before they start.
# - `drift.diagnose(run)` without `quick` tests causes by training: two minutes here, and longer for larger models.
# - `drift.counterfactual(run, workers=2)` and `diagnose(run, workers=2)` share the trainings between processes.
# - Several seeds: one cohort sequence is one sample. `gallery.load("variance-rounds")` draws seeds as bands.
# - A method that uses these findings: [4. your own method](04_your_own_method.ipynb).
