"""Curvature along a run: Hessian eigenvalues, densities, traces, layers, per round.

The numbers are computed by `landscape.curvature`.
"""
