"""Loss landscapes: the loss as a function of a parameter vector, for any PyTorch model.

model              layout, samples, loss, metrics; a module bound to its parameter vector
sweep              the one evaluator: losses at affine combinations of models
geometry           where to evaluate: lines, planes, simplices, curves, alignment
surfaces           losses on grids as labelled datasets: surfaces, barriers, basins, minima
measures           numbers about single models: norms, sharpness, robustness, similarity, ensembles, cost
curvature          Hessian and Gauss-Newton: eigenvalues, trace, density, tangent kernel; spectra has the back ends
batched_training   gradients of many small models at once
datasets, models   plug-ins, one file each
results            labelled datasets in netCDF, export, progress
"""

from landscape import plugins

__all__ = plugins.lazy(__name__)
