# %% [markdown]
# # 7. Custom plots
#
# A gallery figure has two functions: `data(runs)` computes a labelled dataset, and `draw(ds)` draws it. Other
# functions draw one dataset on axes of yours. So there are three ways to a plot of your own. Take the numbers and
# plot them with any library. Lay out the axes yourself and let fedscape fill them. Or write a figure that is listed
# and saved like the others.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import drift
import figures
import figures.gallery
from drift import compare
from figures import gallery
from figures.axes import surfaces
from figures.looks import style

ROUNDS = 24  # 50 and more for results
SEEDS = (8, 9)  # five and more for a band that means something
runs = compare("digits-shards2", methods=["fedavg", "ima"], seeds=SEEDS, overrides=[f"rounds={ROUNDS}"], runs="runs")
fedavg, ima = (next(run for run in runs if run.label == name) for name in ("fedavg", "ima"))

# %% [markdown]
# ## The numbers
#
# `data` of a figure has the dimensions `algorithm`, `seed` and `round`. Select and reduce by name; attributes have
# the units. `to_dataframe()` makes a table for pandas, seaborn or a CSV file.

# %%
ds = gallery.load("accuracy-rounds").data(runs)
late = ds.accuracy.isel(round=slice(-6, None))
print(late.mean(["round", "seed"]).to_series().round(3).to_string())
Path("out").mkdir(exist_ok=True)
ds.accuracy.to_dataframe().to_csv("out/accuracy.csv")
late.std("round")

# %% [markdown]
# IMA averages from three quarters of the rounds on. Its last rounds vary two to three times less, and their mean is
# higher; the best rounds of both methods are alike. This plot of your own shows it, in fedscape's colours (a method
# has one colour in every figure):

# %%
fig, ax = plt.subplots(figsize=(4, 2.8), layout="constrained")
for place, name in enumerate(late.algorithm.values):
    values = late.sel(algorithm=name).values.ravel()
    ax.plot(place + np.linspace(-0.15, 0.15, len(values)), values, "o", color=style.colour(name), alpha=0.6)
ax.set_xticks(range(late.sizes["algorithm"]), [style.label(name) for name in late.algorithm.values])
ax.set(ylabel="test accuracy, last 6 rounds", xlim=(-0.5, 1.5))
plt.show()

# %% [markdown]
# ## Your layout
#
# Functions such as `figures.contour(ds, ax=...)` draw on your axes, and never compute, save or show. `style.panels`
# makes axes in print size (3.3 or 6.9 inches, constrained layout). Under `style.context()` fonts and lines are those
# of a paper. Give two maps the same levels before you compare them:

# %%
moments = [ROUNDS // 3, 2 * ROUNDS // 3, ROUNDS - 1]
planes = {
    (run.label, index): run.cached(drift.round_plane, round=index, points=11)
    for run in (fedavg, ima)
    for index in moments
}
levels = figures.common_levels(*(plane.loss for plane in planes.values()))
with style.context():
    figure, axes = style.panels(2, 3, height=4.4)
    for ax, ((name, index), plane) in zip(axes.flat, planes.items(), strict=True):
        figures.contour(plane, ax=ax, levels=levels, names=False)
        ax.set_title(f"{style.label(name)}, round {index}")
    style.name_edges(axes)  # the maps name their own axes; one name a column and row is enough
    surfaces.colorbar(figure, axes.flat, levels, "test loss [nats]")
    for ax in axes.flat:
        ax.set_anchor("N")  # maps of several shapes: their titles stay in line
figure

# %% [markdown]
# The first two columns agree: before IMA starts averaging, both methods train in the same way. `figures.save` embeds
# fonts and writes no date, so the same data give the same bytes.

# %%
print(*figures.save(figure, "out/my-planes", formats=["pdf", "png"]), sep="\n")

# %% [markdown]
# ## Interactive
#
# You can change plotly figures, and export them as a page that needs no network.

# %%
turned = figures.surface_rounds(list(planes.values())[:3])
turned.update_layout(height=520, scene_camera_eye={"x": 0.6, "y": -1.1, "z": 1.2})
turned.write_html("out/planes.html", include_plotlyjs=True)
turned

# %% [markdown]
# ## A figure of your own
#
# A figure is one file, and its file name is its name. In `figures/gallery/` it is listed by `fedscape figures list`,
# drawn by `fedscape figures draw`, and tested with the others; here it is in a folder next to the notebook. `data`
# takes its numbers from `run.cached(...)`, which stores results with the run.

# %%
TEXT = '''"""How far the clients of a round end from their mean, one histogram a method."""

import numpy as np
import xarray as xr

from drift import locality
from figures.looks import style

NEEDS = "runs of any methods"
COST = "seconds"


def data(runs, *, skip=0):
    """distance (round, client) of each run, over algorithm."""
    found = {run.label: run.cached(locality).distance.isel(round=slice(skip, None)) for run in runs}
    return xr.concat(found.values(), "algorithm").assign_coords(algorithm=list(found)).to_dataset(name="distance")


@style.styled
def draw(ds):
    """One histogram a method."""
    figure, ((ax,),) = style.panels(1, 1, width=style.NARROW)
    edges = np.linspace(float(ds.distance.min()), float(ds.distance.max()), 16)
    values = [ds.distance.sel(algorithm=name).values.ravel() for name in ds.algorithm.values]
    looks = {"color": map(style.colour, ds.algorithm.values), "label": map(style.label, ds.algorithm.values)}
    ax.hist([one[np.isfinite(one)] for one in values], edges, **{key: list(value) for key, value in looks.items()})
    ax.set_xlabel(style.text(ds.distance))
    ax.set_ylabel("clients and rounds")
    ax.legend()
    return figure
'''
folder = Path("my_figures")
folder.mkdir(exist_ok=True)
(folder / "distances.py").write_text(TEXT)
sys.modules.pop("figures.gallery.distances", None)  # read again when this cell runs again
if str(folder.resolve()) not in figures.gallery.__path__:
    figures.gallery.__path__.append(str(folder.resolve()))
mine = gallery.load("distances")
mine.draw(mine.data([fedavg, ima], skip=3 * ROUNDS // 4))

# %% [markdown]
# These are the rounds in which IMA averages. The distances hardly differ: IMA changes the model that clients start
# from, not how far they move.
#
# ## Look around
#
# You can read and change the selection of the explorer in code: `show` selects, and `explorer.selection` is the
# current selection. *Figures*, below the landscapes, has every figure of the gallery for these runs, as files, as a
# command and as Python lines.

# %%
explorer = figures.explorer([fedavg, ima])
explorer.show(view="path", round=moments[1])

# %% [markdown]
# ## Real sizes
#
# - More seeds: `SEEDS = range(8, 13)`; `figures.curve` and the gallery draw them as a band and say so.
# - `fedscape figures draw NAME RUNS -o FOLDER` writes picture and numbers (PDF, CSV, netCDF).
# - CONTRIBUTING.md, *A figure*, lists what a file of the gallery must have.
