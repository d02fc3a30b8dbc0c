"""Counterfactual rounds: other aggregations, frozen gradients, all clients, changed settings.

Rounds are trained again from the record; `changes` lists what can be changed.
"""
