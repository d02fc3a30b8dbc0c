"""Foreign models: idioms of people's own PyTorch code, small enough to compare with plain PyTorch.

A module of the zoo knows nothing of this project, and runs in plain PyTorch. `IDIOMS` has one case per idiom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.landscape.zoo_functions import Custom, CustomOnce, Normed, Spectral
from tests.landscape.zoo_views import CLASSES, SHAPE, InPlace, Shared, Strided, Viewed, ViewedBackward, ViewedInTraining


class Frozen(Viewed):
    """A frozen first layer and a frozen bias."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution.requires_grad_(False)
        self.head.bias.requires_grad_(False)


class Buffers(nn.Module):
    """Buffers of any type: whole, boolean, complex, double, shared, replaced in `forward` instead of changed."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(32, 5)
        self.head = nn.Linear(5, CLASSES)
        self.register_buffer("order", torch.arange(5).flip(0))
        self.register_buffer("mask", torch.tensor([True, False, True, True, True]))
        self.register_buffer("phase", torch.polar(torch.ones(5), torch.linspace(0.1, 1.3, 5)))
        self.register_buffer("scale", torch.tensor(0.75, dtype=torch.float64))
        self.register_buffer("same", self.scale)
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("absent", None)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x.flatten(1))[:, self.order] * self.mask
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.detach().mean(0)
            self.steps = self.steps + 1
        turned = (x * self.phase).real + (x * self.phase).imag.square()
        return self.head(torch.tanh(turned - self.mean) * self.same)


class Dropped(nn.Module):
    """Dropout as a layer and as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.drop = nn.Linear(32, 6), nn.Linear(6, CLASSES), nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(torch.tanh(self.body(x.flatten(1))))
        return self.head(F.dropout(x, 0.2, self.training))


class Nested(nn.Module):
    """Inputs in a dict of keyword arguments; layers in lists and dicts; outputs of a submodule in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.ModuleDict({"image": nn.Conv2d(2, 3, 3), "number": nn.Embedding(4, 3)})
        self.steps = nn.ModuleList([nn.Linear(15, 4), nn.Linear(4, CLASSES)])
        self.scales = nn.ParameterList([torch.ones(4), torch.ones(1)])

    def forward(self, image: Tensor, number: Tensor) -> Tensor:
        parts = {"image": self.enter["image"](image), "number": self.enter["number"](number)}
        x = torch.cat([parts["image"].view(len(image), -1), parts["number"]], 1)
        for step, scale in zip(self.steps, self.scales, strict=True):
            x = step(torch.tanh(x)) * (scale if scale.numel() > 1 else scale.sum())
        return x


class Paired(nn.Module):
    """Two inputs by position."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(32, 4), nn.Linear(3, 4)
        self.head = nn.Bilinear(4, 4, CLASSES)

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        return self.head(torch.tanh(self.left(x.flatten(1))), torch.tanh(self.right(other)))


class Recurrent(nn.Module):
    """LSTM over rows of the image, whose last state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 4, batch_first=True)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        _, (state, _) = self.lstm(x.transpose(1, 2).flatten(2))
        return self.head(state[-1])


class Attentive(nn.Module):
    """Multi-head attention and torch's fused attention function."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x.transpose(1, 2).flatten(2))
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return self.head(x.mean(1))


class Branching(nn.Module):
    """Control flow that depends on the data, a loop, and an early end for some samples."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.step, self.head = nn.Linear(32, 5), nn.Linear(5, 5), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        rows = []
        for row in self.body(x.flatten(1)):
            for _ in range(1 + int(row[0].item() > 0)):
                row = torch.tanh(self.step(row))
            rows.append(row if row.sum() > 0 else -2 * row)
        return self.head(torch.stack(rows))


class BatchNormed(nn.Module):
    """Batch normalisation with `view` behind it, as in official ResNets."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.convolution(x)))
        return self.head(F.avg_pool2d(x, 2).view(x.size(0), -1))


class Plain(nn.Module):
    """Two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(32, 5), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.body(x.flatten(1))))


def each(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of every sample."""
    return F.cross_entropy(outputs, targets, reduction="none")


def smoothed(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss of one's own, as most are written: the mean over the batch."""
    return F.cross_entropy(outputs, targets, label_smoothing=0.1) + 0.01 * outputs.square().mean()


@dataclass(frozen=True)
class Idiom:
    """One case of the zoo.

    Args:
        build: Returns the module.
        loss: Per sample, or the mean of a batch.
        inputs: "image", "dict" or "tuple".
        dtype: Of parameters and inputs.
    """

    build: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor] = each
    inputs: str = "image"
    dtype: torch.dtype = torch.float64

    def model(self) -> nn.Module:
        """The module, with the same initial values each time."""
        with torch.random.fork_rng():
            torch.manual_seed(3)
            model = self.build()
        return _converted(model, self.dtype)

    def samples(self, count: int, seed: int) -> tuple[Any, Tensor]:
        """Inputs as the module takes them, and classes (n,)."""
        source = torch.Generator().manual_seed(seed)
        image = torch.randn(count, *SHAPE, generator=source, dtype=self.dtype)
        number = torch.randint(4, (count,), generator=source)
        vector = torch.randn(count, 3, generator=source, dtype=self.dtype)
        targets = torch.randint(CLASSES, (count,), generator=source)
        kinds: dict[str, Any] = {"dict": {"image": image, "number": number}, "tuple": (image, vector)}
        return kinds.get(self.inputs, image), targets


def called(module: Callable[..., Tensor], inputs: Any) -> Tensor:
    """The module's output, by plain PyTorch, on a copy of the inputs as a data loader makes it."""
    if isinstance(inputs, dict):
        return module(**{name: leaf.clone() for name, leaf in inputs.items()})
    return module(*[leaf.clone() for leaf in inputs]) if isinstance(inputs, tuple) else module(inputs.clone())


def _converted(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Real parameters and buffers of single precision in `dtype`, complex ones likewise; others as they are."""
    kinds = {torch.float32: dtype, torch.complex64: torch.complex128 if dtype == torch.float64 else torch.complex64}
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.to(kinds.get(tensor.dtype, tensor.dtype))
    for layer in model.modules():
        if isinstance(layer, nn.LSTM):
            layer.flatten_parameters()
        if hasattr(layer, "weight_g"):  # set anew by its hook at every call
            layer.weight = layer.weight.to(dtype)
    return model


IDIOMS = {
    "view": Idiom(Viewed),
    "view_single": Idiom(Viewed, dtype=torch.float32),
    "view_in_training": Idiom(ViewedInTraining),
    "view_backward": Idiom(ViewedBackward),
    "strided": Idiom(Strided),
    "in_place": Idiom(InPlace),
    "shared": Idiom(Shared),
    "frozen": Idiom(Frozen),
    "buffers": Idiom(Buffers),
    "buffers_single": Idiom(Buffers, dtype=torch.float32),
    "dropout": Idiom(Dropped),
    "weight_norm": Idiom(Normed),
    "spectral_norm": Idiom(Spectral),
    "custom_function": Idiom(Custom),
    "once_differentiable": Idiom(CustomOnce),
    "nested": Idiom(Nested, inputs="dict"),
    "tuple": Idiom(Paired, inputs="tuple"),
    "lstm": Idiom(Recurrent),
    "attention": Idiom(Attentive),
    "branching": Idiom(Branching),
    "batch_norm": Idiom(BatchNormed),
    "double": Idiom(Plain),
    "mean_loss": Idiom(Plain, smoothed),
    "mean_module_loss": Idiom(Viewed, nn.CrossEntropyLoss()),
}

CONTIGUOUS = ("view", "view_single", "view_in_training", "view_backward", "strided", "frozen", "nested")
"""Those that do not work on images that lie channels-last; mean_module_loss has the same module as view."""
