"""What claims of Li et al. 2023 (FedLAW) measure."""

import numpy as np

from drift.analyses.curvature.eigenvalues import eigen_rounds
from drift.analyses.landscapes.model_quality import weight_histograms
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import aggregation_weights, update_norms
from drift.analyses.rounds.weight_factors import server_epochs
from drift.claims.measures import late, quarters
from drift.runs.run import Run


def gamma_rises(run: Run) -> float:
    """Mean gamma of the last quarter of the rounds minus that of the first."""
    first, last = quarters(run.cached(aggregation_weights)["gamma"].values)
    return last - first


def coherence_falls(run: Run) -> float:
    """Weighted mean cosine of the first quarter of the rounds minus that of the last."""
    first, last = quarters(run.cached(coherence)["mean_cosine"].values)
    return first - last


def coherence_lost(run: Run) -> float:
    """Minus the mean cosine over the last quarter: positive where coherence has been lost."""
    return -quarters(run.cached(coherence)["mean_cosine"].values)[1]


def nearer_zero(run: Run, other: Run) -> float:
    """Share of parameters below 0.01 in size of the last global model minus that of another run."""

    def share(member: Run) -> float:
        histogram = member.cached(weight_histograms)
        return float(histogram["near_zero"][-1]) / float(histogram["parameters"])

    return share(run) - share(other)


def smaller_norm(run: Run, other: Run) -> float:
    """Norm of the last global model of another run minus that of this one."""
    norms = [float(member.cached(update_norms)["end_norm"][-1]) for member in (run, other)]
    return norms[1] - norms[0]


def flatter(run: Run, other: Run) -> float:
    """Largest Hessian eigenvalue of the last global model of another run minus that of this one."""

    def largest(member: Run) -> float:
        values = member.cached(eigen_rounds, rounds=[member.kept("globals")[-1]])
        return float(values["eigenvalue"].sel(rank=1).isel(round=-1))

    return largest(other) - largest(run)


def corrupted_lighter(run: Run) -> float:
    """Weight over data share: mean of the clean clients minus mean of the corrupted ones."""
    ratio = run.cached(aggregation_weights)["weight_ratio"]
    wrong = sorted(run.dataset.corrupted)
    if not wrong:
        raise LookupError(f"run {run.name} has no corrupted clients; train with --set clients.corrupted=0.25")
    clean = [client for client in ratio["client"].values if client not in wrong]
    return float(ratio.sel(client=clean).mean(skipna=True) - ratio.sel(client=wrong).mean(skipna=True))


def gamma_settles_first(run: Run) -> float:
    """Server epochs until lambda is settled minus those until gamma is, a late round."""
    epochs = run.cached(server_epochs, round=late(run, "globals")[-1])
    return float(epochs["lambda_settled"] - epochs["gamma_settled"])


def has_corrupted(run: Run) -> bool:
    """Whether clients of a run are corrupted."""
    return bool(np.any(run.experiment.clients.corrupted))
