"""Recorded runs: opening one, its rounds, clients, metrics and stored results.

`run.Run` is what every analysis takes.
"""
