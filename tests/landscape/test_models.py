"""Every model file: parameter counts, the contract of body and head, seeds and bad input."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from landscape import models
from landscape.affine import evaluate
from landscape.models import build_model
from landscape.samples import Samples
from landscape.task import Task

GREY, COLOUR = (1, 28, 28), (3, 32, 32)

COUNTS = [
    ("linear", GREY, 10, 7_850),
    ("mlp", GREY, 10, 199_210),
    ("cnn_fmnist", GREY, 10, 274_026),
    ("cnn_cifar10", COLOUR, 10, 772_682),
    ("simple_cnn", COLOUR, 10, 122_570),
    ("simple_cnn", COLOUR, 100, 128_420),
    ("lenet", GREY, 10, 28_938),
    ("lenet5", GREY, 62, 31_972),
    ("cnn_digits", (1, 8, 8), 10, 13_706),
    ("resnet8", COLOUR, 10, 78_042),
    ("resnet20", COLOUR, 10, 272_474),
    ("resnet20", COLOUR, 100, 278_324),
    ("resnet18_gn", COLOUR, 10, 11_235_786),
    ("vgg11_gn", COLOUR, 10, 9_292_938),
    ("vgg11_gn", COLOUR, 100, 9_304_548),
]

FEATURES = {
    "linear": 3072,
    "mlp": 200,
    "cnn_fmnist": 128,
    "cnn_cifar10": 128,
    "simple_cnn": 64,
    "lenet": 2048,
    "lenet5": 100,
    "cnn_digits": 64,
    "resnet8": 64,
    "resnet20": 64,
    "resnet18_gn": 128,
    "vgg11_gn": 128,
}


@pytest.mark.parametrize(("name", "shape", "classes", "count"), COUNTS)
def test_parameter_counts_are_those_of_the_papers(name, shape, classes, count):
    model = build_model(name, shape, classes, seed=0)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("name", models.names())
def test_every_model_is_head_after_body(name):
    model = build_model(name, (3, 32, 32), 7, seed=0).eval()
    inputs = torch.randn(5, 3, 32, 32)
    features = model.body(inputs)
    assert isinstance(model.head, nn.Linear)
    assert list(model.modules())[-1] is model.head
    assert features.ndim == 2
    assert model.head.in_features == features.shape[1]
    assert model(inputs).shape == (5, 7)
    assert torch.equal(model(inputs), model.head(features))
    if name in FEATURES:
        assert features.shape == (5, FEATURES[name])


@pytest.mark.parametrize("name", models.names())
def test_every_model_takes_channels_last_and_oblong_images(name):
    model = build_model(name, (2, 19, 24), 3, seed=1).double().eval()
    inputs = torch.randn(4, 2, 19, 24, dtype=torch.float64)
    torch.testing.assert_close(model(inputs.to(memory_format=torch.channels_last)), model(inputs))


@pytest.mark.parametrize("name", models.names())
def test_every_model_is_fixed_by_its_seed_and_leaves_the_callers_random_state(name):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = build_model(name, (3, 20, 20), 4, seed=11).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(17)
    again = build_model(name, (3, 20, 20), 4, seed=11).state_dict()
    other = build_model(name, (3, 20, 20), 4, seed=12).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", models.names())
def test_every_model_has_one_line_that_describes_it(name):
    assert 10 < len(models.describe(name)) <= 120


def test_pool_before_relu_equals_relu_before_pool():
    model = build_model("cnn_fmnist", GREY, 10, seed=0).double()
    inputs = torch.randn(3, *GREY, dtype=torch.float64)
    one, two = (layer for layer in model.body if isinstance(layer, nn.Conv2d))
    hidden = nn.functional.max_pool2d(one(inputs).relu(), 2)
    hidden = nn.functional.max_pool2d(two(hidden).relu(), 2).flatten(1)
    for layer in (layer for layer in model.body if isinstance(layer, nn.Linear)):
        hidden = layer(hidden).relu()
    torch.testing.assert_close(model(inputs), model.head(hidden))


def test_a_residual_network_keeps_its_count_under_either_normalisation():
    for norm, buffered in (("batch", True), ("group", False)):
        model = build_model("resnet20", COLOUR, 10, seed=0, norm=norm)
        assert sum(p.numel() for p in model.parameters()) == 272_474
        assert bool(list(model.buffers())) == buffered


def test_the_plain_resnet18_has_no_feature_layer():
    model = build_model("resnet18_gn", COLOUR, 100, seed=0, feature=0)
    assert sum(p.numel() for p in model.parameters()) == 11_220_132
    assert model.head.in_features == 512


def test_a_residual_block_is_relu_of_branch_and_shortcut():
    block = build_model("resnet8", (2, 9, 11), 3, seed=0, norm="group").double().body[4]
    inputs = torch.randn(2, 16, 9, 11, dtype=torch.float64)
    first, norm, _, second, last = block.residual
    hidden = last(second(norm(first(inputs)).relu()))
    convolution, shortcut_norm = block.shortcut
    expected = (hidden + shortcut_norm(convolution(inputs))).relu()
    torch.testing.assert_close(block(inputs), expected)
    assert (first.stride, convolution.stride, second.stride) == ((2, 2), (2, 2), (1, 1))


def test_a_residual_network_sweeps_to_its_own_losses():
    model = build_model("resnet8", (3, 8, 8), 3, seed=0).double()
    held = Samples(torch.randn(5, 3, 8, 8, dtype=torch.float64), torch.arange(5) % 3)
    task = Task(model, {"test": held})
    models = torch.stack([task.theta, task.theta + 0.1, 0.5 * task.theta])
    found = evaluate(task, models, torch.eye(3), metrics=("loss",))["loss"]
    expected = [torch.nn.functional.cross_entropy(task.outputs(row, "test"), held.targets) for row in models]
    torch.testing.assert_close(found, torch.stack(expected))


def test_mlp_takes_its_hidden_widths():
    model = build_model("mlp", (6,), 3, seed=0, hidden=[5, 4])
    assert [tuple(p.shape) for p in model.parameters()] == [(5, 6), (5,), (4, 5), (4,), (3, 4), (3,)]


def test_dropout_acts_in_training_mode_only():
    model = build_model("lenet5", GREY, 62, seed=0)
    inputs = torch.randn(2, *GREY)
    assert not torch.equal(model(inputs), model(inputs))
    assert torch.equal(model.eval()(inputs), model(inputs))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cnn_fmnist", 16),
        ("cnn_cifar10", 16),
        ("simple_cnn", 18),
        ("lenet", 4),
        ("lenet5", 10),
        ("resnet8", 8),
        ("vgg11_gn", 8),
    ],
)
def test_the_least_image_size_is_as_stated(name, least):
    assert build_model(name, (1, least, least), 2, seed=0)(torch.zeros(1, 1, least, least)).shape == (1, 2)
    with pytest.raises(ValueError, match=f"at least {least}x{least}"):
        build_model(name, (1, least, least - 1), 2, seed=0)


@pytest.mark.parametrize(
    "name", ["cnn_fmnist", "cnn_cifar10", "simple_cnn", "lenet", "lenet5", "cnn_digits", "resnet8"]
)
def test_an_image_model_rejects_vectors(name):
    with pytest.raises(ValueError, match=r"inputs have shape \(784,\); .*\(channels, height, width\)"):
        build_model(name, (784,), 10, seed=0)


def test_bad_names_and_options_are_named():
    with pytest.raises(ValueError, match="Did you mean 'cnn_fmnist'"):
        build_model("cnn_fmist", GREY, 10, seed=0)
    with pytest.raises(ValueError, match="'mlp' has no option 'hiden'; it accepts hidden"):
        build_model("mlp", GREY, 10, seed=0, hiden=(3,))
    with pytest.raises(ValueError, match="'linear' has no option 'hidden'; it accepts no options"):
        build_model("linear", GREY, 10, seed=0, hidden=(3,))
    with pytest.raises(ValueError, match="hidden is"):
        build_model("mlp", GREY, 10, seed=0, hidden=[])
    with pytest.raises(ValueError, match=r"dropout is 1\.0"):
        build_model("lenet5", GREY, 10, seed=0, dropout=1.0)
    with pytest.raises(ValueError, match="norm is 'layer'; resnet8 takes 'batch' or 'group'"):
        build_model("resnet8", COLOUR, 10, seed=0, norm="layer")
    with pytest.raises(ValueError, match="groups is 5; vgg11_gn takes a divisor"):
        build_model("vgg11_gn", COLOUR, 10, seed=0, groups=5)
    with pytest.raises(ValueError, match="feature is -1"):
        build_model("resnet18_gn", COLOUR, 10, seed=0, feature=-1)
    with pytest.raises(ValueError, match="classes is 1"):
        build_model("linear", GREY, 1, seed=0)


def test_dashes_and_underscores_are_the_same():
    assert build_model("cnn-digits", (1, 8, 8), 10, seed=0).head.out_features == 10
    assert models.describe("cnn-digits") == models.describe("cnn_digits")


@pytest.fixture
def factories(tmp_path, monkeypatch):
    (tmp_path / "my_factories.py").write_text(
        "from torch import nn\n"
        "def tiny(shape, classes, *, bias=True):\n    return nn.Linear(shape[0], classes, bias=bias)\n"
        "def wrong(shape, classes, **anything):\n    return anything\n"
    )
    (tmp_path / "my_broken.py").write_text("import package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("factories")
def test_a_users_factory_is_named_by_module_and_function():
    model = build_model("my_factories:tiny", (3,), 2, seed=5, bias=False)
    assert [tuple(p.shape) for p in model.parameters()] == [(2, 3)]
    assert torch.equal(model.weight, build_model("my_factories:tiny", (3,), 2, seed=5, bias=False).weight)


@pytest.mark.usefixtures("factories")
def test_errors_of_a_users_factory_are_named():
    with pytest.raises(ValueError, match="'my_factories:tiny' has no option 'bais'; it accepts bias"):
        build_model("my_factories:tiny", (3,), 2, seed=0, bais=False)
    with pytest.raises(ValueError, match=r"must return a torch\.nn\.Module"):
        build_model("my_factories:wrong", (3,), 2, seed=0, any_option=1)
    with pytest.raises(ValueError, match=r"'json:dumps' cannot be called with \(shape, classes\)"):
        build_model("json:dumps", (3,), 2, seed=0)
    with pytest.raises(ValueError, match="':tiny' is incomplete"):
        build_model(":tiny", (3,), 2, seed=0)
    with pytest.raises(ValueError, match="hidden is 'a'"):
        build_model("mlp", (3,), 2, seed=0, hidden="a")
    with pytest.raises(ValueError, match="no module named 'my_absent'"):
        build_model("my_absent:build", (3,), 2, seed=0)
    with pytest.raises(ValueError, match="has no function 'huge'"):
        build_model("my_factories:huge", (3,), 2, seed=0)
    with pytest.raises(ModuleNotFoundError, match="package_that_is_not_there"):
        build_model("my_broken:build", (3,), 2, seed=0)


def test_seeds_give_the_same_bits_in_another_process():
    code = (
        "from landscape.models import build_model\n"
        "model = build_model('cnn_digits', (1, 8, 8), 10, seed=4)\n"
        "print(sum(p.double().sum() for p in model.parameters()).item().hex())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    model = build_model("cnn_digits", (1, 8, 8), 10, seed=4)
    assert sum(p.double().sum() for p in model.parameters()).item().hex() == there
