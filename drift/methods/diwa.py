"""DiWA on clients: the mean of trainings with random settings, chosen greedily (greedy Soups under another name)."""

from typing import Literal

from pydantic import Field

from drift.methods.soups import Soups


class DiWA(Soups):
    """Soups with the greedy selection ("restricted"), as the LSS paper describes it.

    Unlike the paper: ranges are those of the LSS paper's code; the original draws from milder ones, and reports the
    uniform mean too.

    Source: Rame et al. 2022, algorithm 1; budget of the LSS paper.
    """

    selection: Literal["uniform", "greedy"] = Field("greedy", description="which candidates the mean is of")
