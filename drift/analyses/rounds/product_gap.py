"""What averaging low-rank factors misses: the mean of the products B A against the product of the means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, DIMS, relative, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.model.adapters import Factors, factor_names
from landscape.model.model import plain
from landscape.model.products import adapted_layers, residual_name


@analysis("round", "layer", cost="record")
def product_gap(run: Run, *, rounds: Sequence[int] | None = None) -> xr.Dataset:
    """How far the mean of the clients' products B A is from the product of their mean factors, by round and layer.

    With weights p_k of the cohort and D_k = scale B_k A_k of a layer,

        gap = |sum_k p_k D_k - scale (sum_k p_k B_k) (sum_k p_k A_k)| = |scale sum_k p_k (B_k - B) (A_k - A)|

    in the Frobenius norm: the covariance of both factors over the clients. A server that averages factors, as FedIT
    does, errs by it in every round. It is zero where all clients have one A or one B. Layers add up in squares.

        relative = gap / |sum_k p_k D_k|,   of_step = gap / |sum_k p_k D_k - D_start|,
        missed = |sum_k p_k D_k - D_end|,   missed_of_step = missed / |sum_k p_k D_k - D_start|

    `missed` is what the server in fact did: zero for one that averages products.

    Source: Zhang et al. 2024 (FedIT); Sun et al. 2024 (FFA-LoRA); Singhal et al. 2024 (FedEx-LoRA); the covariance:
    this project (docs/howto-adapters.md).

    Args:
        run: A run whose clients train low-rank adapters, as peft names them.
        rounds: Rounds that kept their clients; negative ones count from the last. By default all.

    Returns:
        Dataset with gap, relative, of_step, missed and missed_of_step over round; layer_gap and layer_relative over
        round and layer.
        NaN where no client has weight, or the divisor is 0. Attribute scaled: 0 for a run that was opened without its
        task, so that the scales are not known and 1 stands for them.

    Raises:
        LookupError: If the parameters have no adapters, or those of AdaLoRA or DoRA; or no round, or one of those
            named, kept its clients.
    """
    pairs = factor_names(run.layout.slices())
    if not pairs:
        raise LookupError(
            f"run {run.name} has no low-rank factors: no parameter is called lora_A with a lora_B beside it. A factor "
            "that is frozen in the model, and not trained, has no gap."
        )
    if odd := [name for name in run.layout.slices() if ".lora_E" in name or ".lora_magnitude_vector" in name]:
        raise LookupError(f"run {run.name} has {odd[0]}: weights of AdaLoRA and DoRA are not W + scale B A.")
    indices = selected_rounds(run, "clients", rounds, None)
    layers = {} if run.without_data else dict(adapted_layers(run.task.model))
    rows = [_measure(run, run.round(index), pairs, layers) for index in run.context.track(indices)]
    coords: dict[str, list[Any]] = {"round": indices, "layer": [pair.layer for pair in pairs]}
    values = stack_rows(rows, ABOUT["product_gap"], coords, DIMS["product_gap"])
    scaled = int(all(pair.layer in layers for pair in pairs))
    return result(values, ABOUT["product_gap"], coords, analysis="product_gap", source="this project", scaled=scaled)


def _measure(run: Run, record: Round, pairs: list[Factors], layers: dict[str, Any]) -> dict[str, Any]:
    weights = relative(record.weights)
    if not len(record.ids) or bool(weights.isnan().any()):
        return {}
    models = {name: plain(record.kept(name)).double() for name in ("start", "end", "clients")}
    by_layer = [_norms(run, record, models, pair, layers.get(pair.layer), weights) for pair in pairs]
    squares = torch.tensor(by_layer, dtype=torch.float64).square()
    gap, mean, step, missed = squares.sum(0).sqrt()
    layer_gap, layer_mean = squares[:, :2].sqrt().T
    numbers = {"gap": gap, "relative": gap / mean, "of_step": gap / step}
    numbers |= {"missed": missed, "missed_of_step": missed / step}
    by_layer_gap = {"layer_gap": layer_gap.numpy(), "layer_relative": (layer_gap / layer_mean).numpy()}
    return {name: float(value) for name, value in numbers.items()} | by_layer_gap


def _norms(
    run: Run, record: Round, models: dict[str, Tensor], pair: Factors, layer: Any, weights: Tensor
) -> tuple[float, ...]:
    """Norms in one layer: of the gap, of the mean product, of its step from the start, and of what the end misses."""
    spans, shapes = run.layout.slices(), dict(run.layout.parameters)

    def factors(name_of_model: str) -> tuple[Tensor, Tensor]:
        a, b = (models[name_of_model][..., spans[name]].unflatten(-1, shapes[name]) for name in (pair.a, pair.b))
        axis = models[name_of_model].ndim
        return a.flatten(axis), b.flatten(axis)

    a, b = factors("clients")
    if a.shape[1] != b.shape[2]:
        raise LookupError(f"{pair.layer} of run {run.name} is a grouped convolution, whose product is no B A.")
    centred = [values - values[:1] for values in (a, b)]  # zero to the bit where all clients have one factor
    a0, b0 = (values - torch.einsum("k,kij->ij", weights, values) for values in centred)
    gap, mean = (torch.einsum("k,kor,kri->oi", weights, *both) for both in ((b0, a0), (b, a)))
    start, end = (left @ right for right, left in (factors("start"), factors("end")))
    scale = 1.0 if layer is None else float(layer.scaling.get(pair.adapter, next(iter(layer.scaling.values()))))
    missed = scale * (mean - end) - _residual_step(run, record, pair.layer, layer, mean)
    return *(float(scale * values.norm()) for values in (gap, mean, mean - start)), float(missed.norm())


def _residual_step(run: Run, record: Round, name: str, layer: Any, like: Tensor) -> Tensor | float:
    """What the server added to the frozen weight of a layer in the round, in the shape of its product; 0 for none."""
    key = None if layer is None else residual_name(name, layer)
    if key is None:
        return 0.0
    start, end = (
        run.task.layout.named_buffers(buffers)[key].double() for buffers in (record.start_buffers, record.end_buffers)
    )
    return (end - start).T if getattr(layer, "fan_in_fan_out", False) else (end - start).reshape(like.shape)
