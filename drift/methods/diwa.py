"""DiWA on clients: the mean of trainings with random settings, chosen greedily (greedy Soups under another name)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from drift.methods.soups import Soups


class DiWA(Soups):
    """Soups with the greedy selection ("restricted"), as the LSS paper describes it, and nothing else but that.

    The original draws from milder ranges than Soups; here both have those of the LSS paper's code, so that with equal
    options they are one method. Give ranges by lrs, weight_decays, dropouts and batches. The original reports the
    uniform mean as well (selection = "uniform").

    Unlike the paper: ranges are those of Soups, there milder ones; the selection is greedy, there uniform as well.

    Source: Rame et al. 2022, algorithm 1; budget of the LSS paper.
    """

    selection: Literal["uniform", "greedy"] = Field("greedy", description="which candidates the mean is of")
