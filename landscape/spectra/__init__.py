"""Back ends of `landscape.curvature.hessian.top_eigenvalues`: one file each, its name is the back end's.

A back end is a function `eigenpairs(problem, k, *, which, tolerance, max_products, seed) -> Eigenpairs`.
"""
