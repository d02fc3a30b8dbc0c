"""Drift: how federated training moves across the loss landscape.

experiment, read, keep    what a run is, read from TOML
method, methods/          hooks of a federated method, one file each
client, engines/, simulate   local training, where it runs, the round loop
rounds, gram              the record of a round and its inner products
store, run, index, verify    files, a run on disk, what exists, what is whole
writer, packing, locks, repair, recompute   rounds written in the background, packed; who may write; what is lost again
setting, keys, partitions/   data of an experiment, keyed randomness, who holds what
coherence, variance, weights, decomposition, terrain, averages, paths, quality, cost   analyses of a run
around, basin, classes, mixtures, projection, layers, traces   further ones, one idea each
importers/                checkpoints that others wrote, Flower's strategies
recorder, recorded, flat_arrays, plain_files, rules   any loop's rounds recorded, with numpy alone
given                     a task of one's own in place of the recorded one
"""

from landscape import plugins

_PUBLIC = {
    "Experiment": "drift.experiment",
    "Run": "drift.run",
    "Round": "drift.rounds",
    "read": "drift.read",
    "simulate": "drift.simulate",
    "open": "drift.opening",
    "Recorder": "drift.recorder",
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
    "error_averaged": "drift.averages",
    "similarity_rounds": "drift.averages",
    "trajectory_plane": "drift.trajectory",
    "projected_plane": "drift.projection",
    "class_plane": "drift.classes",
    "overlay_plane": "drift.overlay",
    "random_plane": "drift.around",
    "weight_simplex": "drift.mixtures",
    "basin_rounds": "drift.basin",
    "trace_rounds": "drift.traces",
    "layer_rounds": "drift.layers",
    "client_barriers": "drift.paths",
    "pool_barriers": "drift.pool_barriers",
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
    "counterfactual": "drift.counterfactual",
    "what_if": "drift.whatif",
    "layer_drift": "drift.layer_drift",
    "label_scatter": "drift.labels",
    "update_norms": "drift.weights",
    "balance": "drift.weights",
    "balance_mean": "drift.weights",
    "learned": "drift.weights",
    "server_epochs": "drift.server_epochs",
    "heterogeneity": "drift.heterogeneity",
    "weight_factors": "drift.weight_factors",
    "pooled_factors": "drift.weight_factors",
    "best_weights": "drift.best_weights",
    "locality": "drift.locality",
    "apart": "drift.apart",
    "diagnose": "drift.diagnosis",
    "interventions": "drift.interventions",
    "decomposition": "drift.decomposition",
    "gap_scaling": "drift.gap",
    "ntk_variance": "drift.ntk",
    "domain_accuracy": "drift.domains",
    "personal_accuracy": "drift.personal",
    "ranking_rounds": "drift.recommended",
}
__all__ = list(_PUBLIC)
plugins.lazy(__name__, _PUBLIC)
