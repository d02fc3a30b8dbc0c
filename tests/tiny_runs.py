"""Two methods with two seeds each, trained once in a session: 3 rounds, 4 clients of unequal size, linear model."""

from pathlib import Path

from drift.read import read, validated
from drift.run import Run
from drift.simulate import simulate

SETTINGS = {
    "rounds": 3,
    "seed": 5,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 90, "test_samples": 40},
    "clients": {"number": 4, "per_round": 3, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.1, "epochs": 2, "batch": 8},
    "proxy": {"per_class": 1},
}


def trained(folder: Path, *overrides: str) -> list[Run]:
    """FedAvg and FedLAW with seeds 5 and 6 in `folder`."""
    methods = (["method=fedavg"], ["method=fedlaw", "method.server_epochs=3", "method.server_lr=0.1"])
    return [
        simulate(read(validated(SETTINGS), *method, f"seed={seed}", *overrides), runs=folder)
        for method in methods
        for seed in (5, 6)
    ]
