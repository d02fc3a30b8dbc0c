"""Claims of the four papers, checked on runs. Each claim is an entry of its paper's TOML file.

claim      what a claim is, and how it is judged
interval   the mean of its effect over seeds, with the interval
entries    reads the entries; each names the function that measures its effect
select_runs  the runs that a claim is about, picked from those given
ima, fedlaw, lss, fedeve   the claims of each paper (.toml), and what they measure (.py)
cross      questions across the papers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from landscape.plugins import require_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.claims.claim import Claim, Verdict
    from drift.runs.run import Run

PAPERS = ("ima", "fedlaw", "lss", "fedeve")

ACROSS = "cross"
"""Stands for a paper where the questions across the papers are asked."""


def claims(*papers: str) -> list[Claim]:
    """The claims of the papers named ("cross": the questions across them), of all papers where none is, in order.

    Raises:
        ValueError: If there is no such paper.
    """
    require_papers(*papers)
    from drift.claims.entries import read_claims

    return [claim for paper in papers or PAPERS for claim in read_claims(paper)]


def questions() -> tuple[Claim, ...]:
    """Questions across the papers, by section of docs/findings.md."""
    from drift.claims.entries import read_claims

    return read_claims(ACROSS)


def require_papers(*papers: str) -> None:
    """Refuse a paper whose claims are not known; nothing heavy is imported.

    Raises:
        ValueError: With the nearest name.
    """
    for paper in papers:
        if paper != ACROSS:
            require_known("paper", paper, sorted(PAPERS))


def check(runs: Sequence[Run], *papers: str) -> list[Verdict]:
    """The verdicts of runs on the claims of papers, with p adjusted over all of them.

    Raises:
        ValueError: If there is no such paper.
    """
    from drift.claims.claim import adjusted

    return adjusted([claim.judge(runs) for claim in claims(*papers)])
