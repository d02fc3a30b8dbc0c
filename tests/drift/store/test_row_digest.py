"""The digest of rows that come in any order."""

import hashlib
from itertools import permutations

import pytest
import torch

from drift.store import digests
from drift.store.row_digest import RowDigest

MODELS = torch.arange(12, dtype=torch.float32).view(4, 3)
FORMS = {"clients": ("float32", (4, 3)), "client_buffers": ("float32", (4, 0)), "end": ("float32", (3,))}


def before():
    return digests.digest_before("clients", FORMS, "a text")


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_the_order_of_rows_does_not_matter(order):
    digest, read = RowDigest(before(), MODELS.__getitem__), []
    for row in order:
        assert digest.of_all(4) is None
        digest.add(row, MODELS[row])
    known = digest.of_all(4)
    arrays = {name: torch.zeros(shape).numpy() for name, (_, shape) in FORMS.items()} | {"clients": MODELS.numpy()}
    contents = digests.contents(arrays)
    whole, another = (digests.digest_contents(contents, text) for text in ("a text", "another"))
    contents["clients"] = contents["clients"]._replace(digested=known, release=lambda: read.append(1))
    assert digests.digest_contents(contents, "a text") == whole and not read
    assert digests.digest_contents(contents, "another") == another
    assert read, "what stands before it is another text, so it is read"


def test_a_row_that_comes_twice_is_not_known():
    digest = RowDigest(before(), MODELS.__getitem__)
    for row in (0, 1, 1, 2, 3):
        digest.add(row, MODELS[row])
    assert digest.of_all(4) is None


def test_nothing_is_known_behind_other_bytes():
    assert digests.digest_before("clients", FORMS | {"carried.ids": ("int64", (4,))}, "") is None
    assert digests.digest_before("clients", {}, "") is None
    assert before().hexdigest() != hashlib.sha256(b"a text").hexdigest()
