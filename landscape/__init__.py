"""Loss landscapes: the loss as a function of a parameter vector, for any PyTorch model.

task, samples, layout, flat, made   what the loss is; theta and the module bound to it
affine, sweeping              the one evaluator: losses at affine combinations of models; its chunks and threads
firstlayer, kernels, precision, batched   what makes it fast: shared work, quicker layers, bfloat16, batches of points
lines, planes, simplex, directions, sweep, surface, barrier   what to evaluate, and the labelled result
trajectory, curves, alignment, basin   planes of trajectories, bent paths, reordered units, surfaces in numbers
hessian, lanczos, krylov, spectra/   curvature: largest eigenvalues
products, roperator, rsteps, gauss_newton   its products with vectors, without autograd where that is possible
trace, density, minibatch, blocks   its trace, spectrum, batches, layers
ntk                           the tangent kernel, and the variance that it predicts
norms, similarity, ensemble   weights, likeness of outputs, averaging
sharpness, robustness, scaling, cost   balls around a model, noisy inputs, rescaled models, what they cost
adaptive, cells               a fine grid from fewer points
results, export               datasets kept in zarr; files for other programs
progress, memory              how far a long computation has come; what happens where memory ends
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
    "adaptive_surface": "landscape.adaptive",
    "barrier": "landscape.barrier",
    "pairwise_barriers": "landscape.barrier",
    "simplex_losses": "landscape.barrier",
    "principal_plane": "landscape.trajectory",
    "Curve": "landscape.curves",
    "connecting_curve": "landscape.curves",
    "along": "landscape.curves",
    "align": "landscape.alignment",
    "aligned_barrier": "landscape.alignment",
    "basin": "landscape.basin",
    "top_eigenvalues": "landscape.hessian",
    "trace": "landscape.trace",
    "density": "landscape.density",
    "ntk": "landscape.ntk",
    "minibatch_sharpness": "landscape.minibatch",
    "layer_eigenvalues": "landscape.blocks",
    "ball_sharpness": "landscape.sharpness",
    "noise_robustness": "landscape.robustness",
    "scaling": "landscape.scaling",
    "step_cost": "landscape.cost",
    "open_dataset": "landscape.datasets",
    "build_model": "landscape.models",
}
__all__ = list(_PUBLIC)
plugins.lazy(__name__, _PUBLIC)
