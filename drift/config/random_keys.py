"""Random generators keyed by their purpose, not by the order of draws.

`rng(seed, "cohort", t)` is the same stream in every process, method and engine, so that methods are compared
on the same cohorts and batches, and a single client of a round can be retrained.
"""

import hashlib
import json
import operator

import numpy as np
import torch


def key(seed: int, *purpose: str | int) -> int:
    """The 63-bit number of a seed and a purpose: blake2b of their JSON list, the same on every machine.

    The list distinguishes purposes that a joined text would not: ("a", 12) and ("a1", 2), 1 and "1".

    Raises:
        TypeError: If a part is neither a text nor a whole number.
    """
    words = [word if isinstance(word, str) else int(operator.index(word)) for word in (seed, *purpose)]
    digest = hashlib.blake2b(json.dumps(words).encode("ascii"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh torch generator for a purpose.

    CPU and GPU generators differ for the same key. Torch's CPU generator uses the low 32 bits of a seed, so
    among 10,000 purposes two share their stream with a chance of about 1 %.
    """
    fresh = torch.Generator(device=device)
    fresh.manual_seed(key(seed, *purpose))
    return fresh


def rng(seed: int, *purpose: str | int) -> np.random.Generator:
    """A fresh numpy generator for a purpose."""
    return np.random.default_rng(key(seed, *purpose))


def cohort(seed: int, t: int, clients: int, per_round: int) -> np.ndarray:
    """Clients of round `t`, uniform without replacement, independent of the method.

    Source: papers.md 0.2, step 1 (IMA's code seeds with seed + t; FedLAW's stores the sequence).

    Args:
        seed: Seed of the experiment.
        t: Index of the round.
        clients: K, clients in all.
        per_round: m, clients in a round.

    Returns:
        Client numbers in 0..K-1, shape (m,), int64, ascending.

    Raises:
        ValueError: If `per_round` is not between 1 and `clients`.
    """
    if not 1 <= per_round <= clients:
        raise ValueError(f"per_round is {per_round}, there are {clients} clients; give a number from 1 to {clients}.")
    return np.sort(rng(seed, "cohort", t).choice(clients, size=per_round, replace=False))
