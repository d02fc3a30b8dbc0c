"""Drift: how federated training moves across the loss landscape.

experiment, read, keep    what a run is, read from TOML
method, methods/          hooks of a federated method, one file each
client, engines/, simulate   local training, where it runs, the round loop
rounds, gram              the record of a round and its inner products
store, run, index, verify    files, a run on disk, what exists, what is whole
setting, keys, partitions/   data of an experiment, keyed randomness, who holds what
coherence, variance, weights, decomposition, terrain, paths, quality, cost   analyses of a run
importers/                checkpoints that others wrote
"""

from landscape import plugins

_PUBLIC = {
    "Experiment": "drift.experiment",
    "Run": "drift.run",
    "Round": "drift.rounds",
    "read": "drift.read",
    "simulate": "drift.simulate",
    "open": "drift.run",
    "round_plane": "drift.terrain",
    "global_plane": "drift.terrain",
    "global_line": "drift.terrain",
    "average_line": "drift.terrain",
    "eigen_rounds": "drift.sharpest",
    "eigen_slice": "drift.sharpest",
    "hessian_density": "drift.curvature",
    "density_rounds": "drift.curvature",
    "round_sharpness": "drift.curvature",
    "sharpness_rounds": "drift.curvature",
    "error_averaged": "drift.terrain",
    "similarity_rounds": "drift.terrain",
    "trajectory_plane": "drift.paths",
    "client_barriers": "drift.paths",
    "pool_barriers": "drift.paths",
    "mode_curve": "drift.paths",
    "aligned_barrier": "drift.paths",
    "scale_curve": "drift.quality",
    "weight_histograms": "drift.quality",
    "noise_robustness": "drift.quality",
    "ball_sharpness": "drift.quality",
    "three_accuracies": "drift.quality",
    "cost": "drift.cost",
    "coherence": "drift.coherence",
    "drift_variances": "drift.variance",
    "update_norms": "drift.weights",
    "balance": "drift.weights",
    "learned": "drift.weights",
    "locality": "drift.locality",
    "decomposition": "drift.decomposition",
}
__all__ = list(_PUBLIC)
plugins.lazy(__name__, _PUBLIC)
