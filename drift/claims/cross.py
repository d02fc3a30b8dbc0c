"""What questions across the papers measure."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy import stats

from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.counterfactual.update_change import update_change
from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.curvature.drift_curvature import drift_curvature
from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import aggregation_weights
from drift.analyses.rounds.numbers import OF_RECORD
from drift.analyses.rounds.variance import drift_variances
from drift.claims.claim import Effects
from drift.claims.measures import ahead
from drift.claims.select_runs import pair_effects
from drift.methods.ima import IMA
from drift.runs.run import Run

ROUNDS = 12
"""Rounds of a run at which averaging is tried, or all clients are trained, evenly spaced."""

WINDOW = 5
"""Aggregates in IMA's mean."""

EXACT = 7
"""Averaging rounds at which all clients are trained again."""

FEW = 6
"""Rounds of a run at which curvature is computed."""


def averaging_rounds(run: Run) -> int:
    """First round from which IMA's whole window is one of its own rounds.

    Raises:
        LookupError: If the run is none of IMA.
    """
    if not isinstance(run.method, IMA):
        raise LookupError(f"run {run.name} was not trained by ima")
    return run.method.first_round(run.experiment.rounds) + WINDOW


def while_averaging(run: Run, other: Run, *, name: str, log: bool = False) -> float:
    """Mean of a number of the record of IMA over its averaging rounds minus that of its base.

    Args:
        run: Of IMA.
        other: Of its base.
        name: One of `OF_RECORD`.
        log: Whether it is the binary logarithm of the ratio instead.
    """
    first = averaging_rounds(run)
    series = [member.cached(OF_RECORD[name])[name] for member in (run, other)]
    means = [float(values.where(values["round"] >= first).mean(skipna=True)) for values in series]
    return float(np.log2(means[0] / means[1])) if log else means[0] - means[1]


def exact_while_averaging(run: Run, other: Run, *, name: str) -> float:
    """Binary logarithm of an exact variance of IMA over that of its base, means over the same averaging rounds."""
    rounds = _late_rounds(run, other)
    means = [float(nonzero(member.cached(counterfactual, rounds=rounds)[name]).mean()) for member in (run, other)]
    return float(np.log2(means[0] / means[1]))


def change_against_drift(*pair: Run) -> float:
    """`estimate_while_averaging` of IMA minus that of its base: whether equation 13 falls more than what it stands for.

    It is the binary logarithm of the ratio of two ratios, IMA over its base: of the estimates, and of the variances.
    """
    return estimate_while_averaging(*pair, member=0) - estimate_while_averaging(*pair, member=1)


def estimate_while_averaging(*pair: Run, member: int) -> float:
    """Binary logarithm of FedEve's estimate of the sampling-drift variance over the exact one, at the same rounds.

    Args:
        pair: A run of IMA, and one of its base.
        member: 0 for that of IMA, 1 for that of its base.
    """
    parts = pair[member].cached(counterfactual, rounds=_late_rounds(*pair))
    return float(np.log2(parts["sampling_estimate"].mean() / nonzero(parts["sampling_variance"]).mean()))


def carried(*pair: Run, member: int) -> float:
    """Fraction of a round's squared sampling drift that the next start undoes.

    It is half of its term in the update change, -2 <S, F' - F>, over |S|^2; 1 means that all is undone.

    Args:
        pair: A run of IMA, and one of its base.
        member: 0 for that of IMA, 1 for that of its base, at the same rounds.
    """
    parts = pair[member].cached(update_change, rounds=_late_rounds(*pair))
    return float(parts["carried"].mean() / nonzero(parts["sampling_before"]).mean() / 2)


def nonzero(values: xr.DataArray) -> xr.DataArray:
    """The same numbers of rounds, for a ratio.

    Raises:
        LookupError: If all are zero, as sampling drift is under full participation.
    """
    if not values.any():
        raise LookupError(f"{values.name} is zero in every round, as where all clients take part, so it has no ratio")
    return values


def _late_rounds(*runs: Run) -> list[int]:
    """A few rounds in which the first, of IMA, averages, and whose models and those of the round before all kept."""
    stored = set.intersection(*(set(run.kept("globals")) for run in runs))
    rounds = [index for index in sorted(stored) if index - 1 in stored and index > averaging_rounds(runs[0])]
    if not rounds:
        raise LookupError(
            f"run {runs[0].name} kept no two successive models while it averaged; train with --set keep.globals=all"
        )
    return evenly_spaced(rounds, EXACT)


def margin_changed(runs: Sequence[Run]) -> Effects:
    """FedEve's margin over FedAvg where IMA averages, minus its margin where it does not, by seed."""
    averaged = pair_effects(runs, "fedeve+ima", "ima", ahead)
    without = pair_effects(runs, "fedeve", "fedavg", ahead)
    return {seed: averaged[seed] - without[seed] for seed in averaged if seed in without}


def window_gains(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Rounds, and the loss that the mean of the last five global models gains there over the last, nats."""
    rounds = evenly_spaced([index for index in run.kept("globals") if index >= 4], ROUNDS)
    effects = run.cached(what_if, rounds=rounds, windows=[5], points=2, steps=0)
    return effects["round"].values, effects["gain"].sel(variant="ima-5").values


def paying_from(rounds: np.ndarray, gains: np.ndarray) -> float:
    """First round from which on all gains are positive; NaN if the last one is not."""
    positive = np.flip(np.logical_and.accumulate(np.flip(gains > 0)))
    return float(rounds[positive][0]) if positive.any() else float("nan")


def start_after_critical(run: Run) -> float:
    """Round from which averaging pays minus the critical point of coherence, as a fraction of the rounds."""
    return (paying_from(*window_gains(run)) - float(run.cached(coherence)["critical_point"])) / run.experiment.rounds


def late_gain(run: Run) -> float:
    """Mean of `window_gains` over the second half of the rounds minus that over the first, nats."""
    _, gains = window_gains(run)
    return float(gains[len(gains) // 2 :].mean() - gains[: len(gains) // 2].mean())


def gain_and_coherence(run: Run) -> float:
    """Rank correlation of `window_gains` and the mean cosine of the 11 rounds around."""
    rounds, gains = window_gains(run)
    cosines = run.cached(coherence)["mean_cosine"]
    near = [float(cosines.where(abs(cosines["round"] - index) <= 5).mean()) for index in rounds]
    return float(stats.spearmanr(near, gains).statistic)


def costs(run: Run, kind: str = "client") -> xr.Dataset:
    """`drift_curvature` at a few rounds that kept their clients, of the exact sampling drift or of what is recorded."""
    kinds = ["sampling"] if kind == "sampling" else ["client", "change", "random"]
    return run.cached(drift_curvature, rounds=_spread(run, run.kept("clients"), FEW), kinds=kinds)


def share_ahead(run: Run, *, kind: str) -> float:
    """A drift's share in the leading eigenspace minus that of random directions as long as client drift."""
    share, random = (costs(run, name)["share"].sel(kind=name).mean("round") for name in (kind, "random"))
    return float(share - random)


def quadratic_error(run: Run, *, kind: str) -> float:
    """Second-order cost minus the measured one, over the measured one, of means over rounds."""
    values = costs(run, kind).sel(kind=kind).mean("round")
    return float(values["quadratic"] / values["cost"] - 1)


def exact_terms(run: Run) -> xr.Dataset:
    """`counterfactual` at a few rounds that kept their globals."""
    return run.cached(counterfactual, rounds=_spread(run, run.kept("globals"), ROUNDS))


def _spread(run: Run, stored: Sequence[int], count: int) -> list[int]:
    """The stored rounds nearest to the ends of `count` equal parts of a run.

    Raises:
        LookupError: If there is none.
    """
    if not stored:
        raise LookupError(f"run {run.name} kept no models; train with --set keep.clients=all")
    ends = [run.experiment.rounds * number // count - 1 for number in range(1, count + 1)]
    return sorted({min(stored, key=lambda index: abs(index - end)) for end in ends} - {0})


def term_cost(run: Run, *, term: str) -> float:
    """Mean loss that an exact part of the step costs, nats."""
    return float(exact_terms(run)["loss_cost"].sel(part=term).mean("round"))


def estimate_ratio(run: Run, *, name: str) -> float:
    """Binary logarithm of `estimate_over_exact`."""
    return float(np.log2(estimate_over_exact(exact_terms(run), name)))


def estimate_over_exact(terms: xr.Dataset, name: str) -> float:
    """FedEve's estimate over the exact variance, both means over rounds, without the known bias for client drift.

    Equation 13 sums squared distances to the mean of m clients and divides by m; the exact variance has all K. For
    equal weights the expectation is (1 - 1/m) / (1 - 1/K) of the exact one, by which the estimate is divided.
    """
    known = terms[[f"{name}_estimate", f"{name}_variance", "cohort", "clients"]].dropna("round")
    biased = (1 - 1 / known["cohort"]) / (1 - 1 / known["clients"]) if name == "client" else 1.0
    estimates = (known[f"{name}_estimate"] / biased).mean("round")
    return float(estimates / nonzero(known[f"{name}_variance"]).mean("round"))


def gamma_and_drift(run: Run) -> float:
    """Rank correlation over rounds of the learned gamma and the client-drift variance."""
    gamma, drift = run.cached(aggregation_weights)["gamma"], run.cached(drift_variances)["client_variance"]
    return float(stats.spearmanr(gamma.values, drift.values, nan_policy="omit").statistic)
