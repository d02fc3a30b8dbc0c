"""Settings of torch inside and after `whole_products`."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from landscape.model.whole_products import whole_products

KINDS = (torch.backends.cudnn.conv, torch.backends.cudnn.rnn, torch.backends.cuda.matmul)


def settings() -> tuple:
    return (*(kind.fp32_precision for kind in KINDS), torch.backends.cudnn.enabled)


def test_products_are_whole_inside_and_settings_return_after_an_error():
    before = settings()
    seen = []

    def fail() -> None:
        with whole_products():
            seen.append(settings())
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert seen == [("ieee",) * 3 + before[3:]]
    assert settings() == before
    assert "tf32" in before  # torch's default, without which this test could not fail


def test_recurrent_layers_run_without_cudnn():
    before = settings()
    with whole_products(nn.Sequential(nn.GRU(2, 3))):
        assert not torch.backends.cudnn.enabled
        with whole_products(nn.Linear(2, 3)):
            assert not torch.backends.cudnn.enabled
    assert settings() == before
    with whole_products(nn.Linear(2, 3)):
        assert torch.backends.cudnn.enabled == before[-1]


def test_threads_that_end_out_of_order_leave_the_settings_of_the_caller():
    before, inside, ends = settings(), threading.Event(), threading.Event()

    def longer() -> None:
        with whole_products():
            inside.set()
            ends.wait(10)
            assert settings()[:3] == ("ieee",) * 3

    with whole_products():
        thread = threading.Thread(target=longer)
        thread.start()
        assert inside.wait(10)
    assert settings()[:3] == ("ieee",) * 3
    ends.set()
    thread.join()
    assert settings() == before
