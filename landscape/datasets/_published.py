"""Digests of published image sets, compared with each copy that is read.

There are none of cifar100, mnist_m, pacs, svhn, synthdigits, femnist, domainnet and movielens1m: only their numbers of
samples and classes are checked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from landscape.model.samples import Samples


@dataclass(frozen=True)
class Published:
    """A published set: its numbers of samples, and the first 16 hexadecimal digits of SHA-256 digests.

    Args:
        train, test: Numbers of samples; a copy of other size is not compared.
        labels: Digest of the labels in the published order, by `labels_digest`.
        fingerprint: The fingerprint of all tensors; None if unknown.
    """

    train: int
    test: int
    labels: str
    fingerprint: str | None = None


PUBLISHED = {
    "fashion_mnist": Published(60_000, 10_000, "8ab940a680640f36", "023af56f2df4044c"),
    "mnist": Published(60_000, 10_000, "671ff9d70b481111", "05ab87c0464c87c8"),
    "usps": Published(7_291, 2_007, "23d374427c9e1a00"),  # grey levels are rounded in more ways than one
    "cifar10": Published(50_000, 10_000, "3edb456524d5918a"),  # unknown: 130 images of the measured copy were lossy
}


def difference(name: str, train: Samples, test: Samples, fingerprint: str) -> str:
    """Difference from the published dataset, as the end of a sentence; empty if there is none or it is unknown.

    Args:
        fingerprint: Of train and test.
    """
    published = PUBLISHED.get(name)
    if published is None or (len(train), len(test)) != (published.train, published.test):
        return ""
    if (digest := labels_digest(train, test)) != published.labels:
        return f"other labels, or another order of them (digest {digest}, published {published.labels})"
    if published.fingerprint is not None and fingerprint != published.fingerprint:
        return f"other pixels (fingerprint {fingerprint}, published {published.fingerprint})"
    return ""


def labels_digest(train: Samples, test: Samples) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all labels, one byte each, those for training first."""
    digest = hashlib.sha256()
    for samples in (train, test):
        digest.update(samples.targets.numpy().astype("uint8").tobytes())
    return digest.hexdigest()[:16]
