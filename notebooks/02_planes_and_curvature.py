# %% [markdown]
# # 2. Planes and curvature
#
# A model here has 13,706 parameters; a picture shows one or two directions of them. This notebook builds the usual
# pictures by hand, so that you know what each can show and what it cannot: a line, a plane, planes in which each
# client has its own basin, random slices, and the Hessian's spectrum, which says what the slices leave out.

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
# A *task* is a model, a loss and samples; a *sweep* says where in parameter space to look; `surface` evaluates the one
# on the other. The shortest sweep is a line: (1 - t) a + t b. Here a and b are two clients of the last round.

# %%
a, b = last.clients[0], last.clients[1]
line = landscape.surface(task, landscape.line(a, b, points=25))
ax = figures.profile(line)
surfaces.ends(ax, f"client {last.ids[0]}", f"client {last.ids[1]}")
plt.show()
print("barrier", float(landscape.barrier(task, a, b).barrier), "nats")

# %% [markdown]
# The *barrier* is how far the loss rises above the straight line between its values at the two ends. Here it is 0:
# between two models that know different digits the loss is lower than at either. Averaging is no compromise then, it
# adds up what the two know. A positive barrier would be a wall, and models with a wall between them should not be
# averaged. (A wall on the straight line can have a way around it: `landscape.connecting_curve` looks for one.)
#
# ## A plane
#
# Three models span a plane. `plane` gives it coordinates of unit length, so that distances in the picture are
# distances between parameters, and the two axes are drawn with one scale. Loss levels are spaced in log; the error has
# none.

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
# The two maps tell different stories. The loss is one smooth bowl. The error is a shelf near 0.75, on which the models
# that know two or three digits stand, with a pit in its middle; crossing the shelf changes confidence, not decisions.
# Say which of the two you look at, and do not take the depth of one for the depth of the other.
#
# **Whoever is not in the plane is only projected onto it.** Five clients took part, three of them span the plane. For
# the other two and for the new global model, the map shows the loss at their *foot*, not their own. `project` says how
# far above it they are:

# %%
feet = landscape.project([*last.clients[3:], last.end], sweep, labels=["client A", "client B", "global"])
feet.distance.to_series()

# %% [markdown]
# The clients are nearly as far out of the picture as the triangle is wide: in 13,706 dimensions there is much room
# beside a plane. The figure `planes-projected` draws both losses of every model side by side.
#
# ## Each client has its own basin
#
# The plane above shows the loss on all digits. On a client's own images the landscape is another one, with its lowest
# place near that client's model. That difference *is* client drift.

# %%
overlay = gallery.load("planes-overlay")
overlay.draw(overlay.data([run], points=POINTS))

# %% [markdown]
# ## A random slice looks flat
#
# Far away from any training, people like to draw the loss around one model in two random directions, scaled to the
# norms of its filters. That picture tells something about scale and symmetry, and little about sharpness: a random
# direction is almost orthogonal to the few that are steep. The Hessian's first eigenvector is the steepest one. Both,
# as slices of one length through the last global model:

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
# Nothing happens along the random direction: its curvature is about the *mean* eigenvalue, trace / d. Along the
# steepest one there is a wall, and the model does not even stand at the bottom before it, because averaging put it
# there, not a gradient step. The whole spectrum shows how few directions are steep: the density is drawn in log, and
# nearly all of its mass is the peak at zero.

# %%
density = run.cached(drift.hessian_density, steps=20, probes=1)
peak = float(density.density.max())
density.density.plot(yscale="log", ylim=(1e-5 * peak, 2 * peak))
plt.show()
trace = landscape.trace(task, last.end, products=30)
print("mean eigenvalue", float(trace.trace) / len(last.end), "largest", float(top.eigenvalue[0]))

# %% [markdown]
# Eigenvalues compare models only at one scale: a network of ReLUs divided by 10 in one layer and multiplied by 10 in
# the next computes the same function and has other eigenvalues. `landscape.ball_sharpness` and `drift.ball_sharpness`
# have measures that do not change with it. `docs/reading-landscapes.md` lists the other ways to be misled.
#
# ## Look around
#
# Early rounds have wide, shallow planes; late ones are narrow. Compare the map of the test loss with that of a client's
# own samples, client by client (*Detail*); *Relief* has three dimensions.

# %%
figures.explorer(run)

# %% [markdown]
# ## Real sizes
#
# - `POINTS = 41`. `landscape.interpolated_surface` and `drift.round_plane(run, tolerance=0.01)` evaluate some points of
#   a fine grid and interpolate the others; they state the error.
# - `steps=40, probes=3` for the density, more probes for the trace.
# - Models with batch normalisation need their statistics at every point of a sweep; `statistics="recomputed"` is the
#   default and what it means stands in `docs/reading-landscapes.md`.
# - On a model of your own: [5. your own model, data and checkpoints](05_your_own_model_data_and_checkpoints.ipynb).
