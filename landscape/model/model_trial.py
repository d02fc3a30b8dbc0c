"""Trying a model: on spread samples, twice and in parts, so that a random or coupled one is refused by name."""

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat, without_fused_encoders
from landscape.model.copies import convert, copy_module
from landscape.model.families import BATCH_NORMS
from landscape.model.hooks import observed
from landscape.model.input_format import alike
from landscape.model.loss_trial import Trial
from landscape.model.samples import Samples, call_module
from landscape.model.value_watch import ValueWatch

SAMPLES = 64
"""Spread samples that a model and its loss are tried on."""

VALUES = 2**25
"""Most outputs of a trial; fewer samples are taken where one has many."""


@torch.no_grad()
def tried_outputs(flat: Flat, model: nn.Module, splits: list[Samples], *, coupled: bool = False) -> Trial:
    """Outputs of spread samples of a split in eval mode, and the targets of all splits of one shape.

    They are compared with those of parts: of single samples, where the model reads values into Python.

    Args:
        model: The module that `flat` is a copy of; another copy of it must have the same outputs at other parameters.
        splits: With samples; the first is the one whose inputs are passed.
        coupled: Samples may depend on each other.

    Raises:
        ValueError: If the model is random in eval mode, replaces a parameter, computes with values that do not follow
            its parameters, or its samples depend on each other; names the layer.
    """
    samples, name = splits[0], type(flat.module).__name__
    fresh = without_fused_encoders(convert(copy_module(model), flat.theta.dtype, flat.theta.device).eval())
    with torch.random.fork_rng(devices=[flat.theta.device] if flat.theta.is_cuda else []):
        with ValueWatch(flat.theta, cast := flat.cast(samples[:2].inputs)) as watch:
            few = flat.outputs(cast)
        count = max(1, min(SAMPLES, VALUES // max(1, few[0].numel()), len(samples)))
        rows = torch.linspace(0, len(samples) - 1, count).round().long().unique()
        spread, cut = samples[rows], max(1, len(rows) // 3)
        before = {key: buffer.clone() for key, buffer in flat.module.named_buffers()}
        outputs, first = _layer_outputs(flat, spread)
        again, second = _layer_outputs(flat, spread)
        changed = [key for key, buffer in flat.module.named_buffers() if not torch.equal(buffer, before[key])]
        pieces = (spread[:cut], spread[cut:]) if watch.fixed else spread.blocks(1)
        joined = torch.cat([flat.outputs(piece.inputs) for piece in pieces if len(piece)])
        flat.load(0.9 * flat.theta)
        for key, value in flat.layout.named(flat.theta).items():
            fresh.get_parameter(key).copy_(value)
        moved, expected = flat.outputs(cast), call_module(fresh, flat.cast(samples[:2].inputs))
    for key, view in flat.layout.named(flat.theta).items():
        if flat.module.get_parameter(key).data_ptr() != view.data_ptr():
            raise ValueError(
                f"the forward pass of {name} replaces its parameter {key!r} (by .data), so that it would stay at one "
                "model; use the new values in the pass, as F.linear(x, self.weight.clamp(-1, 1)) does."
            )
    if changed and not alike(outputs, again, 1):
        raise ValueError(
            f"{name} changes its buffer {changed[0]!r} in eval mode, and its outputs with it: two passes over the same "
            "samples differ. Change it only in training: if self.training: ..."
        )
    if not alike(outputs, again, 1):
        layer = next((key for key in first if not alike(first[key], second[key], 1)), "")
        raise ValueError(
            f"{name} is random in eval mode{f' (seen first in layer {layer!r})' if layer else ''}: two passes over the "
            "same samples differ. Draw only in training, as F.dropout(x, training=self.training) does."
        )
    if any(tensor.requires_grad for tensor in watch.others) or not alike(moved, expected):
        raise ValueError(
            f"{name} computes with values that do not follow its parameters: kept from an earlier pass, the `.data` or "
            "a view of a parameter in an attribute, or layers of the original module in a lambda, closure or hook. "
            "Read parameters and call layers by self, in every forward pass."
        )
    if not coupled and not alike(outputs, joined):
        raise ValueError(
            f"in {name} the output of a sample depends on others of its batch in eval mode{_statistics(flat)}, so "
            "its loss is not a mean over samples. Take all samples as one batch (coupled=True), or correct the model."
        )
    others = [split.targets for split in splits[1:] if split.targets.shape[1:] == samples.targets.shape[1:]]
    labels = samples.targets.index_select(0, rows.to(samples.targets.device))
    unique = {id(targets): targets for targets in (samples.targets, *others)}
    return Trial(outputs, torch.cat([labels, *(targets.to(labels) for targets in unique.values())]))


def _layer_outputs(flat: Flat, samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    """The outputs of a pass, and those of every layer without sub-layers that returns a tensor."""
    seen: dict[str, Tensor] = {}

    def note(name: str, layer: nn.Module, output: Tensor) -> None:
        if not list(layer.children()):
            seen.setdefault(name, output.detach().clone())

    return observed(flat.module, lambda: flat.outputs(samples.inputs), note), seen


def _statistics(flat: Flat) -> str:
    """Normalisations that take the statistics of the batch in eval mode too."""
    names = [
        name
        for name, layer in flat.module.named_modules()
        if isinstance(layer, BATCH_NORMS) and layer.running_mean is None
    ]
    return f" (layer {', '.join(names)} keeps no running statistics)" if names else ""
