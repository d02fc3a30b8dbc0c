"""The path of the global models as values, for a page or a server."""

from typing import Any

import numpy as np
import xarray as xr

from figures.page.packed import finite, packed


def path_value(ds: xr.Dataset, words: str) -> dict[str, Any]:
    """The path on a plane, without a map where it has no loss.

    Args:
        ds: Of `drift.trajectory_plane`, or of the points alone.
        words: A sentence on the samples.

    Returns:
        plane: As in `stage_round`, with metrics loss and error; None without a map. marks: name (round 12), kind
        (round), round, u, v, away (distance from the plane) and loss. samples: the words. explained: share of the
        variance of the models in the plane.
    """
    names = {"u": "mark_alpha", "v": "mark_beta", "away": "distance", "loss": "mark_loss"}
    columns = {name: np.asarray(ds[column].values, dtype=float) for name, column in names.items()}
    marks = [
        {"name": f"round {index}", "kind": "round", "round": int(index)}
        | {name: finite(values[row]) for name, values in columns.items()}
        for row, index in enumerate(ds.mark_round.values)
    ]
    explained = float(ds.attrs["explained_alpha"]) + float(ds.attrs["explained_beta"])
    return {"plane": _plane(ds), "marks": marks, "samples": words, "explained": finite(explained)}


def _plane(ds: xr.Dataset) -> dict[str, Any] | None:
    if "loss" not in ds:
        return None
    metrics = [name for name in ("loss", "error") if name in ds]
    return {
        "extent": [[float(ds[name][0]), float(ds[name][-1])] for name in ("alpha", "beta")],
        "points": [ds.sizes["alpha"], ds.sizes["beta"]],
        "metrics": {name: packed(ds[name].transpose("alpha", "beta").values) for name in metrics},
    }
