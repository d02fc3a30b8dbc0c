"""What a run keeps of each round, beyond the numbers that are always kept."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

_RULE = re.compile(
    r"all|none|every (?P<every>[1-9]\d*)|last (?P<last>[1-9]\d*)|first (?P<first>[1-9]\d*)|at(?P<at>( \d+)+)"
)


class Keep(BaseModel):
    """Which rounds keep client models and global models, and in which form clients are stored.

    A policy is a list of rules joined by commas, any of which keeps a round: "all", "none", "every 10"
    (rounds 0, 10, ...), "last 3", "first 2", "at 5 17".

    Args:
        clients: Rounds that keep every client model of the cohort.
        globals: Rounds that keep what clients received and the new global model.
        dtype: "float32" keeps client models exactly; "bfloat16 deltas" keeps their difference to the start
            in 16 bits, half the space, no longer exact to the last bits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clients: str = "all"
    globals: str = "all"
    dtype: Literal["float32", "bfloat16 deltas"] = "float32"

    @field_validator("clients", "globals")
    @classmethod
    def _rules_are_known(cls, policy: str) -> str:
        for rule in policy.split(","):
            if not _RULE.fullmatch(rule.strip()):
                raise ValueError(
                    f"cannot read {rule.strip()!r}; a policy is made of all, none, 'every 10', 'last 3', 'first 2', "
                    "'at 5 17', joined by commas."
                )
        return policy

    def keeps_clients(self, index: int, rounds: int) -> bool:
        """Whether round `index` of `rounds` keeps its client models."""
        return _kept(self.clients, index, rounds)

    def keeps_globals(self, index: int, rounds: int) -> bool:
        """Whether round `index` keeps its start and end; where clients are kept, these are too."""
        return _kept(self.globals, index, rounds) or self.keeps_clients(index, rounds)


def _kept(policy: str, index: int, rounds: int) -> bool:
    return any(_applies(rule.strip(), index, rounds) for rule in policy.split(","))


def _applies(rule: str, index: int, rounds: int) -> bool:
    match = _RULE.fullmatch(rule)
    if match is None or rule in ("all", "none"):
        return rule == "all"
    if match["every"]:
        return index % int(match["every"]) == 0
    if match["last"]:
        return index >= rounds - int(match["last"])
    if match["first"]:
        return index < int(match["first"])
    return index in map(int, match["at"].split())
