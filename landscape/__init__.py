"""Loss landscapes: the loss as a function of a parameter vector, for any PyTorch model.

task, samples, layout, flat   what the loss is; theta and the module bound to it
affine                        the one evaluator: losses at affine combinations of models
lines, planes, simplex, directions, sweep, surface, barrier   what to evaluate, and the labelled result
hessian, norms, similarity, ensemble   curvature, weights, likeness of outputs, averaging
results                       datasets kept in zarr
datasets/, models/            plug-ins, one file each
"""

from landscape import plugins

_PUBLIC = {
    "Samples": "landscape.samples",
    "Layout": "landscape.layout",
    "Task": "landscape.task",
    "evaluate": "landscape.affine",
    "line": "landscape.lines",
    "plane": "landscape.planes",
    "project": "landscape.planes",
    "simplex": "landscape.simplex",
    "random_plane": "landscape.directions",
    "slice_along": "landscape.directions",
    "surface": "landscape.surface",
    "barrier": "landscape.barrier",
    "top_eigenvalues": "landscape.hessian",
    "open_dataset": "landscape.datasets",
    "build_model": "landscape.models",
}
__all__ = list(_PUBLIC)
plugins.lazy(__name__, _PUBLIC)
