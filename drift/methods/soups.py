"""Soups on clients: the mean of many trainings with random settings."""

from __future__ import annotations

from drift.methods._soups import Soup


class Soups(Soup):
    """Clients send the mean of 32 candidates trained with random settings; the uniform mean by default.

    Source: Wortsman et al. 2022, uniform and greedy soups; ranges and budget of the LSS paper's code.
    """
