"""DiWA on clients: the mean of diverse trainings with mild settings, chosen greedily."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from drift.soups import Soup


class DiWA(Soup):
    """Soups, by default with the greedy selection ("restricted"), as the LSS paper describes it.

    The original reports the uniform mean as well (selection = "uniform").

    Source: Rame et al. 2022, algorithm 1; budget of the LSS paper.
    """

    selection: Literal["uniform", "greedy"] = Field("greedy", description="which candidates the mean is of")
