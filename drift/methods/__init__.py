"""Federated methods; each file of this folder is one, and its file name is its public name.

A method is a subclass of `drift.method.Method`; files that begin with an underscore hold what several share.
"""
