"""Several digit datasets as the domains of one: same size, three channels, domain labels."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from landscape.datasets import _split
from landscape.datasets._dataset import Dataset, Groups, fingerprint
from landscape.model.samples import Samples

_BLOCK = 4096  # images resized at a time


def union(
    name: str,
    domains: Sequence[str],
    accepted: Sequence[str],
    folder: Path | None,
    size: int,
    train_per_domain: int | None,
    test_per_domain: int | None,
    test_per_class: int | None,
) -> Dataset:
    """The first images of each domain, one domain after the other, resized (bilinear) and with three channels.

    Args:
        name: Public name.
        domains: Names of the datasets, in order.
        known: Names that are accepted.
        folder: Data folder.
        size: Height and width in pixels.
        train_per_domain, test_per_domain: Images of each domain; all where None.
        test_per_class: Test images of each class and domain; all where None.

    Raises:
        ValueError: If an option is out of range.
        LookupError: If a domain's files are absent.
    """
    if isinstance(domains, str) or not domains or len({*domains}) < len(domains) or not {*domains} <= {*accepted}:
        raise ValueError(f"domains is {domains!r}; {name} takes a list of different ones of {', '.join(accepted)}.")
    if type(size) is not int or size < 8:
        raise ValueError(f"size is {size!r}; {name} takes a whole number of pixels, size >= 8.")
    limits = {
        "train_per_domain": train_per_domain,
        "test_per_domain": test_per_domain,
        "test_per_class": test_per_class,
    }
    for option, value in limits.items():
        _split.require_count(name, option, value)
    parts: dict[str, list[Samples]] = {"train": [], "test": []}
    for domain in domains:
        dataset: Dataset = import_module(f"landscape.datasets.{domain}").load(folder)
        test = dataset.test[_split.first(dataset.test.targets, test_per_class)]
        parts["train"].append(_fit(dataset.train[slice(train_per_domain)], size))
        parts["test"].append(_fit(test[slice(test_per_domain)], size))
    train, test = (
        Samples(torch.cat([part.inputs for part in own]), torch.cat([part.targets for part in own]))  # type: ignore[misc]
        for own in parts.values()
    )
    numbers = [
        torch.arange(len(own)).repeat_interleave(torch.tensor([len(part) for part in own])) for own in parts.values()
    ]
    groups = {"domain": Groups(tuple(domains), *numbers)}
    return Dataset(
        name=name,
        train=train,
        test=test,
        classes=tuple("0123456789"),
        shape=(3, size, size),
        fingerprint=fingerprint(train, test, groups),
        scale="half",
        groups=groups,
    )


def _fit(samples: Samples, size: int) -> Samples:
    inputs = samples.inputs
    if not isinstance(inputs, Tensor):
        raise ValueError("a domain must hold images.")
    if tuple(inputs.shape[2:]) != (size, size):
        blocks = [
            F.interpolate(block.float(), (size, size), mode="bilinear", antialias=True).round_().clamp_(0, 255).byte()
            for block in inputs.split(_BLOCK)
        ]
        inputs = torch.cat(blocks)
    return Samples(inputs if inputs.shape[1] == 3 else inputs.expand(-1, 3, -1, -1).contiguous(), samples.targets)
