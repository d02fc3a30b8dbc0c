"""Claims of the four papers, checked on runs. One file per paper; each claim measures an effect.

claim      what a claim is, and how it is judged
select_runs  the runs that a claim is about, picked from those given
ima, fedlaw, lss, fedeve   the claims of each paper
cross, cross_measures, averaging_cost   questions across the papers, and what they measure
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from landscape.plugins import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.claims.claim import Claim, Verdict
    from drift.runs.run import Run

PAPERS = ("ima", "fedlaw", "lss", "fedeve")


def claims(*papers: str) -> list[Claim]:
    """The claims of the papers named, of all where none is, in the order of the papers.

    Raises:
        ValueError: If there is no such paper.
    """
    require_papers(*papers)
    modules = [importlib.import_module(f"drift.claims.{paper}") for paper in papers or PAPERS]
    return [claim for module in modules for claim in module.CLAIMS]


def require_papers(*papers: str) -> None:
    """Refuse a paper whose claims are not known; nothing heavy is imported.

    Raises:
        ValueError: With the nearest name.
    """
    for paper in papers:
        if paper not in PAPERS:
            raise ValueError(unknown("paper", paper, sorted(PAPERS)))


def check(runs: Sequence[Run], *papers: str) -> list[Verdict]:
    """The verdicts of runs on the claims of papers, with p adjusted over all of them.

    Raises:
        ValueError: If there is no such paper.
    """
    from drift.claims.claim import adjusted

    return adjusted([claim.judge(runs) for claim in claims(*papers)])
