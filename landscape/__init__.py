"""Loss landscapes: the loss as a function of a parameter vector, for any PyTorch model.

task, samples, layout, flat, made, vectors   what the loss is; theta, the module bound to it, state dicts in its place
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

from landscape import earlier, plugins

earlier.find_in(__name__)
__all__ = plugins.lazy(__name__)
