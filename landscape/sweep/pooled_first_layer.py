"""The shared first layer with the 2 x 2 max-pool and the ReLU behind it, in one pass over memory.

The output of a first convolution is the largest tensor of a sweep and too large for the inner caches. Its values are
stored by their place in the 2 x 2 windows of the pool, so that the maximum over a window is the maximum of four
quarters: only quarters are written, and those stay in the cache. The values equal those of the layers one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.sweep.first_layer import FirstLayer
from landscape.sweep.layer_forward import override, release
from landscape.sweep.onednn_layers import is_halving_pool


class PooledFirstLayer(FirstLayer):
    """A `FirstLayer` that also computes the layers behind it, whose own forwards then return what they receive.

    Args:
        flat, name, basis, output_bytes: As in `FirstLayer`; the layer is a convolution on channels-last images.
        behind: The 2 x 2 max-pool behind the layer, and the ReLU behind that if there is one.
    """

    def __init__(
        self, flat: Flat, name: str, basis: Tensor, output_bytes: int = 0, behind: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__(flat, name, basis, output_bytes)
        self._behind = behind

    def at(self, coefficients: Sequence[float]) -> None:
        """Let the last of the layers return its output at coefficients (n,)."""
        super().at(coefficients)
        for layer in self._behind:
            override(layer, _unchanged)

    def release(self) -> None:
        """Restore the forwards of all layers."""
        super().release()
        for layer in self._behind:
            release(layer)

    def _arranged(self, output: Tensor) -> Tensor:
        """Output (n, c, h, w) by place in a window: (4, n, h / 2, w / 2, c); a last odd row or column is left out."""
        n, channels, height, width = output.shape
        rows = output.permute(0, 2, 3, 1)[:, : height // 2 * 2, : width // 2 * 2]
        windows = rows.unflatten(2, (-1, 2)).unflatten(1, (-1, 2)).permute(2, 4, 0, 1, 3, 5)
        return windows.reshape(4, n, height // 2, width // 2, channels)

    def _sum(self, first: Tensor, output: Tensor, coefficient: float) -> Tensor:
        quarter = self._buffer("value")[1]
        largest = torch.add(first[0], output[0], alpha=coefficient, out=self._buffer("value")[0])
        for place in range(1, 4):
            torch.add(first[place], output[place], alpha=coefficient, out=quarter)
            torch.maximum(largest, quarter, out=largest)
        return self._images(largest)

    def _whole(self, value: Tensor) -> Tensor:
        for place in range(1, 4):
            torch.maximum(value[0], value[place], out=value[0])
        return self._images(value[0])

    def _images(self, rows: Tensor) -> Tensor:
        """Channels-last images (n, c, h / 2, w / 2) of rows, behind the ReLU if there is one."""
        if len(self._behind) > 1:
            rows.relu_()
        return rows.permute(0, 3, 1, 2)


@torch.no_grad()
def pooled_first_layer(
    flat: Flat, shared: FirstLayer, chain: Sequence[nn.Module], basis: Tensor, probe: Samples
) -> FirstLayer:
    """`shared` with the max-pool (and ReLU) behind it, or unchanged where there is none or outputs on `probe` differ.

    A single model of the basis leaves it unchanged too: there is nothing to sum, and metrics of training would pay for
    the comparison in each round. The values have the same bits either way.

    Args:
        chain: Layers that the model calls one after the other, without anything between; empty if it does more.
    """
    behind = [] if len(basis) == 1 else _behind(shared.layer, chain)
    if not behind or not flat.habits.channels_last or flat.theta.device.type != "cpu":
        return shared
    pooled = PooledFirstLayer(flat, shared.name, basis, shared.output_bytes, behind)
    rows = ([1.0, *[0.0] * (len(basis) - 1)], [0.5] * len(basis))
    same = all(torch.equal(_output(pooled, row, flat, probe), _output(shared, row, flat, probe)) for row in rows)
    return pooled if same else shared


def _behind(layer: nn.Module, chain: Sequence[nn.Module]) -> list[nn.Module]:
    places = [place for place, called in enumerate(chain) if called is layer]
    if len(places) != 1 or not isinstance(layer, nn.Conv2d):
        return []
    pool, relu = (*chain[places[0] + 1 : places[0] + 3], None, None)[:2]
    if not isinstance(pool, nn.MaxPool2d) or not is_halving_pool(pool):
        return []
    return [pool, relu] if type(relu) is nn.ReLU else [pool]


def _output(shared: FirstLayer, row: Sequence[float], flat: Flat, probe: Samples) -> Tensor:
    shared.prepare(flat.cast(probe.inputs))
    shared.at(row)
    output = flat.outputs(probe.inputs).clone()
    shared.release()
    return output


def _unchanged(inputs: Tensor) -> Tensor:
    return inputs
