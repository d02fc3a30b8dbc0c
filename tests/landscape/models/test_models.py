"""Every model file: parameter counts, the contract of body and head, seeds and bad input."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from kinds import one_of_each
from torch import nn
from warm import printed

from landscape import models
from landscape.models import build_model, hf

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
    ("resnet56", COLOUR, 10, 855_770),
    ("resnet110", COLOUR, 10, 1_730_714),
    ("wrn56_4", COLOUR, 10, 13_628_234),
    ("densenet121", COLOUR, 10, 6_956_298),
    ("alexnet", COLOUR, 10, 6_976_842),
    ("alexnet", COLOUR, 100, 7_023_012),
    ("resnet18_gn", COLOUR, 10, 11_235_786),
    ("resnet18_gn", COLOUR, 100, 11_247_396),
    ("vgg11_gn", COLOUR, 10, 9_292_938),
    ("vgg11_gn", COLOUR, 100, 9_304_548),
    ("cnn_digit5", (3, 28, 28), 10, 806_090),
    ("alexnet_gn", (3, 224, 224), 7, 12_438_599),
    ("lenet5_classical", GREY, 62, 66_126),
    ("lenet5_classical", GREY, 10, 61_706),
    ("cnn_femnist", GREY, 62, 1_206_590),
    ("resnet18", COLOUR, 10, 11_181_642),
    ("resnet50", COLOUR, 10, 23_528_522),
    ("resnet50", (3, 64, 64), 345, 24_214_937),
    ("din", (56,), 2, 205_398),
]

VERSIONS = [
    ("cnn_digit5", (3, 28, 28), 10, {"version": "paper"}, 13_423_434),
    ("alexnet_gn", (3, 224, 224), 7, {"version": "paper"}, 59_107_399),
    ("resnet18_gn", COLOUR, 100, {"feature": 0}, 11_220_132),
    ("resnet18_gn", COLOUR, 10, {"feature": 0}, 11_173_962),
    ("resnet56", COLOUR, 10, {"norm": "group"}, 855_770),
    ("wrn56_4", COLOUR, 10, {"norm": "group"}, 13_628_234),
    ("din", (56,), 2, {"mask_padding": False}, 205_398),
]

IMAGE_MODELS = [name for name in models.names() if name not in ("din", "hf")]
"""Models of images that need no file; `test_models_din.py` and `test_models_hf.py` test the others."""

LIGHT = set(IMAGE_MODELS) - {"wrn56_4", "densenet121", "resnet50", "resnet110", "resnet18"}
"""Those that are built and called fast, among them one of each family."""

LARGER = {"alexnet_gn": 35}
"""What a side has more than the 32 pixels that suffice for most."""

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
    "resnet56": 64,
    "resnet110": 64,
    "wrn56_4": 256,
    "densenet121": 1024,
    "alexnet": 512,
    "cnn_digit5": 128,
    "alexnet_gn": 512,
    "lenet5_classical": 84,
    "cnn_femnist": 128,
    "resnet18": 512,
    "resnet50": 2048,
}


@pytest.mark.parametrize(("name", "shape", "classes", "count"), COUNTS)
def test_parameter_counts_are_those_of_the_papers(name, shape, classes, count):
    model = build_model(name, shape, classes, seed=0)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize(("name", "shape", "classes", "options", "count"), VERSIONS)
def test_counts_of_versions_are_those_of_paper_and_code(name, shape, classes, options, count):
    model = build_model(name, shape, classes, seed=0, **options)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_every_model_is_head_after_body(name):
    side = 32 + LARGER.get(name, 0)
    model = build_model(name, (3, side, side), 7, seed=0).eval()
    inputs = torch.randn(2, 3, side, side)
    features, outputs = model.body(inputs), model(inputs)
    assert isinstance(model.head, nn.Linear)
    assert list(model.modules())[-1] is model.head
    assert features.ndim == 2
    assert model.head.in_features == features.shape[1]
    assert outputs.shape == (2, 7)
    assert torch.equal(outputs, model.head(features))
    if name in FEATURES:
        assert features.shape == (2, FEATURES[name])


@pytest.mark.parametrize("name", one_of_each(IMAGE_MODELS, LIGHT))
def test_every_model_takes_channels_last_and_oblong_images(name):
    shape = (2, 19 + 2 * LARGER.get(name, 0), 24 + 2 * LARGER.get(name, 0))
    model = build_model(name, shape, 3, seed=1).double().eval()
    inputs = torch.randn(2, *shape, dtype=torch.float64)
    torch.testing.assert_close(model(inputs.to(memory_format=torch.channels_last)), model(inputs))


@pytest.mark.parametrize("name", one_of_each(IMAGE_MODELS, LIGHT))
def test_every_model_is_fixed_by_its_seed_and_leaves_the_callers_random_state(name):
    side = 20 + 2 * LARGER.get(name, 0)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = build_model(name, (3, side, side), 4, seed=11).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(17)
    again = build_model(name, (3, side, side), 4, seed=11).state_dict()
    other = build_model(name, (3, side, side), 4, seed=12).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", models.names())
def test_every_model_has_one_line_that_describes_it(name):
    assert 10 < len(models.describe(name)) <= 120


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
        ("alexnet", 8),
        ("alexnet_gn", 63),
        ("cnn_digit5", 8),
        ("lenet5_classical", 12),
        ("cnn_femnist", 6),
        ("densenet121", 8),
        ("resnet50", 8),
    ],
)
def test_the_least_image_size_is_as_stated(name, least):
    assert build_model(name, (1, least, least), 2, seed=0).eval()(torch.zeros(1, 1, least, least)).shape == (1, 2)
    with pytest.raises(ValueError, match=f"at least {least}x{least}"):
        build_model(name, (1, least, least - 1), 2, seed=0)


@pytest.mark.parametrize("name", [name for name in IMAGE_MODELS if name not in ("linear", "mlp")])
def test_an_image_model_rejects_vectors(name):
    with pytest.raises(ValueError, match=r"inputs have shape \(784,\); .*\(channels, height, width\)"):
        build_model(name, (784,), 10, seed=0)


def test_bad_names_and_options_are_named():
    with pytest.raises(ValueError, match="Did you mean 'cnn_fmnist'"):
        build_model("cnn_fmist", GREY, 10, seed=0)
    with pytest.raises(ValueError, match=r"no option of model 'mlp' named 'hiden'\. Did you mean 'hidden'"):
        build_model("mlp", GREY, 10, seed=0, hiden=(3,))
    with pytest.raises(ValueError, match="named 'hidden'; there is no option of model 'linear'"):
        build_model("linear", GREY, 10, seed=0, hidden=(3,))
    with pytest.raises(ValueError, match="hidden is"):
        build_model("mlp", GREY, 10, seed=0, hidden=[])
    with pytest.raises(ValueError, match=r"dropout is 1\.0"):
        build_model("lenet5", GREY, 10, seed=0, dropout=1.0)
    with pytest.raises(ValueError, match="norm is 'layer'; resnet8 takes 'batch' or 'group'"):
        build_model("resnet8", COLOUR, 10, seed=0, norm="layer")
    with pytest.raises(ValueError, match="groups is 5; vgg11_gn takes a divisor"):
        build_model("vgg11_gn", COLOUR, 10, seed=0, groups=5)
    with pytest.raises(ValueError, match="version is 'printed'; cnn_digit5 takes 'code' or 'paper'"):
        build_model("cnn_digit5", COLOUR, 10, seed=0, version="printed")
    with pytest.raises(ValueError, match="version is 'printed'; alexnet_gn takes 'code' or 'paper'"):
        build_model("alexnet_gn", (3, 64, 64), 10, seed=0, version="printed")
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
    with pytest.raises(ValueError, match=r"model 'my_factories:tiny' named 'bais'\. Did you mean 'bias'"):
        build_model("my_factories:tiny", (3,), 2, seed=0, bais=False)
    with pytest.raises(ValueError, match=r"must return a torch\.nn\.Module"):
        build_model("my_factories:wrong", (3,), 2, seed=0, any_option=1)
    with pytest.raises(ValueError, match=r"'json:dumps' cannot be called with \(shape, classes\)"):
        build_model("json:dumps", (3,), 2, seed=0)
    with pytest.raises(
        ValueError, match=r"'hf' needs the option 'source' \(task\.model_options\.source\); it accepts source"
    ):
        build_model("hf", (3, 8, 8), 2, seed=0)
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
    there = printed(code).strip()
    model = build_model("cnn_digits", (1, 8, 8), 10, seed=4)
    assert sum(p.double().sum() for p in model.parameters()).item().hex() == there


def test_a_model_of_the_hub_is_read_without_running_its_code(monkeypatch):
    asked = {}

    def from_pretrained(origin, **options):
        asked.update(options)
        raise OSError("no such model")

    quiet = SimpleNamespace(
        get_verbosity=lambda: 0,
        set_verbosity=lambda level: None,
        set_verbosity_error=lambda: None,
        is_progress_bar_enabled=lambda: False,
        disable_progress_bar=lambda: None,
    )
    library = SimpleNamespace(
        utils=SimpleNamespace(logging=quiet),
        AutoConfig=SimpleNamespace(from_pretrained=from_pretrained),
        AutoModelForImageClassification=None,
    )
    monkeypatch.setattr(hf, "_extra", lambda name: library)
    with pytest.raises(LookupError, match="no such model"):
        hf._backbone("someone/model", None, True)
    assert asked == {"revision": "main", "trust_remote_code": False}
