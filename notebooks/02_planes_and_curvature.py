# %% [markdown]
# # 2. Planes and curvature
#
# A model here has 13,706 parameters; a picture shows one or two directions of them. This notebook builds the usual
# pictures one by one: a line, a plane, planes in which each client has its own basin, and random slices. You learn
# what each can show. The Hessian's spectrum measures what the slices leave out.

# %%
import matplotlib.pyplot as plt
import torch

import drift
import figures
import landscape
from figures import gallery
from figures.axes import surfaces

ROUNDS = 24  # 50 and more for results
POINTS = 13  # grid points an axis; 41 for smooth maps, at ten times the cost
run = drift.simulate("digits-shards2", method="fedavg", rounds=ROUNDS, runs="runs")
last = run.round(-1)
task = run.task

# %% [markdown]
# ## A line
#
# A *task* is a model, a loss and samples. A *sweep* is a grid of points in parameter space, and `surface` evaluates
# the task at these points. The simplest sweep is a line: (1 - t) a + t b. Here a and b are two clients of the last
# round.

# %%
a, b = last.clients[0], last.clients[1]
line = landscape.surface(task, landscape.line(a, b, points=25))
ax = figures.profile(line)
surfaces.ends(ax, f"client {last.ids[0]}", f"client {last.ids[1]}")
plt.show()
print("barrier", float(landscape.barrier(task, a, b).barrier), "nats")

# %% [markdown]
# The *barrier* is how far the loss rises above the straight line between its values at the two ends. Here it is 0:
# between two models that know different digits the loss is lower than at either. Averaging combines what the two
# know. Do not average models with a high barrier between them. (There may be a path around it:
# `landscape.connecting_curve` searches for one.)
#
# ## A plane
#
# Three models span a plane. Distances in the picture are distances between parameters, and both axes have one scale.
# Levels of the loss are spaced logarithmically.

# %%
sweep = landscape.plane(*last.clients[:3], points=POINTS, labels=[f"client {k}" for k in last.ids[:3].tolist()])
ds = landscape.surface(task, sweep)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, variable in zip(axes, ("loss", "error"), strict=True):
    levels = figures.common_levels(ds[variable], log=variable == "loss")
    figures.contour(ds, ax=ax, variable=variable, levels=levels)
    surfaces.colorbar(figure, [ax], levels, f"test {variable}")
plt.show()

# %% [markdown]
# The two maps differ. The loss is one smooth bowl. The error is a shelf near 0.75, where the models lie that know two
# or three digits, with a pit in its middle. Across the shelf the confidence of the models changes, and their
# decisions do not. Do not take the depth of one map for that of the other.
#
# **Models that are not in the plane are only projected onto it.** Five clients took part, and three of them span the
# plane. For the other two and for the new global model, the map shows the loss at their projection, not their own.
# `project` returns their distances from the plane:

# %%
feet = landscape.project([*last.clients[3:], last.end], sweep, labels=["client A", "client B", "global"])
feet.distance.to_series()

# %% [markdown]
# The clients are nearly as far from the plane as the triangle is wide. The figure `planes-projected` draws both
# losses of every model side by side.
#
# ## Each client has its own basin
#
# The plane above shows the loss on all digits. On a client's own images the landscape differs, and its lowest point
# is near that client's model. This difference causes client drift.

# %%
overlay = gallery.load("planes-overlay")
overlay.draw(overlay.data([run], points=POINTS))

# %% [markdown]
# ## A random slice looks flat
#
# A common picture shows the loss around one model in two random directions, scaled to the norms of its filters. It
# says little about sharpness, because a random direction is almost orthogonal to the few that are steep. The steepest
# one is the Hessian's first eigenvector. The next picture has both, as slices of one length through the last global
# model:

# %%
top = landscape.top_eigenvalues(task, last.end, k=3, vectors=True)
steep = top.eigenvector.isel(rank=0).values
chance = torch.randn(len(last.end), generator=torch.Generator().manual_seed(0))
directions = {
    "steepest direction": torch.from_numpy(steep).to(last.end),
    "random direction": chance / chance.norm(),
}
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, direction in directions.items():
    cut = landscape.surface(task, landscape.slice_along(last.end, direction, radius=1.0, points=21), split="train")
    ax.plot(cut.t, cut.loss, label=name)
ax.set(xlabel="distance from the model", ylabel="training loss [nats]")
ax.legend()
plt.show()
top.eigenvalue.to_series()

# %% [markdown]
# The loss hardly changes along the random direction: its curvature is about the *mean* eigenvalue, trace / d. Along
# the steepest one there is a wall. The model does not lie at the bottom before it, because averaging moved it there.
# The spectrum shows how few directions are steep. On this logarithmic scale, nearly all of the density is the peak at
# zero; stems are single eigenvalues.

# %%
density = run.cached(drift.hessian_density, steps=20, probes=1)
density.plot()
plt.show()
trace = landscape.trace(task, last.end, products=30)
print("mean eigenvalue", float(trace.trace) / len(last.end), "largest", float(top.eigenvalue[0]))

# %% [markdown]
# Eigenvalues compare models only at one scale. Divide one layer of a network of ReLUs by 10 and multiply the next one
# by 10: the function is the same, and the eigenvalues differ. `landscape.ball_sharpness` and `drift.ball_sharpness`
# do not depend on this. `docs/reading-landscapes.md` lists other ways in which pictures mislead.
#
# ## Look around
#
# Early rounds have wide, shallow planes; late ones are narrow. Compare the map of the test loss with that of a
# client's own samples, client by client (*Detail*); *Relief* has three dimensions.

# %%
figures.explorer(run)

# %% [markdown]
# ## Real sizes
#
# - `POINTS = 41`. `landscape.interpolated_surface` and `drift.round_plane(run, tolerance=0.01)` evaluate some points
#   of a fine grid and interpolate the others; they state the error.
# - `steps=40, probes=3` for the density, more probes for the trace.
# - Models with batch normalisation need their statistics at every point of a sweep: `statistics="recomputed"`, the
#   default, is described in `docs/reading-landscapes.md`.
# - On a model of your own: [5. your own model, data and checkpoints](05_your_own_model_data_and_checkpoints.ipynb).
