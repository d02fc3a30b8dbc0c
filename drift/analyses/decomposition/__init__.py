"""Bias-variance decompositions of clients and aggregate, their factors, the generalisation gap, NTK.

`decomposition` is the entry; clients are trained again with other draws.
"""
