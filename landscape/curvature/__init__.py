"""Second derivatives of the loss: eigenvalues, traces, spectral densities, tangent kernels.

`hessian.top_eigenvalues` is the entry; `hessian_products` multiplies with a vector, `krylov` searches for eigenpairs.
"""

from landscape.results import pictures

pictures.register()  # `.plot()` on the datasets
