"""Planes, lines, simplices and barriers through the models of a run.

The points come from `landscape.geometry`, their losses from `analyses.evaluate_on`.
"""
