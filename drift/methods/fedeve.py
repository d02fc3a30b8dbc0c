"""FedEve: a Kalman filter on the server that bridges client drift and period drift."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.plugins.bundles import shipped_bundles
from drift.store.row_matrices import rows
from landscape.model.layout import Layout


class FedEve(Method):
    """Clients start where the momentum predicts; prediction and observation are fused by their variances.

    With the observed mean pseudo-gradient D = sum_k p_k D_k, D_k = b - w_k, over m clients and d parameters:

        broadcast  b = w - server_lr M
        period     q = |M - D|^2 / (m d)
        client     r = sum_k |D_k - D|^2 / (m^2 d)
        gain       G = (s + q) / (s + q + r), and 1 where all three are 0
        update     M' = M + G (D - M),  w' = w - server_lr M',  s' = (1 - G) (s + q)

    M and s start at 0, as in the author's code (EVE-3). Clients without samples count neither in m nor in r; a round
    without any changes nothing. If a wrapper replaces the mean of the clients, D is that replacement, and r stays the
    spread of the clients around their own mean.

    Extras: gain, q_variance, r_variance and sigma (s', a variance) of the whole model; with gain = "layer" gain and
    sigma are means over parameters, and layer_gain has one gain per tensor.

    Unlike the paper: a Dirichlet partition is the capped one; FedEve's code has variant = "plain".

    Source: Shen et al., FedEve, section 3.4, equations 12 and 13, algorithm 1; options from the author's code.
    """

    moments: ClassVar[tuple[str, ...]] = ("momentum", "variance")
    bundles = shipped_bundles("fedeve")

    server_lr: float = Field(1.0, gt=0, description="eta_g, 1 in the paper")
    q_mode: Literal["innovation", "update_norm"] = Field(
        "innovation", description="equation 13; update_norm is the author's code, |D|^2 for |M - D|^2 (EVE-1)"
    )
    r_center: Literal["weighted", "uniform"] = Field(
        "weighted", description="equation 13; uniform is the author's code, the unweighted mean (EVE-2)"
    )
    sigma0: float = Field(0.0, ge=0, description="s before round 0, a variance; changes the first gains only (EVE-3)")
    fusion: Literal["kalman", "lookahead"] = Field(
        "kalman", description="equation 12; lookahead is equations 10 and 11 taken literally, b - G eta_g D (EVE-4)"
    )
    gain: Literal["scalar", "layer"] = Field("scalar", description="one gain, or one for each tensor (EVE-6)")
    predict: bool = Field(True, description="off: clients start at w, not at w - eta_g M")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """No momentum; variance () or, layer-wise, (L,)."""
        shape = (len(setting.task.layout.parameters),) if self.gain == "layer" else ()
        variance = torch.full(shape, self.sigma0, dtype=torch.float64, device=theta.device)
        return {"momentum": torch.zeros_like(theta), "variance": variance}

    def broadcast(self, state: State, theta: Tensor, index: int) -> Tensor:
        """The predicted model."""
        return theta - self.server_lr * state["momentum"] if self.predict else theta

    def momentum(self, state: State) -> Tensor | None:
        """The predicted update, client minus start: -M."""
        return -state["momentum"]

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """Observe, weigh the two drifts, fuse."""
        active = (cohort.weights > 0) & (cohort.sizes > 0)
        if not bool(active.any()):
            return Outcome(cohort.theta, combined.weights, state, _nothing(combined.extras))
        m, layout, layered = int(active.sum()), setting.task.layout, self.gain == "layer"
        mean, spread = _observed(cohort, active, uniform=self.r_center == "uniform")
        observed = mean + (cohort.weighted_mean - combined.theta).double()
        momentum = state["momentum"].double()
        innovation = observed - momentum
        period = observed if self.q_mode == "update_norm" else innovation

        counts = _sums(torch.ones_like(mean), layout)
        q_sums, r_sums = _sums(period.square(), layout) / m, _sums(spread, layout) / m**2
        pooled = {"q_variance": q_sums.sum() / counts.sum(), "r_variance": r_sums.sum() / counts.sum()}
        q, r = (q_sums / counts, r_sums / counts) if layered else (pooled["q_variance"], pooled["r_variance"])
        gain, variance = fuse(state["variance"], q, r)

        moved = gain.repeat_interleave(counts.to(torch.int64)) if layered else gain
        fused = momentum + moved * innovation
        if self.fusion == "kalman":
            end = cohort.theta.double() - self.server_lr * fused
        else:
            end = cohort.start.double() - self.server_lr * moved * observed
        share = counts / counts.sum() if layered else torch.ones_like(gain)
        extras = {**combined.extras, **pooled, "gain": (share * gain).sum(), "sigma": (share * variance).sum()}
        if layered:
            extras["layer_gain"] = gain
        after = {"momentum": fused.to(cohort.theta), "variance": variance}
        return Outcome(end.to(cohort.theta), combined.weights, after, extras)


def fuse(variance: Tensor, q: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Kalman gain and next variance from the carried variance, the period's and the clients'.

    gain = (s + q) / (s + q + r), 1 where that is 0 / 0; next = (1 - gain) (s + q). Equation 12.
    """
    predicted = variance + q
    total = predicted + r
    gain = torch.where(total > 0, predicted / total, torch.ones_like(total))
    return gain, (1 - gain) * predicted


def _observed(cohort: Cohort, active: Tensor, *, uniform: bool) -> tuple[Tensor, Tensor]:
    """Weighted mean of the pseudo-gradients (d,), and their summed squared deviations (d,), in float64."""
    clients = active.nonzero().flatten().tolist()
    mean = torch.zeros(len(cohort.start), dtype=torch.float64, device=cohort.start.device)
    centre, spread = mean.clone(), mean.clone()
    for client, model in zip(clients, rows(cohort.clients, clients), strict=True):
        pseudo = (cohort.start - model).double()
        mean.add_(pseudo, alpha=float(cohort.weights[client]))
        centre.add_(pseudo, alpha=1 / len(clients))
    centre = centre if uniform else mean
    for model in rows(cohort.clients, clients):  # a second pass, so that not all updates are held in float64 at once
        spread += ((cohort.start - model).double() - centre).square()
    return mean, spread


def _sums(values: Tensor, layout: Layout) -> Tensor:
    """Sums of values (d,) over each tensor of the layout, shape (L,)."""
    return torch.stack([values[span].sum() for span in layout.slices().values()])


def _nothing(extras: State) -> State:
    missing = torch.tensor(torch.nan, dtype=torch.float64)
    return {**extras, **dict.fromkeys(("gain", "q_variance", "r_variance", "sigma"), missing)}
