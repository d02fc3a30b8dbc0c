"""Samples behind the numbers: what models of a round predict for each, confusions, and where two models disagree.

Functions take a run and the names of models of a round (`drift.analyses.landscapes.named_models`).
"""
