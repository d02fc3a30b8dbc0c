"""Trying a model: on spread samples, twice and in parts, so that a random or coupled one is refused by name."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.families import BATCH_NORMS
from landscape.model.input_format import alike
from landscape.model.loss_trial import Trial
from landscape.model.samples import Samples
from landscape.model.value_watch import ValueWatch, address

SAMPLES = 64
"""Spread samples that a model and its loss are tried on."""

VALUES = 2**25
"""Most outputs of a trial; fewer samples are taken where one has many."""


@torch.no_grad()
def tried_outputs(flat: Flat, splits: list[Samples], *, coupled: bool = False) -> Trial:
    """Outputs of spread samples of a split in eval mode, and the targets of all splits of one shape.

    They are compared with those of parts: of single samples, where the model reads values into Python.

    Args:
        splits: With samples; the first is the one whose inputs are passed.
        coupled: Samples may depend on each other.

    Raises:
        ValueError: If the model is random in eval mode, replaces a parameter, keeps values made of its parameters,
            computes with those of another module, or its samples depend on each other; names the layer.
    """
    samples, fresh = splits[0], flat.anew()
    with torch.random.fork_rng(devices=[flat.theta.device] if flat.theta.is_cuda else []):
        with ValueWatch(flat.theta, cast := flat.cast(samples[:2].inputs)) as watch:
            few = flat.outputs(cast)
        _require_own_tensors(flat, watch.others)
        count = max(1, min(SAMPLES, VALUES // max(1, few[0].numel()), len(samples)))
        rows = torch.linspace(0, len(samples) - 1, count).round().long().unique()
        spread, cut = samples[rows], max(1, len(rows) // 3)
        before = {key: buffer.clone() for key, buffer in flat.module.named_buffers()}
        outputs, first = _layer_outputs(flat, spread)
        again, second = _layer_outputs(flat, spread)
        changed = [key for key, buffer in flat.module.named_buffers() if not torch.equal(buffer, before[key])]
        pieces = (spread[:cut], spread[cut:]) if watch.fixed else spread.blocks(1)
        parts = torch.cat([flat.outputs(part.inputs) for part in pieces if len(part)])
        for copy in (fresh, flat):
            copy.load(0.9 * flat.theta)
        moved = [copy.outputs(samples[:2].inputs) for copy in (fresh, flat)]
    name = type(flat.module).__name__
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
    if not alike(*moved):
        raise ValueError(
            f"{name} keeps values that it made of its parameters in an earlier pass: at other parameters its outputs "
            "are not those of a new copy. Make them anew in every forward pass."
        )
    if not coupled and not alike(outputs, parts):
        raise ValueError(
            f"in {name} the output of a sample depends on others of its batch in eval mode{_statistics(flat)}, so "
            "its loss is no mean over samples. Take all samples as one batch with coupled=True, or mend the model."
        )
    others = [split.targets for split in splits[1:] if split.targets.shape[1:] == samples.targets.shape[1:]]
    own = samples.targets.index_select(0, rows.to(samples.targets.device))
    unique = {id(targets): targets for targets in (samples.targets, *others)}
    return Trial(outputs, torch.cat([own, *(targets.to(own) for targets in unique.values())]))


def _require_own_tensors(flat: Flat, others: list[Tensor]) -> None:
    """Refuse tensors of other modules that are trained, and copies of parameters that do not follow them."""
    for tensor in others:
        if address(tensor) == address(flat.buffers):
            continue
        whole = tensor.new_empty(0).set_(tensor.untyped_storage()) if address(tensor) else tensor
        values = flat.layout.named(flat.theta).values()
        if tensor.requires_grad or any(torch.equal(whole, part.flatten()) for part in values if part.numel() > 1):
            raise ValueError(
                f"{type(flat.module).__name__} computes with a tensor {tuple(tensor.shape)} that is no parameter of "
                "its copies: a lambda, closure or hook calls layers of the original, or an attribute holds the `.data` "
                "or a view of a parameter. Call layers and read parameters by self in forward."
            )


def _layer_outputs(flat: Flat, samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    """The outputs of a pass, and those of every layer without sub-layers that returns a tensor."""
    seen: dict[str, Tensor] = {}

    def note(name: str) -> object:
        def hook(layer: nn.Module, received: object, output: object) -> None:
            if isinstance(output, Tensor):
                seen.setdefault(name, output.detach().clone())

        return hook

    layers = [(name, layer) for name, layer in flat.module.named_modules() if not list(layer.children())]
    handles = [layer.register_forward_hook(note(name)) for name, layer in layers]
    try:
        return flat.outputs(samples.inputs), seen
    finally:
        for handle in handles:
            handle.remove()


def _statistics(flat: Flat) -> str:
    """Normalisations that take the statistics of the batch in eval mode too."""
    names = [
        name
        for name, layer in flat.module.named_modules()
        if isinstance(layer, BATCH_NORMS) and layer.running_mean is None
    ]
    return f" (layer {', '.join(names)} keeps no running statistics)" if names else ""
