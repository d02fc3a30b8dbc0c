"""Clients that send a part of the model, names that wrappers changed, and clients of another width."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import drift
from drift.record.recorder import Recorder
from drift.runs.run import Run


def net(seed: int, width: int = 4) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Linear(width, 2))


def state(seed: int, width: int = 4) -> dict:
    made = net(seed, width)
    made(torch.randn(9, 3) + seed)
    return made.state_dict()


def test_tensors_that_a_client_did_not_send_are_those_that_it_received_and_it_is_said(tmp_path):
    start, whole = state(0), state(1)
    body = {name: value for name, value in state(2).items() if not name.startswith("2.")}
    weights = {name: value for name, value in state(3).items() if "running" not in name}
    recorder = Recorder(tmp_path / "run", net(0))
    recorder.round(start=start, clients={0: (whole, 5), 4: (body, 3), 2: (weights, 2)}, end=state(5))
    recorder.round(clients={0: (whole, 5)}, end=state(6))
    run = Run(tmp_path / "run")
    record = run.round(0)
    assert record.extras["partial"].tolist() == [2, 4]
    assert "partial" not in run.round(1).extras
    assert sorted(run.about["kept"]) == ["1.running_mean", "1.running_var", "2.bias", "2.weight"]
    assert any("did not send" in text for text in run.about["unknown"])
    names = [name for name, _ in run.about["layout"]]
    sent = {2: start | weights, 4: start | body}
    for client, place in ((2, 1), (4, 2)):
        expected = torch.cat([sent[client][name].reshape(-1) for name in names])
        assert torch.equal(record.clients[place], expected)
        statistics = torch.cat([sent[client][f"1.{name}"] for name in ("running_mean", "running_var")])
        assert torch.equal(record.client_buffers[place], statistics)
    delta = record.clients[2] - record.start
    assert record.gram[5, 5].item() == pytest.approx(float(delta.double() @ delta.double()), rel=1e-12)


@pytest.mark.parametrize("word", ["module.", "_module.", "_orig_mod.", "module._orig_mod."])
def test_clients_whose_names_wrappers_changed_are_recorded(word, tmp_path):
    recorder = Recorder(tmp_path / "run", net(0))
    recorder.round(start=state(0), clients={0: ({f"{word}{n}": v for n, v in state(1).items()}, 1)}, end=state(2))
    plain = Recorder(tmp_path / "plain", net(0))
    plain.round(start=state(0), clients={0: (state(1), 1)}, end=state(2))
    assert torch.equal(Run(tmp_path / "run").round(0).clients, Run(tmp_path / "plain").round(0).clients)
    assert "partial" not in Run(tmp_path / "run").round(0).extras


def adapter(seed: int, short: bool = False) -> dict:
    """Tensors of an adapter as a model of peft names them, or as `get_peft_model_state_dict` does."""
    torch.manual_seed(seed)
    shapes = {
        "lora_A.default.weight": (2, 3),
        "lora_B.default.weight": (4, 2),
        "lora_magnitude_vector.default.weight": 4,
    }
    long = {f"base_model.model.0.{name}": torch.randn(shape) for name, shape in shapes.items()}
    long["base_model.model.1.modules_to_save.default.bias"] = torch.randn(5)
    if not short:
        return long
    plain = {name.replace(".modules_to_save", "").replace(".default", ""): value for name, value in long.items()}
    return {name.replace("vector.weight", "vector"): value for name, value in plain.items()}


@pytest.mark.parametrize("of_start", [False, True])
def test_names_without_those_of_adapters_are_those_of_the_run(of_start, tmp_path):
    recorder = Recorder(tmp_path / "run")
    recorder.round(start=adapter(0, of_start), clients={0: (adapter(1, True), 1)}, end=adapter(2, of_start))
    record = Run(tmp_path / "run").round(0)
    assert "partial" not in record.extras
    for theta, seed in ((record.start, 0), (record.clients[0], 1), (record.end, 2)):
        assert torch.equal(theta, torch.cat([value.reshape(-1) for value in adapter(seed).values()]))


def test_names_that_two_adapters_share_are_refused(tmp_path):
    both = adapter(0) | {name.replace("default", "other"): value for name, value in adapter(1).items()}
    with pytest.raises(ValueError, match=r"client 0: the model has no tensor .*lora_A.default.weight"):
        Recorder(tmp_path / "run").round(start=both, clients={0: (adapter(2, True), 1)}, end=both)


def test_a_client_with_an_adapter_of_a_layer_that_the_run_has_none_of_is_refused(tmp_path):
    more = adapter(1, True) | {"base_model.model.2.lora_A.weight": torch.zeros(2, 4)}
    message = r"client 5: the run has no adapter 'base_model.model.2.lora_A.weight'; record unlike adapters by"
    with pytest.raises(ValueError, match=message):
        Recorder(tmp_path / "run").round(start=adapter(0), clients={5: (more, 1)}, end=adapter(2))


@pytest.mark.parametrize("name", ["lora_magnitude_vector.default.weight", "lora_E.default"])
def test_the_gap_of_products_refuses_adapters_that_are_more_than_products(name, tmp_path):
    def state(seed):
        factors = {
            key: value for key, value in adapter(seed).items() if key.endswith(("A.default.weight", "B.default.weight"))
        }
        return factors | {f"base_model.model.0.{name}": torch.ones(4)}

    Recorder(tmp_path / "run").round(start=state(0), clients={0: (state(1), 1), 1: (state(2), 1)}, end=state(3))
    with pytest.raises(LookupError, match=rf"has base_model.model.0.{name}: weights of AdaLoRA and DoRA are not"):
        drift.product_gap(Run(tmp_path / "run"))


def test_a_client_of_another_width_or_other_names_is_refused_by_client_and_tensor(tmp_path):
    recorder = Recorder(tmp_path / "run", net(0))
    bad = {
        r"client 7: tensor '0\.weight' has shape \(6, 3\), the run has \(4, 3\)": state(1, 6),
        r"client 7: the model has no tensor '0\.weight' \(nearest: '0\.wieght'\)": {
            name.replace("0.weight", "0.wieght"): value for name, value in state(1).items()
        },
        r"client 7: the model has no tensor '0\.weight'": {"epoch": torch.tensor(3)},
        r"client 7: a model has 2 arrays, the run has 9": [np.zeros((4, 3)), np.zeros(4)],
    }
    for message, model in bad.items():
        with pytest.raises(ValueError, match=message):
            recorder.round(start=state(0), clients={3: (state(1), 1), 7: (model, 1)}, end=state(2))
    assert recorder.next == 0
