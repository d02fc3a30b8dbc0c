"""What claims of Chen et al. 2024 (LSS) measure, on a run of it and one of FedAvg."""

from drift.analyses.curvature.eigenvalues import round_sharpness
from drift.analyses.landscapes.model_quality import noise_robustness, three_accuracies
from drift.claims.measures import accuracies, late
from drift.runs.run import Run


def ahead_after(run: Run, other: Run, *, rounds: int) -> float:
    """Accuracy after the first rounds minus that of another run, points; NaN where one was not measured then."""
    return error_after(other, rounds=rounds) - error_after(run, rounds=rounds)


def error_after(run: Run, *, rounds: int) -> float:
    """1 minus the accuracy after the first rounds, points; NaN where it was not measured then."""
    values = accuracies(run)
    return 100 - 100 * float(values.sel(round=rounds - 1)) if rounds - 1 in values["round"] else float("nan")


def outside(run: Run, other: Run) -> float:
    """Accuracy of local models on the others' data minus that of another run, a late round, points."""

    def accuracy(member: Run) -> float:
        return 100 * float(member.cached(three_accuracies, round=late(member)[-1])["ood_mean"])

    return accuracy(run) - accuracy(other)


def robust(run: Run, other: Run) -> float:
    """Accuracy that another run loses under noise of 8/255 minus what this one loses, points."""

    def drop(member: Run) -> float:
        return 100 * float(member.cached(noise_robustness)["drop"].isel(value=-1))

    return drop(other) - drop(run)


def flatter(run: Run, other: Run) -> float:
    """1 minus the ratio of this run's median largest eigenvalue over minibatches, a late round, to another's."""

    def sharpness(member: Run) -> float:
        return float(member.cached(round_sharpness, round=late(member, "globals")[-1], full=False)["median"])

    return 1 - sharpness(run) / sharpness(other)
