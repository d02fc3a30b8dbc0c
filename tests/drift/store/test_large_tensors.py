"""Files of rounds that are larger than all memory."""

import os

import psutil
import pytest
import torch

from drift.store import file_layout, files, large_tensors


@pytest.fixture
def larger_than_memory(tmp_path):
    """A file of a round with client models of zeros that takes no place on the disk."""
    width = 2 * (psutil.virtual_memory().total + psutil.swap_memory().total) // 40 + 1
    forms = {
        "clients": ("float32", (10, width)),
        "gram": ("float64", (2, 1)),
        "ids": ("int64", (3,)),
        "extras.rounded": ("bfloat16", (2,)),
        "extras.none": ("float32", (0,)),
        "metric.loss": ("float64", ()),
    }
    head = {"format": files.FORMAT, "about": '{"round": 0}', "digest": "stated", "small": "stated"}
    layout = file_layout.layout(forms, head)
    path = tmp_path / "000000.safetensors"
    with open(path, "wb") as file:
        file.write(layout.head)
        for name, values in {"gram": [[0.5], [2.0]], "ids": [4, 1, 7], "extras.rounded": [1.5, -2.0]}.items():
            tensor = torch.tensor(values, dtype=getattr(torch, forms[name][0]))
            file.seek(layout.spans[name].begin)
            file.write(tensor.view(torch.uint8).numpy().tobytes())
        file.truncate(layout.size)
    if os.stat(path).st_blocks > 2**14:
        pytest.skip("the disk writes zeros")
    return path, width


def test_a_file_larger_than_memory_is_read(larger_than_memory, monkeypatch):
    path, width = larger_than_memory
    monkeypatch.setattr(large_tensors, "is_verified", lambda stamp: True)  # its digest would take a minute
    tensors, about = files.read_tensors(path)
    assert about == {"round": 0} and files.read_tensors(path, "stated")[1] == about
    clients = tensors.pop("clients")
    assert clients.shape == (10, width) and clients[9, -3:].tolist() == [0, 0, 0]
    assert {name: value.tolist() for name, value in tensors.items()} == {
        "gram": [[0.5], [2.0]],
        "ids": [4, 1, 7],
        "extras.rounded": [1.5, -2.0],
        "extras.none": [],
        "metric.loss": 0.0,
    }
    assert {name: value.dtype for name, value in tensors.items()}["extras.rounded"] is torch.bfloat16
