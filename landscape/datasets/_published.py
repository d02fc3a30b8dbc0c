"""Digests of published image sets, compared with each copy that is read.

There are none of cifar100, mnist_m, pacs, svhn, synthdigits, femnist, domainnet and movielens1m: only their numbers of
samples and classes are checked.
"""

from __future__ import annotations

import hashlib

from landscape.datasets._source import Source
from landscape.model.samples import Samples


def difference(source: Source, train: Samples, test: Samples, fingerprint: str) -> str:
    """Difference from the published dataset, as the end of a sentence; empty if there is none or it is unknown.

    Args:
        source: A copy of another size than it states is not compared.
        fingerprint: Of train and test.
    """
    if not source.labels_digest or (len(train), len(test)) != (source.train, source.test):
        return ""
    if (digest := labels_digest(train, test)) != source.labels_digest:
        return f"other labels, or another order of them (digest {digest}, published {source.labels_digest})"
    if source.digest and fingerprint != source.digest:
        return f"other pixels (fingerprint {fingerprint}, published {source.digest})"
    return ""


def labels_digest(train: Samples, test: Samples) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all labels, one byte each, those for training first."""
    digest = hashlib.sha256()
    for samples in (train, test):
        digest.update(samples.targets.numpy().astype("uint8").tobytes())
    return digest.hexdigest()[:16]
