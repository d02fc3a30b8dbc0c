"""Models of transformers: tiny ones are made here from a configuration, so that no network is needed."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from landscape import models
from landscape.curvature.hessian import top_eigenvalues
from landscape.model.batchnorm import normalisers
from landscape.model.model import Model
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model, hf
from landscape.sweep.evaluate import evaluate

KINDS = ["resnet", "vit"]


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("peft", reason="the extra hf is not installed")
    return pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def folders(transformers, tmp_path_factory):
    configurations = {
        "resnet": transformers.ResNetConfig(
            embedding_size=6, hidden_sizes=[6, 10], depths=[1, 2], layer_type="basic", num_labels=1000
        ),
        "vit": transformers.ViTConfig(
            hidden_size=12,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=20,
            image_size=16,
            patch_size=8,
            num_labels=1000,
        ),
    }
    found = {}
    for kind, configuration in configurations.items():
        torch.manual_seed(1)
        model = transformers.AutoModelForImageClassification.from_config(configuration)
        found[kind] = str(tmp_path_factory.mktemp("hub") / kind)
        model.save_pretrained(found[kind])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_its_backbone_and_a_fresh_head(kind, folders, transformers):
    model = build_model("hf", (3, 16, 16), 5, seed=0, source=folders[kind]).eval()
    known = transformers.AutoModelForImageClassification.from_pretrained(folders[kind]).eval()
    inputs = torch.randn(4, 3, 16, 16)
    known.classifier = torch.nn.Sequential(torch.nn.Flatten(), model.head)
    torch.testing.assert_close(model(inputs), known(inputs).logits)
    assert torch.equal(model(inputs), model.head(model.body(inputs)))
    assert list(model.modules())[-1] is model.head
    assert model.head.out_features == 5


@pytest.mark.parametrize("options", [{}, {"lora": 2}, {"pretrained": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_fixed_by_its_seed_and_leaves_the_callers_random_state(kind, options, folders):
    before = torch.get_rng_state()
    first, again, other = (
        build_model("hf", (3, 16, 16), 4, seed=seed, source=folders[kind], **options).state_dict() for seed in (5, 5, 6)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], again[key]) for key in first)
    differ = {key for key in first if not torch.equal(first[key], other[key])}
    assert "head.weight" in differ
    if not options:
        assert differ == {"head.weight", "head.bias"}  # the rest was read
    if "lora" in options:
        assert all("lora_A" in key or "head" in key for key in differ)


def test_grey_images_are_repeated_over_the_channels(folders):
    grey = build_model("hf", (1, 16, 24), 4, seed=0, source=folders["resnet"]).eval()
    colour = build_model("hf", (3, 16, 24), 4, seed=0, source=folders["resnet"]).eval()
    inputs = torch.randn(3, 1, 16, 24)
    torch.testing.assert_close(grey(inputs), colour(inputs.repeat(1, 3, 1, 1)))


def test_a_vit_takes_images_of_another_size_or_resizes_them(folders):
    inputs = torch.randn(2, 3, 32, 24)
    free = build_model("hf", (3, 32, 24), 4, seed=0, source=folders["vit"]).eval()
    resized = build_model("hf", (3, 32, 24), 4, seed=0, source=folders["vit"], size=16).eval()
    small = torch.nn.functional.interpolate(inputs, size=(16, 16), mode="bilinear")
    torch.testing.assert_close(resized(inputs), free(small))
    assert (free(inputs) - resized(inputs)).abs().max() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_with_lora_theta_is_adapters_and_head(kind, folders):
    model = build_model("hf", (3, 16, 16), 4, seed=0, source=folders[kind], lora=2)
    names = [name for name, _ in Task(model, {}).layout.parameters]
    assert names[-2:] == ["head.weight", "head.bias"]
    assert all("lora_A" in name or "lora_B" in name for name in names[:-2])
    adapted = {name.rpartition(".lora_")[0].rpartition(".")[2] for name in names[:-2]}
    assert adapted <= ({"convolution"} if kind == "resnet" else {"q_proj", "v_proj", "query", "value"})
    plain = build_model("hf", (3, 16, 16), 4, seed=0, source=folders[kind]).eval()
    inputs = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(model.eval().body(inputs), plain.body(inputs))  # adapters begin at zero


@pytest.mark.parametrize("lora", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_it_sweeps_to_its_own_losses_and_has_a_hessian(kind, lora, folders):
    model = build_model("hf", (3, 16, 16), 3, seed=0, source=folders[kind], lora=lora).double()
    held = Samples(torch.randn(5, 3, 16, 16, dtype=torch.float64), torch.arange(5) % 3)
    task = Task(model, {"test": held})
    own = getattr(task.theta, "buffers", task.theta[:0])
    rows = torch.stack([Model(theta, own) for theta in (task.theta, task.theta + 0.01, 0.9 * task.theta)])
    found = evaluate(task, rows, torch.eye(3, dtype=torch.float64), metrics=("loss",))["loss"]
    expected = [torch.nn.functional.cross_entropy(task.outputs(row, "test"), held.targets) for row in rows]
    torch.testing.assert_close(found, torch.stack(expected))
    flat = task.flat(task.theta)
    theta = task.theta.requires_grad_()
    (gradient,) = torch.autograd.grad(flat.functional_loss(theta, held), theta, create_graph=True)
    direction = torch.nn.functional.normalize(torch.randn_like(theta), dim=0)
    (product,) = torch.autograd.grad(gradient @ direction, theta)
    step = 1e-3  # attention takes its softmax in float32 whatever the model's type
    sides = []
    for sign in (1, -1):
        there = (theta.detach() + sign * step * direction).requires_grad_()
        sides.append(torch.autograd.grad(flat.functional_loss(there, held), there)[0])
    torch.testing.assert_close(product, (sides[0] - sides[1]) / (2 * step), rtol=1e-3, atol=2e-4)
    assert bool(top_eigenvalues(task, task.theta, k=1, split="test").eigenvalue.notnull().all())


def test_batch_normalisation_is_found(folders):
    assert len(normalisers(build_model("hf", (3, 16, 16), 3, seed=0, source=folders["resnet"]))) == 8


@pytest.mark.parametrize(
    ("settings", "classes", "count"),
    [
        ({"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}, 10, 11_181_642),
        ({}, 10, 23_528_522),
        ({}, 345, 24_214_937),
    ],
)
def test_counts_are_those_of_the_paper(settings, classes, count, transformers, monkeypatch):
    monkeypatch.setattr(
        transformers.AutoConfig, "from_pretrained", lambda *a, **k: transformers.ResNetConfig(**settings)
    )
    model = hf.build((3, 64, 64), classes, source="resnet", pretrained=False)
    assert sum(p.numel() for p in model.parameters()) == count


def test_mistakes_are_named_in_one_line(folders, tmp_path):
    with pytest.raises(LookupError, match=f"no model '{tmp_path}': it is not a folder with config.json"):
        build_model("hf", (3, 16, 16), 3, seed=0, source=str(tmp_path))
    with pytest.raises(ValueError, match=r"inputs have shape \(2, 16, 16\); .* images of 3 channels, or grey"):
        build_model("hf", (2, 16, 16), 3, seed=0, source=folders["vit"])
    with pytest.raises(ValueError, match=r"inputs have shape \(7,\); hf takes images"):
        build_model("hf", (7,), 3, seed=0, source=folders["vit"])
    with pytest.raises(ValueError, match=r"lora_targets is \['nothing'\]; .* such as fc1"):
        build_model("hf", (3, 16, 16), 3, seed=0, source=folders["vit"], lora=2, lora_targets=["nothing"])
    with pytest.raises(ValueError, match="lora is -1"):
        build_model("hf", (3, 16, 16), 3, seed=0, source=folders["vit"], lora=-1)
    with pytest.raises(ValueError, match="size is 2"):
        build_model("hf", (3, 16, 16), 3, seed=0, source=folders["vit"], size=2)


@pytest.mark.parametrize("package", ["transformers", "peft"])
def test_a_missing_extra_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LookupError, match=rf'needs the package {package!r}.*pip install "fedscape\[hf\]"'):
        hf._extra(package)


def test_listing_imports_no_extra():
    importlib.import_module("landscape.models.hf")
    assert "hf" in models.names()
    assert "LoRA" in models.describe("hf")
    with pytest.raises(ValueError, match="model 'hf' needs the option 'source'"):
        build_model("hf", (3, 16, 16), 3, seed=0)
