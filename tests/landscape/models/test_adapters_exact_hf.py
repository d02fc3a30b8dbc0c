"""Adapters of a decoder and an encoder: numbers in products are those of dense weights in float64, for every twin of
other factors; folders of peft come in and go out."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import adapted
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import drift
import landscape
from drift.record.recorder import Recorder
from drift.runs.export_model import save_transformers, state_dict
from landscape.model.checkpoint import read_tensors

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")

IDS = torch.randint(0, 13, (6, 5), generator=torch.Generator().manual_seed(1))
KINDS = {
    "decoder": {"target_modules": ["c_attn"], "fan_in_fan_out": True},
    "encoder": {"target_modules": ["query", "value"]},
}


def base(kind):
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
    torch.manual_seed(0)
    common = {"vocab_size": 13, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}
    common["initializer_range"] = 0.3  # so that curvature is far from zero
    if kind == "decoder":
        sizes = {"n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **common)).eval()
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
    config = transformers.BertConfig(max_position_embeddings=8, **sizes, **common)
    return transformers.BertForMaskedLM(config).eval()


def lora(kind, seed=1, size=0.3):
    """A model of peft whose factors are all nonzero; layers of one scale, 8."""
    peft = pytest.importorskip("peft", reason="the extra hf is not installed")
    net = base(kind)
    torch.manual_seed(seed)
    model = peft.get_peft_model(net, peft.LoraConfig(r=2, lora_alpha=16, **KINDS[kind])).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(size * torch.randn_like(parameter))
    return model


def task_of(model):
    """Every byte is a label: for the encoder its own."""
    return landscape.make_task(model, None, (IDS, IDS))


class Dense:
    """The model without peft, float64, as a function of what is added to its weights, by products of NumPy."""

    def __init__(self, kind, task):
        self.kind, self.module, self.task = kind, base(kind).double(), task
        weights = dict(self.module.named_parameters())
        ends = tuple(f".{name}.weight" for name in KINDS[kind]["target_modules"])
        self.weights = {name: value.detach() for name, value in weights.items() if name.endswith(ends)}

    def added(self, theta):
        """scale B A of every layer, flat (D,)."""
        named = {name: value.double().numpy() for name, value in self.task.layout.named(theta).items()}
        parts = []
        for name in self.weights:
            stem = f"base_model.model.{name.removesuffix('.weight')}"
            keys = (next(key for key in named if f"{stem}.lora_{factor}." in key) for factor in "BA")
            product = 8 * np.matmul(*(named[key] for key in keys))
            parts.append((product.T if self.kind == "decoder" else product).ravel())
        return np.concatenate(parts)

    def loss(self, added):
        """Mean loss of the labels at W + D."""
        parts = torch.as_tensor(added).split([value.numel() for value in self.weights.values()])
        changed = {
            name: value + one.view_as(value) for (name, value), one in zip(self.weights.items(), parts, strict=True)
        }
        logits = torch.func.functional_call(self.module, changed, (IDS,)).logits
        if self.kind == "decoder":
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), IDS[:, 1:].flatten())
        return F.cross_entropy(logits.flatten(0, 1), IDS.flatten())


@pytest.fixture(params=KINDS)
def exact(request):
    """A task in float64, its models, and three others around it with twins."""
    model = lora(request.param).double()
    task = task_of(model)
    source = torch.Generator().manual_seed(5)
    models = [task.theta + 0.2 * torch.randn(len(task.theta), generator=source, dtype=torch.float64) for _ in range(3)]
    return Dense(request.param, task), models, [adapted.twin(task.model, one, seed) for seed, one in enumerate(models)]


def test_distances_and_planes_in_products_are_those_of_dense_weights_and_of_every_twin(exact):
    dense, models, twins = exact
    view, added = landscape.products(dense.task), [dense.added(one) for one in models]
    for group in (models, twins):
        assert group is models or all((a - b).norm() > 0.1 * a.norm() for a, b in zip(models, group, strict=True))
        thetas = [view.model(one) for one in group]
        for theta, wanted in zip(thetas, added, strict=True):
            assert np.linalg.norm(theta.numpy() - wanted) < 1e-12 * np.linalg.norm(wanted)
        ds = landscape.surface(view.task, landscape.plane(*thetas, points=(3, 4)))
        marks = np.array([ds.mark_alpha.values[:3], ds.mark_beta.values[:3], np.ones(3)])
        for i, j in ((0, 1), (0, 2), (1, 2)):
            distance = np.linalg.norm(added[i] - added[j])
            np.testing.assert_allclose(np.linalg.norm(marks[:2, i] - marks[:2, j]), distance, rtol=1e-6)
        for alpha in ds.alpha.values:
            for beta in ds.beta.values:
                shares = np.linalg.solve(marks, [alpha, beta, 1])
                with torch.no_grad():
                    wanted = dense.loss(shares @ np.array(added)).item()
                np.testing.assert_allclose(ds.loss.sel(alpha=alpha, beta=beta).item(), wanted, rtol=1e-6)


def test_hessian_eigenvalues_in_products_are_those_of_the_dense_matrix_and_of_every_twin(exact):
    dense, (model, *_), (twin, *_) = exact
    view = landscape.products(dense.task)
    matrix = torch.autograd.functional.hessian(dense.loss, torch.as_tensor(dense.added(model)), vectorize=True)
    wanted = np.array(sorted(torch.linalg.eigvalsh(matrix).tolist(), key=abs)[:-4:-1])
    for one in (model, twin):
        ds = landscape.top_eigenvalues(view.task, view.model(one), k=3, split="test")
        np.testing.assert_allclose(ds.eigenvalue.values, wanted, rtol=1e-6)


def test_coherence_in_products_is_that_of_dense_updates_and_of_every_twin(exact, tmp_path):
    dense, (start, *clients), (other_start, *others) = exact
    found = []
    for name, begin, group in (("models", start, clients), ("twins", other_start, others)):
        task, recorder = dense.task, Recorder(tmp_path / name, dense.task.model)
        states = [dict(task.layout.named(one)) for one in (begin, *group)]
        mean = {key: (states[1][key] + states[2][key]) / 2 for key in states[0]}
        recorder.round(start=states[0], clients={0: (states[1], 1), 1: (states[2], 1)}, end=mean)
        run = drift.record_products(drift.open(tmp_path / name, task=task), tmp_path / f"{name}-products")
        found.append(drift.coherence(run).mean_cosine.item())
    one, two = (dense.added(client) - dense.added(start) for client in clients)
    wanted = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    in_factors = drift.coherence(drift.open(tmp_path / "twins")).mean_cosine.item()
    assert abs(in_factors - wanted) > 1e-2  # what products remove


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_adapters_by_round_and_client_comes_in_and_goes_out_the_same(kind, tmp_path, monkeypatch):
    from figures.cli import main

    peft, models = pytest.importorskip("peft", reason="the extra hf is not installed"), {}
    for index in range(2):
        for seed, name in enumerate(("global", "client0", "client1")):
            models[index, name] = lora(kind, 10 * index + seed)
            models[index, name].save_pretrained(tmp_path / "saved" / f"round{index}" / name)
    monkeypatch.chdir(tmp_path)
    mine = ModuleType("mine")
    monkeypatch.setattr(mine, "make_task", lambda: (lora(kind, 99), None, (IDS, IDS)), raising=False)
    monkeypatch.setitem(sys.modules, "mine", mine)
    command = ["import", "saved", "--pattern", "round{round}/client{client}", "--globals", "round{round}/global"]
    with pytest.raises(SystemExit) as left:
        main([*command, "--task", "mine:make_task"])
    assert left.value.code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    run = drift.open(folder, task=task_of(lora(kind, 99)))
    record = run.round(1)
    assert torch.equal(record.clients[1], run.task.layout.theta(models[1, "client1"]))
    assert json.loads((folder / "run.json").read_text())["imported"] is True
    for client in (None, 1):
        theta, out = (record.end if client is None else record.clients[client]), tmp_path / f"out{client}"
        save_transformers(run, state_dict(run, 1, client), out)
        assert {"adapter_config.json", "adapter_model.safetensors"} <= {path.name for path in out.iterdir()}
        name = "global" if client is None else f"client{client}"
        model = models[1, name]
        back = peft.PeftModel.from_pretrained(base(kind), out).eval()
        assert torch.equal(back(IDS).logits, model(IDS).logits)
        torch.testing.assert_close(back(IDS).logits, run.task.outputs(theta, "test"), rtol=1e-5, atol=1e-5)
        written, saved = (read_tensors(path) for path in (out, tmp_path / "saved" / "round1" / name))
        assert written.keys() == saved.keys()
        assert all(torch.equal(written[key], saved[key]) for key in saved)
