"""Questions across the papers, which none of them could ask alone; answered as claims are, without a direction.

They are judged on the items of a campaign that name them; docs/findings.md has the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.claims import cross_measures as measures
from drift.claims.claim import Claim, Effects
from drift.claims.cross_measures import ahead, exact_while_averaging, while_averaging, with_ima
from drift.claims.select_runs import method_effects, pair_effects
from drift.runs.run import Run

Measure = Callable[[Sequence[Run]], Effects]


def _question(name: str, statement: str, effect: str, unit: str, measure: Measure) -> Claim:
    return Claim(f"cross-{name}", "across the papers", statement, effect, unit, measure)


def _method(label: str, measure: Callable[[Run], float]) -> Measure:
    return lambda runs: method_effects(runs, label, measure)


_CHANGE = while_averaging("change_variance", drift_variances, log=True)
_CLIENT = while_averaging("client_variance", drift_variances, log=True)
_GAIN = while_averaging("gain", drift_variances)
_COSINE = while_averaging("mean_cosine", coherence)

_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ima": ("IMA", {}),
    "alone": ("averaging with FedAvg's rates", {"late": "na"}),
    "late": ("IMA's late rates without averaging", {"window": 1}),
}
"""What is compared with FedAvg: IMA, and its two parts on their own."""

_AVERAGING = tuple(
    (f"{name}-{key}", f"{what}, {title}", f"{title} {how} FedAvg, {when}", unit, with_ima(measure, **options))
    for key, what, how, when, unit, measure in (
        ("change", "update change", "over", "while it averages", "log2", _CHANGE),
        ("client", "client drift by equation 13", "over", "while it averages", "log2", _CLIENT),
        ("coherence", "mean cosine of the clients", "minus", "while it averages", "1", _COSINE),
        ("gain", "Kalman gain of the updates", "minus", "while it averages", "1", _GAIN),
        ("accuracy", "accuracy", "minus", "last 10 evaluated rounds", "points", ahead),
    )
    for name, (title, options) in _VARIANTS.items()
)

_SAMPLING = tuple(
    (
        f"{name}-{key}",
        f"{what}, {title}",
        f"{title} over FedAvg, seven rounds while it averages",
        "log2",
        with_ima(exact_while_averaging(variable), **options),
    )
    for key, what, variable in (
        ("sampling", "sampling drift, exact", "sampling_variance"),
        ("sampling-estimate", "the same by equation 13", "sampling_estimate"),
        ("client-exact", "client drift, exact", "client_variance"),
    )
    for name, (title, options) in _VARIANTS.items()
) + tuple(
    (
        f"carried-{name}",
        f"sampling drift that the next start undoes, {title}",
        "its term in the update change over the squared sampling drift, seven rounds while IMA averages",
        "fraction",
        measures.carried(label, late="na"),
    )
    for name, title, label in (("fedavg", "FedAvg", "fedavg"), ("alone", "averaging with FedAvg's rates", "ima"))
)

_FEDEVE = (
    ("fedeve-gain", "FedEve's gain", "FedEve with IMA minus FedEve while it averages", "1", with_ima(_GAIN, "fedeve")),
    (
        "fedeve-change",
        "update change from FedEve's prediction",
        "variance, FedEve with IMA over FedEve while it averages",
        "log2",
        with_ima(_CHANGE, "fedeve"),
    ),
    *(
        (
            f"fedeve-{key}",
            f"{what} drift, exact",
            "FedEve with IMA over FedEve, seven rounds while it averages",
            "log2",
            with_ima(exact_while_averaging(variable), "fedeve"),
        )
        for key, what, variable in (
            ("sampling", "sampling", "sampling_variance"),
            ("client-exact", "client", "client_variance"),
        )
    ),
    *(
        (
            f"fedeve-estimate-{key}",
            f"FedEve's own estimate of sampling drift, {title}",
            "update change from its prediction over the exact variance, seven rounds while IMA averages",
            "log2",
            with_ima(measures.estimate_while_averaging(place), "fedeve"),
        )
        for key, title, place in (("alone", "FedEve", 1), ("ima", "FedEve with IMA", 0))
    ),
    (
        "fedeve-accuracy",
        "accuracy without IMA",
        "FedEve minus FedAvg, last 10 evaluated rounds",
        "points",
        lambda runs: pair_effects(runs, "fedeve", "fedavg", ahead),
    ),
    (
        "ima-scaffold",
        "IMA beside SCAFFOLD",
        "accuracy of IMA minus that of SCAFFOLD, last 10 evaluated rounds",
        "points",
        lambda runs: pair_effects(runs, "ima", "scaffold", ahead),
    ),
    (
        "fedeve-with-ima",
        "accuracy on top of FedEve",
        "FedEve with IMA minus FedEve, last 10 evaluated rounds",
        "points",
        with_ima(ahead, "fedeve"),
    ),
    (
        "margin-changed",
        "FedEve's margin",
        "FedEve minus FedAvg, with IMA on both minus without",
        "points",
        measures.margin_changed,
    ),
)

_START = (
    (
        "start-critical",
        "when averaging begins to pay",
        "first round from which a window of five has the smaller loss minus coherence's critical point, over R",
        "fraction",
        _method("fedavg", measures.start_after_critical),
    ),
    (
        "window-late",
        "what averaging gains late",
        "loss gained by a window of five: second half of training minus first",
        "nats",
        _method("fedavg", measures.late_gain),
    ),
    (
        "gain-coherence",
        "gain and coherence",
        "rank correlation over rounds of the loss gained by a window of five and the mean cosine",
        "1",
        _method("fedavg", measures.gain_and_coherence),
    ),
)

_LOSS = tuple(
    (f"{part}-{name}", title.format(moved), effect, unit, _method("fedavg", measure(part)))
    for name, title, effect, unit, measure in (
        (
            "sharp",
            "{} in the ten sharpest directions",
            "share of its square in the eigenspace minus that of random directions, FedAvg",
            "fraction",
            measures.share_ahead,
        ),
        (
            "quadratic",
            "cost of {}",
            "second-order cost g'd + d'Hd/2 over the measured one, FedAvg",
            "log2",
            measures.quadratic_error,
        ),
    )
    for part, moved in (
        ("client", "client drift"),
        ("sampling", "exact sampling drift"),
        ("change", "the update change"),
    )
)

_EXACT = (
    (
        "cost-sampling",
        "what sampling drift costs a round",
        "loss of FedAvg's model minus that without it, exact",
        "nats",
        _method("fedavg", measures.part_cost("sampling")),
    ),
    (
        "cost-local",
        "what local training beyond the first gradient costs a round",
        "loss of FedAvg's model minus that without the local part",
        "nats",
        _method("fedavg", measures.part_cost("local")),
    ),
    *(
        (
            f"estimate-{part}",
            f"FedEve's estimate of {part} drift",
            "equation 13 over the exact variance, FedAvg",
            "log2",
            _method("fedavg", measures.estimate_ratio(part)),
        )
        for part in ("sampling", "client")
    ),
    (
        "gamma-drift",
        "FedLAW's gamma and client drift",
        "rank correlation over rounds of the learned gamma and the client-drift variance",
        "1",
        _method("fedlaw", measures.gamma_and_drift),
    ),
)

SECTIONS: dict[str, tuple[Claim, ...]] = {
    name: tuple(_question(*row) for row in rows)
    for name, rows in {
        "averaging": _AVERAGING,
        "sampling": _SAMPLING,
        "fedeve": _FEDEVE,
        "start": _START,
        "loss": _LOSS,
        "exact": _EXACT,
    }.items()
}
"""Questions by section of docs/findings.md."""

QUESTIONS = tuple(claim for claims in SECTIONS.values() for claim in claims)
