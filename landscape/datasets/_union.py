"""Several digit datasets as the domains of one: same size, three channels, domain labels."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from landscape.datasets import _split
from landscape.datasets._dataset import Dataset, Groups, fingerprint
from landscape.model.samples import Samples

_BLOCK = 4096  # images resized at a time


def loader(name: str, accepted: tuple[str, ...]) -> Callable[..., Dataset]:
    """The `load` of a dataset whose domains are digit datasets.

    Args:
        name: Public name.
        accepted: Names of the domains, by default all in this order.
    """

    def load(
        folder: Path | None = None,
        *,
        domains: Sequence[str] = accepted,
        size: int = 28,
        train_per_domain: int | None = None,
        test_per_domain: int | None = None,
        test_per_class: int | None = 1000,
    ) -> Dataset:
        """Domains one after the other, 28x28 with three channels, scaled by "half"; the files are those of each one.

        Source: papers.md 6.1. The defaults are the IMA paper's; LSS has size 32, train_per_domain 25,000 and
        test_per_domain 9,000 (it repeats USPS to reach them, which is not done here: copies would leak into the test
        set).

        Args:
            folder: Data folder.
            domains: Those that are used, in this order.
            size: Height and width in pixels; images of another size are resized (bilinear).
            train_per_domain, test_per_domain: Images of each domain, the first ones; by default all.
            test_per_class: Test images of each class and domain, the first ones.

        Raises:
            ValueError: If an option is out of range.
            LookupError: If a domain's files are absent.
        """
        _split.require_domains(name, domains, accepted)
        _split.require_size(name, size)
        limits = {"train_per_domain": train_per_domain, "test_per_domain": test_per_domain}
        _split.require_counts(name, **limits, test_per_class=test_per_class)
        splits: dict[str, list[Samples]] = {"train": [], "test": []}
        for domain in domains:
            dataset: Dataset = import_module(f"landscape.datasets.{domain}").load(folder)
            test = dataset.test[_split.first(dataset.test.targets, test_per_class)]
            splits["train"].append(_fit(dataset.train[slice(train_per_domain)], size))
            splits["test"].append(_fit(test[slice(test_per_domain)], size))
        train, test = (
            Samples(torch.cat([data.inputs for data in sets]), torch.cat([data.targets for data in sets]))  # type: ignore[misc]
            for sets in splits.values()
        )
        sizes = [torch.tensor([len(data) for data in sets]) for sets in splits.values()]
        numbers = [torch.arange(len(counts)).repeat_interleave(counts) for counts in sizes]
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

    return load


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
