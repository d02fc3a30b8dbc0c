"""Second derivatives of the loss: eigenvalues, traces, spectral densities, tangent kernels.

`hessian.top_eigenvalues` is the entry; `curvature_products` selects the fastest correct product with a vector.
"""

from landscape.results import pictures

pictures.register()  # `.plot()` on the datasets
