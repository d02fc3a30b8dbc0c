"""Batch normalisation, residual sum and ReLU of sweeps as parts of the convolution before them.

In eval mode a normalisation is y = s (x - mean) + beta with s = gamma / sqrt(variance + eps) per channel. Behind a
convolution with weight W and bias b that is a convolution with s W and s (b - mean) + beta, computed once per point.
oneDNN adds another tensor to its output and takes the positive part before it writes it, so that no pass over the
images is left. Which values only the next operation reads is known from the graph of the model (`torch.fx`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from landscape.model.bound_model import Flat
from landscape.model.hooks import hooked
from landscape.model.samples import Samples
from landscape.probe import close_outputs
from landscape.sweep.layer_calls import trace_calls
from landscape.sweep.layer_forward import overridden, replace_forward, replacement
from landscape.sweep.onednn_calls import Packs, convolution, convolution_places

ADDS: tuple[object, ...] = (operator.add, operator.iadd, torch.add, "add", "add_")

IN_PLACE: tuple[object, ...] = (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.setitem)

RELUS: tuple[object, ...] = (F.relu, F.relu_, torch.relu, torch.relu_, "relu", "relu_")


@torch.no_grad()
def fold_norms(flat: Flat, probe: Samples, without: nn.Module | None = None) -> list[FoldedConvolution]:
    """Fold the normalisations that follow a convolution directly, for good; returns the forwards that took their place.

    Nothing changes on other devices or dtypes, in models with hooks or whose graph depends on values, in training, or
    if outputs on `probe` differ beyond rounding.

    Args:
        without: A convolution that is not changed, such as one that the points of a sweep share.
    """
    module, kinds = flat.module, {type(layer) for layer in flat.module.modules()}
    if flat.theta.device.type != "cpu" or flat.theta.dtype != torch.float32 or not flat.habits.channels_last:
        return []
    if not {nn.Conv2d, nn.BatchNorm2d} <= kinds or not torch.backends.mkldnn.is_available():
        return []
    plain, inputs = flat.outputs(probe.inputs), flat.cast(probe.inputs)
    if not bool(torch.isfinite(plain).all()) or not isinstance(inputs, Tensor) or replacement(module) is not None:
        return []
    graph = _traced(module, inputs) if trace_calls(flat, probe.inputs).fixed else None
    if graph is None:
        return []
    folded = [
        fused
        for node in list(graph.graph.nodes)
        if _layer(graph, node) is not without and (fused := _fold(graph, node)) is not None
    ]
    if not folded:
        return []
    graph.recompile()
    replace_forward(module, _FoldedForward(module, graph, [fused.norm for fused in folded]))
    if not close_outputs(flat.outputs(probe.inputs), plain):
        replace_forward(module, None)
        return []
    for fused in folded:
        replace_forward(fused.convolution, None)  # in training torch's own, as in earlier versions
    return folded


class FoldedConvolution(nn.Module):
    """A convolution, the normalisation behind it, and where there are a sum with another tensor and ReLU.

    Attributes:
        cache: Folded weight and bias, and the weight in the order of oneDNN, by the address of the plain weight. The
            owner clears it when values change.
    """

    def __init__(self, convolution: nn.Conv2d, norm: nn.BatchNorm2d, activation: str) -> None:
        super().__init__()
        self._layers = (convolution, norm)  # no submodules: they belong to the model
        self.activation = activation
        self.where = convolution_places(convolution)
        self.cache: dict[int, tuple[Tensor, Tensor, Packs]] = {}

    @property
    def convolution(self) -> nn.Conv2d:
        """The convolution."""
        return self._layers[0]

    @property
    def norm(self) -> nn.BatchNorm2d:
        """The normalisation."""
        return self._layers[1]

    def forward(self, inputs: Tensor, summand: Tensor | None = None) -> Tensor:
        """The activation of the normalised convolution plus the summand."""
        address = self.convolution.weight.data_ptr()
        if address not in self.cache:
            self.cache[address] = (*self._fold(), {})
        weight, bias, packs = self.cache[address]
        return convolution(inputs, weight, bias, self.where, packs, self.activation, summand)

    def _fold(self) -> tuple[Tensor, Tensor]:
        layer, norm = self.convolution, self.norm
        mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
        scale = (variance + norm.eps).rsqrt()
        scale = scale if norm.weight is None else scale * norm.weight
        shift = -mean if layer.bias is None else layer.bias - mean
        bias = shift * scale if norm.bias is None else torch.addcmul(norm.bias, shift, scale)
        return layer.weight * scale[:, None, None, None], bias


class _FoldedForward:
    """The forward of a model by its graph with folded layers; while a normalisation trains, the model's own."""

    def __init__(self, module: nn.Module, graph: fx.GraphModule, norms: Sequence[nn.Module]) -> None:
        self.own: Callable[..., Tensor] = type(module).forward.__get__(module)
        self.graph = graph
        self.norms = norms

    def __call__(self, inputs: Tensor) -> Tensor:
        if any(norm.training for norm in self.norms):
            return self.own(inputs)
        return self.graph.forward(inputs)


def _traced(module: nn.Module, inputs: Tensor) -> fx.GraphModule | None:
    """The graph of a model, with the shape of each tensor as `meta["shape"]`; None if it has none, or hooks.

    A model has none if its operations depend on values, or if it uses parameters outside of layers.
    """
    if any(map(hooked, module.modules())):
        return None
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    try:
        with ExitStack() as overrides:  # of this private copy only: fx.symbolic_trace would disturb other threads
            for name, layer in module.named_modules():
                if not list(layer.children()):
                    overrides.enter_context(overridden(layer, partial(_recorded, tracer, name)))
            graph.output(module(fx.Proxy(graph.placeholder("inputs"), tracer)).node)
        traced = fx.GraphModule(module, graph)
        _Shapes(traced).run(inputs)
    except Exception:  # noqa: BLE001 - code of users runs on stand-ins for tensors, which may raise anything
        return None
    return traced


def _recorded(tracer: fx.proxy.TracerBase, name: str, *args: Any, **kwargs: Any) -> fx.Proxy:
    """What a layer returns for stand-ins of tensors: the node of its call."""
    return tracer.create_proxy("call_module", name, args, kwargs)


class _Shapes(fx.Interpreter):
    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        n.meta["shape"] = value.shape if isinstance(value, Tensor) else None
        return value


def _fold(graph: fx.GraphModule, node: fx.Node) -> FoldedConvolution | None:
    """Replace a convolution and what follows it by one node; None if no normalisation follows it directly."""
    after = _only_user(node)
    convolution, norm = _layer(graph, node), _layer(graph, after)
    if after is None or not _is_foldable(convolution, norm) or len(node.args) != 1 or len(node.meta["shape"]) != 4:
        return None
    chain, summand, total = [node, after], _summand(after), _only_user(after)
    if total is None or summand is None or _changes_between(graph, node, total):
        summand, place = None, node
    else:
        chain, place = [*chain, total], total
    positive = _only_user(chain[-1])
    if positive is not None and (positive.target in RELUS or type(_layer(graph, positive)) is nn.ReLU):
        chain.append(positive)
    activation = "relu" if chain[-1] is positive else "none"
    fused = FoldedConvolution(cast(nn.Conv2d, convolution), cast(nn.BatchNorm2d, norm), activation)
    graph.add_submodule(f"folded_{node.name}", fused)
    with graph.graph.inserting_before(place):
        arguments = (node.args[0],) if summand is None else (node.args[0], summand)
        new = graph.graph.call_module(f"folded_{node.name}", arguments)
    new.meta["shape"] = node.meta["shape"]
    chain[-1].replace_all_uses_with(new)
    for replaced in reversed(chain):
        graph.graph.erase_node(replaced)
    return fused


def _is_foldable(convolution: nn.Module | None, norm: nn.Module | None) -> bool:
    if type(convolution) is not nn.Conv2d or type(norm) is not nn.BatchNorm2d:
        return False
    plain = convolution.padding_mode == "zeros" and not isinstance(convolution.padding, str)
    return plain and norm.running_mean is not None and norm.running_var is not None


def _layer(graph: fx.GraphModule, node: fx.Node | None) -> nn.Module | None:
    """The layer that a node calls, if it calls one."""
    return graph.get_submodule(str(node.target)) if node is not None and node.op == "call_module" else None


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _summand(node: fx.Node) -> fx.Node | None:
    """The other tensor of the sum that alone uses a node, if it has the same shape."""
    total = _only_user(node)
    if total is None or total.target not in ADDS or len(total.args) != 2 or total.kwargs:
        return None
    other = total.args[1] if total.args[0] is node else total.args[0]
    same = isinstance(other, fx.Node) and other is not node and other.meta["shape"] == node.meta["shape"]
    return cast(fx.Node, other) if same else None


def _changes_between(graph: fx.GraphModule, first: fx.Node, last: fx.Node) -> bool:
    """Whether an operation between two nodes may change a tensor in place, so that `first` cannot move to `last`."""
    node = first.next
    while node is not last:
        layer, name = _layer(graph, node), getattr(node.target, "__name__", str(node.target))
        in_place = getattr(layer, "inplace", False) or node.kwargs.get("inplace", False)
        by_name = node.op != "call_module" and (name.endswith("_") or node.target in IN_PLACE)
        if in_place or by_name or (layer is not None and replacement(layer) is torch.relu_):
            return True
        node = node.next
    return False
