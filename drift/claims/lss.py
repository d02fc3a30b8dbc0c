"""Claims of Chen et al. 2024 (LSS)."""

from __future__ import annotations

from drift.analyses.curvature.eigenvalues import round_sharpness
from drift.analyses.landscapes.model_quality import noise_robustness, three_accuracies
from drift.claims.claim import Claim
from drift.claims.measures import MARGIN, late, more_models
from drift.claims.select_runs import method_effects, pair_effects
from drift.runs.run import Run


def _drop(run: Run) -> float:
    """Accuracy lost under noise of 8/255, in points."""
    return 100 * float(run.cached(noise_robustness)["drop"].isel(value=-1))


def _sharpness(run: Run) -> float:
    return float(run.cached(round_sharpness, round=late(run, "globals")[-1])["median"])


def _accuracy_after(rounds: int, word: str) -> Claim:
    def after(run: Run) -> float:
        values = run.metrics()["accuracy"]
        return 100 * float(values.sel(round=rounds - 1)) if rounds - 1 in values["round"] else float("nan")

    return Claim(
        f"lss-accuracy-{rounds}",
        "LSS, Table 1",
        f"LSS is more accurate than FedAvg after {word}",
        f"accuracy after {word}: LSS minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: after(run) - after(other)),
        margin=MARGIN,
    )


def _outside(run: Run) -> float:
    return 100 * float(run.cached(three_accuracies, round=late(run)[-1])["ood_mean"])


CLAIMS = (
    *(_accuracy_after(rounds, word) for rounds, word in ((1, "one round"), (3, "three rounds"))),
    Claim(
        "lss-more-models",
        "LSS, Fig. 6",
        "the aggregated model is better the more models it averages",
        "error of one client minus that of the mean of all, a late round of LSS",
        "points",
        lambda runs: method_effects(runs, "lss", more_models),
    ),
    Claim(
        "lss-outside",
        "LSS, Fig. 6",
        "local models of LSS are better on other clients' data than FedAvg's",
        "accuracy of local models on the others' data, a late round: LSS minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _outside(run) - _outside(other)),
    ),
    Claim(
        "lss-robust",
        "LSS, Table 6",
        "LSS loses less accuracy under noise than FedAvg",
        "accuracy lost under uniform noise of 8/255: FedAvg minus LSS",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _drop(other) - _drop(run)),
        margin=MARGIN,
    ),
    Claim(
        "lss-flatter",
        "LSS, Table 7",
        "LSS ends flatter than FedAvg",
        "median over minibatches of the largest Hessian eigenvalue, a late round: 1 minus LSS over FedAvg",
        "1",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: 1 - _sharpness(run) / _sharpness(other)),
    ),
)
