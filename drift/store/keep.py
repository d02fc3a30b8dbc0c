"""Policy of a run: which rounds store models, in addition to the numbers that every round stores."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from drift.store import keep_rules


class Keep(BaseModel):
    """Which rounds store client models and global models, and in which form clients are stored.

    A policy is a list of rules joined by commas; a round is kept if any rule matches: "all", "none", "every 10"
    (rounds 0, 10, ...), "last 3", "first 2", "at 5 17".

    Args:
        clients: Rounds that store all client models of the cohort.
        globals: Rounds that store the model that clients received and the new global model.
        dtype: "float32" stores client models exactly; "bfloat16 deltas" stores their difference to the start
            in 16 bits, half the space, not exact to the last bits.
        compress: Compress client models without loss: about two thirds of the space of float32, three times the time to
            write (`python -m benchmarks.recording`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clients: str = "all"
    globals: str = "all"
    dtype: Literal["float32", "bfloat16 deltas"] = "float32"
    compress: bool = False

    @field_validator("clients", "globals")
    @classmethod
    def _rules_are_known(cls, policy: str) -> str:
        keep_rules.require(policy)
        return policy

    def keeps_clients(self, index: int, rounds: int) -> bool:
        """Whether round `index` of `rounds` keeps its client models."""
        return keep_rules.matches(self.clients, index, rounds)

    def keeps_globals(self, index: int, rounds: int) -> bool:
        """Whether round `index` keeps its start and end; where clients are kept, these are too."""
        return keep_rules.matches(self.globals, index, rounds) or self.keeps_clients(index, rounds)
