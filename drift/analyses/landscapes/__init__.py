"""Planes, lines, simplices and barriers through the models of a run.

The place comes from `landscape.geometry`, the values from `analyses.evaluate_on`.
"""
