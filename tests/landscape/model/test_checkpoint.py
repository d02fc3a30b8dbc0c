"""Names that do not fit, ties, frozen parts, foreign formats: read rightly, or refused in words that help."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import tarfile
import zipfile

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file, save_model
from torch import nn

import landscape
from landscape import make_task
from landscape.model.checkpoint import read_state
from landscape.model.foreign_tensors import found_in

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
Y = X[:, :3].argmax(1)
ENTROPY = nn.CrossEntropyLoss()


def net(seed: int = 3, width: int = 8) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 3))


def loss(task, model) -> float:
    return landscape.evaluate(task, [model], [[1.0]])["loss"].item()


def own(model: nn.Module) -> float:
    return ENTROPY(model.eval()(X), Y).item()


TASK = make_task(net(7), ENTROPY, (X, Y))


class Tied(nn.Module):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.e, self.h = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
        self.h.weight = self.e.weight

    def forward(self, inputs):
        return self.h(torch.tanh(self.e(inputs)))


class Scaled(nn.Module):
    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.l = nn.Linear(5, 3)
        self.register_buffer("scale", torch.full((5,), scale), persistent=False)

    def forward(self, inputs):
        return self.l(inputs * self.scale)


def test_buffers_that_are_not_saved_are_those_of_the_task(tmp_path):
    task, other = make_task(Scaled(), ENTROPY, (X, Y)), Scaled()
    nn.init.normal_(other.l.weight)
    torch.save(other.state_dict(), tmp_path / "a.pt")
    for given in (tmp_path / "a.pt", other.state_dict(), other):
        assert loss(task, given) == pytest.approx(own(other), rel=1e-6)


def test_tied_weights_are_read_under_either_name_and_refused_where_they_differ(tmp_path):
    model, task = Tied(1), make_task(Tied(0), ENTROPY, (X, Y))
    weight = model.e.weight.data
    states = {"e": {"e.weight": weight}, "h": {"h.weight": weight}, "both": model.state_dict()}
    for name, state in states.items():
        torch.save(state, tmp_path / f"{name}.pt")
        assert loss(task, tmp_path / f"{name}.pt") == loss(task, state) == pytest.approx(own(model), rel=1e-6)
    save_model(model, str(tmp_path / "own.safetensors"))
    assert loss(task, tmp_path / "own.safetensors") == pytest.approx(own(model), rel=1e-6)
    torch.save({"e.weight": weight, "h.weight": 2 * weight}, tmp_path / "untied.pt")
    with pytest.raises(
        ValueError, match=r"untied\.pt has other values in 'h\.weight' than in 'e\.weight', which are one"
    ):
        loss(task, tmp_path / "untied.pt")


@pytest.mark.filterwarnings("ignore:.*weight_norm.*deprecated")
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_earlier_and_later_names_of_norms_are_one(norm, tmp_path):
    def made(module, seed):
        torch.manual_seed(seed)
        model = nn.Sequential(getattr(module, norm)(nn.Linear(5, 3)))
        model(X)
        return model.eval()

    earlier, later = made(nn.utils, 1), made(nn.utils.parametrizations, 2)
    for into, of in ((earlier, later), (later, earlier)):
        torch.save(of.state_dict(), tmp_path / "a.pt")
        assert loss(make_task(into, ENTROPY, (X, Y)), tmp_path / "a.pt") == pytest.approx(own(of), rel=1e-5)


class Counting(nn.Module):
    """Counts its passes in training; `used` says whether its outputs depend on the number."""

    def __init__(self, used: bool) -> None:
        super().__init__()
        self.layer, self.used = nn.Linear(5, 3), used
        self.register_buffer("passes", torch.tensor(0))

    def forward(self, x):
        self.passes += int(self.training)
        return self.layer(x) * (1 - 0.9**self.passes if self.used else 1)


@pytest.mark.parametrize("used", [True, False])
def test_a_counter_that_the_outputs_depend_on_is_no_detail(used):
    x, y = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    task, trained = make_task(Counting(used), nn.CrossEntropyLoss(), (x, y)), Counting(used)
    for _ in range(4):
        trained(x)
    if not used:
        expected = nn.functional.cross_entropy(trained(x), y).item()
        assert landscape.loss(task, trained) == pytest.approx(expected, rel=1e-6)
        return
    for model in (trained, trained.state_dict()):
        with pytest.raises(ValueError, match="outputs depend on passes"):
            landscape.loss(task, model)


def test_frozen_values_that_differ_are_refused_and_absent_ones_are_those_of_the_task(tmp_path):
    base, other = net(3), net(4)
    for model in (base, other):
        model[0].requires_grad_(False)
    task = make_task(base, ENTROPY, (X, Y))
    head = {name: value for name, value in other.state_dict().items() if name.startswith("2.")}
    torch.save(head, tmp_path / "head.pt")
    joined = net(3)
    joined[2].load_state_dict(other[2].state_dict())
    assert loss(task, tmp_path / "head.pt") == pytest.approx(own(joined), rel=1e-6)
    for given in (other, other.state_dict()):
        with pytest.raises(
            ValueError, match=r"'0\.weight', which is not trained in the task's model, has other values"
        ):
            loss(task, given)
    half = {name: value.half() for name, value in joined.state_dict().items()}
    assert loss(task, half) == pytest.approx(own(joined), rel=1e-2)


def test_names_that_do_not_fit_are_told_with_the_nearest_and_both_counts(tmp_path):
    wrong = {name.replace("2.weight", "3.wight"): value for name, value in net().state_dict().items()}
    torch.save(wrong, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="another model") as refused:
        loss(TASK, tmp_path / "a.pt")
    told = str(refused.value)
    assert "3 of its 4 tensors are among the model's 4" in told
    assert "no '2.weight' (nearest: '3.wight')" in told and "no tensor '3.wight' (nearest: '2.weight')" in told
    assert "damaged" not in told
    torch.save(net(3, 9).state_dict(), tmp_path / "wide.pt")
    with pytest.raises(ValueError, match=r"'0\.weight' has shape \(9, 5\), the model has \(8, 5\) \(3 of 4 tensors"):
        loss(TASK, tmp_path / "wide.pt")
    torch.save({"net." + name: v for name, v in net().state_dict().items()} | {"c": torch.ones(3)}, tmp_path / "l.pt")
    with pytest.raises(ValueError, match=r"no tensor 'c' .*Choose a part of it by '.*l\.pt\[net\]'"):
        loss(TASK, tmp_path / "l.pt")
    assert loss(TASK, f"{tmp_path / 'l.pt'}[net]") == pytest.approx(own(net()), rel=1e-6)
    with pytest.raises(ValueError, match=r"l\.pt has nothing under \[ema\]; it has one at its top \(5 tensors\)"):
        loss(TASK, tmp_path / "l.pt[ema]")


def test_of_two_state_dicts_the_one_that_fits_is_read_and_of_two_that_fit_none(tmp_path):
    torch.save({"generator": net().state_dict(), "critic": net(3, 2).state_dict()}, tmp_path / "gan.pt")
    assert loss(TASK, tmp_path / "gan.pt") == pytest.approx(own(net()), rel=1e-6)
    torch.save({"clients": [net(1).state_dict(), net(2).state_dict()], "round": 4}, tmp_path / "all.pt")
    with pytest.raises(ValueError, match=r"has 2 state dicts: \[clients\]\[0\] .*choose one"):
        loss(TASK, tmp_path / "all.pt")
    assert loss(TASK, tmp_path / "all.pt[clients][1]") == pytest.approx(own(net(2)), rel=1e-6)
    (tmp_path / "odd[1].pt").write_bytes((tmp_path / "gan.pt").read_bytes())  # brackets in a name are no choice
    (tmp_path / "x.pt[1]").write_bytes((tmp_path / "gan.pt").read_bytes())
    assert loss(TASK, tmp_path / "odd[1].pt") == loss(TASK, tmp_path / "x.pt[1]") == loss(TASK, tmp_path / "gan.pt")


def recipes(path) -> list[str]:
    """The ways to choose that the refusal of a file prints."""
    with pytest.raises(ValueError, match=r"'.*'") as refused:
        loss(TASK, path)
    return re.findall(rf"'({re.escape(str(path))}\[.*?\])'", str(refused.value))


def test_what_a_refusal_prints_as_a_choice_is_read(tmp_path):
    one, two = net(1).state_dict(), net(2).state_dict()
    parts = {f"{name}.{key}": value for name, state in (("student", one), ("m.t", two)) for key, value in state.items()}
    odd = {"a[0]": one, "b/c  d": two, 3: net(3).state_dict()}
    for name, content in {"p": parts, "q": {"state_dict": parts}, "r": {"x": [odd]}, "s": odd}.items():
        torch.save(content, tmp_path / f"{name}.pt")
        found = recipes(tmp_path / f"{name}.pt")
        assert found
        losses = [own(net(seed)) for seed in (1, 2, 3)]
        assert all(any(loss(TASK, recipe) == pytest.approx(one, rel=1e-6) for one in losses) for recipe in found)
    for key, seed in {"a(0)": 1, "b|c d": 2, "3": 3}.items():
        assert loss(TASK, f"{tmp_path / 's.pt'}[{key}]") == pytest.approx(own(net(seed)), rel=1e-6)


def test_a_state_dict_that_occurs_twice_has_both_places_and_lists_count_from_both_ends(tmp_path):
    one, two, three = (net(seed).state_dict() for seed in (1, 2, 3))
    torch.save({"last": one, "best": one}, tmp_path / "a.pt")
    torch.save({"server": one, "clients": [one, two, one, None], "all": ([two, three],)}, tmp_path / "b.pt")
    looped: dict = {"model": one}
    looped["self"] = looped
    torch.save(looped, tmp_path / "c.pt")
    places = {"a.pt": 1, "a.pt[last]": 1, "a.pt[best]": 1, "b.pt[server]": 1, "c.pt": 1, "c.pt[model]": 1}
    places |= {"b.pt[clients][0]": 1, "b.pt[clients][1]": 2, "b.pt[clients][-2]": 1, "b.pt[all][0][-1]": 3}
    for place, seed in places.items():
        assert loss(TASK, tmp_path / place) == pytest.approx(own(net(seed)), rel=1e-6)
    for place in ("b.pt", "b.pt[clients]", "b.pt[all]"):
        with pytest.raises(ValueError, match=r"b\.pt has \d state dicts: .*choose one, as in"):
            loss(TASK, tmp_path / place)
    with pytest.raises(ValueError, match=r"nothing under \[clients\]\[-1\]"):  # it is None
        loss(TASK, tmp_path / "b.pt[clients][-1]")
    with pytest.raises(ValueError, match=r"the model given has 2 state dicts: \[a\] .*; give one of them\."):
        loss(TASK, {"a": one, "b": two})
    with pytest.raises(ValueError, match=r"Give the tensors below net alone\."):
        loss(TASK, {**{f"net.{name}": value for name, value in one.items()}, "c": torch.ones(3)})


def test_tables_that_share_parts_are_refused_before_they_fill_memory(tmp_path):
    shared: list = [net().state_dict()]
    for _ in range(3):
        shared = [shared] * 40
    torch.save(shared, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt: it has more than 10000 state dicts"):
        loss(TASK, tmp_path / "a.pt")


def test_a_state_dict_in_memory_may_be_wrapped_and_nested_like_a_file():
    state = {"model": {f"module.{name}": value for name, value in net().state_dict().items()}, "epoch": 3}
    assert loss(TASK, state) == loss(TASK, nn.DataParallel(net())) == pytest.approx(own(net()), rel=1e-6)
    with pytest.raises(ValueError, match="holds a table of a, b and no tensors by name; give model"):
        loss(TASK, {"a": 1, "b": "x"})


def test_quantised_weights_are_refused(tmp_path):
    state = net().state_dict()
    torch.save(state | {"0.weight": state["0.weight"].to(torch.int8)}, tmp_path / "a.pt")
    with pytest.raises(
        ValueError, match=r"'0\.weight' is torch\.int8, the model has torch\.float32; save it unquantised"
    ):
        loss(TASK, tmp_path / "a.pt")


def test_the_statistics_of_an_averaged_model_are_told(tmp_path):
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    torch.save(torch.optim.swa_utils.AveragedModel(model).state_dict(), tmp_path / "swa.pt")
    with pytest.warns(UserWarning, match=r"use_buffers=True.*update_bn"):
        read_state(tmp_path / "swa.pt", make_task(model, ENTROPY, (X, Y)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_models_in_half_precision_are_computed_in_float32_and_it_is_said(dtype, tmp_path):
    half = net().to(dtype)
    single = net().to(dtype).float()
    torch.save(half.state_dict(), tmp_path / "half.pt")
    task = make_task(half, ENTROPY, (X, Y))
    said = f"{str(dtype).removeprefix('torch.')}, computed in float32"
    assert task.theta.dtype == torch.float32 and next(half.parameters()).dtype == dtype
    for ds in (
        landscape.surface(task, landscape.line(task.theta, 1.1 * task.theta, points=3)),
        landscape.surface(TASK, half, net(2), metrics=("loss",)),
        landscape.surface(TASK, tmp_path / "half.pt", net(2), metrics=("loss",)),
        landscape.hessian(task, task.theta, k=1),
        landscape.hessian(TASK, half.state_dict(), k=1),
    ):
        assert ds.attrs["model_dtype"] == said
    assert loss(task, half) == loss(TASK, tmp_path / "half.pt") == pytest.approx(own(single), rel=1e-6)
    assert loss(task, task.theta.to(dtype)) == pytest.approx(own(single), rel=1e-6)
    assert "model_dtype" not in landscape.hessian(TASK, net(), k=1).attrs


def foreign(path):
    """Files of formats that are not read, and a part of the command that converts each."""
    (path / "keras.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    (path / "lfs.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (path / "page.pt").write_text("<!DOCTYPE html><html></html>")
    (path / "gguf.bin").write_bytes(b"GGUF" + bytes(100))
    (path / "packed.pt").write_bytes(gzip.compress(b"x" * 99))
    (path / "plain.pkl").write_bytes(pickle.dumps({"w": np.ones(3)}))
    (path / "empty.pt").write_bytes(b"")
    (path / "config.json").write_text("{}")
    np.save(path / "vector.npy", np.ones(3))
    np.savez(path / "objects.npz", w=np.array([1, None], dtype=object))
    optimiser = torch.optim.Adam(net().parameters())
    contents = {"number": torch.tensor(3.0), "matrix": torch.ones(2, 3), "nothing": {}, "text": "x"}
    contents |= {"adam": optimiser.state_dict(), "adam2": {"optimizer": optimiser.state_dict(), "epoch": 3}}
    for name, content in contents.items():
        torch.save(content, path / f"{name}.pt")
    (path / "net.onnx").write_bytes(b"\x08\x07\x12\x07pytorch" + bytes(99))
    with zipfile.ZipFile(path / "keras.keras", "w") as file:
        file.writestr("config.json", "{}")
        file.writestr("model.weights.h5", b"\x89HDF")
    with zipfile.ZipFile(path / "zip.pt", "w") as file:
        file.writestr("readme.txt", "no tensors")
    with tarfile.open(path / "tar.tar", "w") as file:
        file.add(path / "keras.h5", "keras.h5")
    return {
        "keras.h5": r"a model of Keras.*KERAS_BACKEND=torch",
        "keras.keras": r"a model of Keras.*keras\.saving\.load_model",
        "lfs.pt": "git lfs pull",
        "page.pt": "a web page",
        "gguf.bin": "GGUF",
        "packed.pt": "gunzip",
        "plain.pkl": r"pickle of Python, which may run any code.*pickle\.load",
        "empty.pt": "in no format of checkpoints",
        "config.json": "a table of settings.*give the folder that it lies in",
        "vector.npy": r"one array of numpy.*torch\.from_numpy\(numpy\.load\('.*vector\.npy'\)\)",
        "objects.npz": "holds a table of w and no tensors by name",
        "number.pt": r"holds one tensor of shape \(\) and no tensors by name",
        "matrix.pt": r"holds one tensor of shape \(2, 3\) and",
        "nothing.pt": "holds an empty table and",
        "text.pt": "holds a str and",
        "adam.pt": "holds the state of an optimiser and",
        "adam2.pt": "holds the state of an optimiser and",
        "net.onnx": "ONNX",
        "zip.pt": "zip file without tensors",
        "tar.tar": "tar -xf",
    }


def test_arrays_of_numpy_in_a_pickle_are_tensors_where_there_are_no_others(tmp_path):
    state = net().state_dict()
    arrays = {name: value.numpy() for name, value in state.items()}
    arrays["0.weight"] = np.asfortranarray(arrays["0.weight"].astype(">f8"))
    by_way = {"names": arrays, "table": {"model": arrays, "epoch": 3}, "order": list(arrays.values())}
    by_way["beside"] = {**state, "seen": np.ones(3), "accuracy": np.float64(0.9)}
    by_way["history"] = {"model": state, "curves": {"loss": np.ones(9)}}
    for name, content in by_way.items():
        for legacy in (False, True):
            torch.save(content, tmp_path / f"{name}.pt", _use_new_zipfile_serialization=not legacy)
            assert loss(TASK, tmp_path / f"{name}.pt") == pytest.approx(own(net()), rel=1e-6)
            assert len(found_in(tmp_path / f"{name}.pt")) == 1
    torch.save({"w": np.array([1, None], dtype=object), "t": np.array(["a"])}, tmp_path / "objects.pt")
    with pytest.raises(ValueError, match=r"objects\.pt holds a table of w, t and no tensors by name"):
        found_in(tmp_path / "objects.pt")


def with_statistics(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    model(X)
    return model.eval()


def test_a_list_of_arrays_is_the_model_that_it_was_made_of():
    task, models = make_task(with_statistics(0), ENTROPY, (X, Y)), [with_statistics(seed) for seed in (1, 2)]
    lists = [[value.numpy() for value in model.state_dict().values()] for model in models]
    averaged = [np.float64(array) if array.ndim == 0 else array.astype(np.float64) for array in lists[0]]
    tensors = list(models[0].state_dict().values())
    boxed = np.empty(len(lists[0]), object)
    boxed[:] = lists[0]
    for given in (lists[0], tuple(lists[0]), averaged, tensors, boxed):
        assert landscape.loss(task, given) == loss(task, given) == pytest.approx(own(models[0]), rel=1e-6)
    pairs = [
        (lambda one, _: landscape.hessian(task, one, k=2)),
        (lambda one, _: landscape.trace(task, one)),
        (lambda one, _: landscape.surface(task, one)),
        (lambda one, two: landscape.surface(task, [one, two])),
        (lambda one, two: landscape.barrier(task, one, two, points=3)),
    ]
    for made in pairs:
        assert made(*lists).equals(made(*models))
    wrong = [
        (lists[0][:-1], "the model given has 8 arrays without names, the model's state dict has 9"),
        ([*lists[0][:-1], np.ones(4)], r"array 8 has shape \(4,\), '2\.bias' of the model's state dict has \(3,\)"),
        ([*lists[0][:-1], np.array([None])], "array of type object was given; give arrays of numbers"),
        (models, "theta is a list of 2; give a vector"),
        ([task.theta, task.theta], "theta is a list of 2; give a vector"),
        (lists, "theta is a list of 2; give a vector"),
        ([], "theta is empty; give a vector"),
        ([[1.0, 2.0], [3.0]], "theta is a list of 2; give a vector"),
    ]
    for given, message in wrong:
        for function in (landscape.loss, landscape.hessian, landscape.trace):
            with pytest.raises(ValueError, match=message):
                function(task, given)


def test_foreign_formats_are_refused_by_name_with_what_converts_them(tmp_path):
    for name, message in foreign(tmp_path).items():
        with pytest.raises(ValueError, match=message) as refused:
            loss(TASK, tmp_path / name)
        assert name in str(refused.value) and "\n" not in str(refused.value)


def test_the_command_that_converts_an_array_makes_a_file_that_is_read(tmp_path):
    np.save(tmp_path / "v.npy", torch.cat([value.ravel() for value in net().state_dict().values()]).numpy())
    with pytest.raises(ValueError, match=r"v\.npy is one array") as refused:
        loss(TASK, tmp_path / "v.npy")
    (command,) = re.findall(r'python -c "(.*)"', str(refused.value))
    exec(command)
    assert loss(TASK, tmp_path / "v-state.pt") == pytest.approx(own(net()), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_quantised_models_are_named_as_such(tmp_path):
    mixed = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Linear(8, 3))
    for model in (net(), mixed):
        small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
        torch.save(small, tmp_path / "whole.pt")
        torch.save(small.state_dict(), tmp_path / "state.pt")
        task = make_task(model, ENTROPY, (X, Y))
        for given in (small, small.state_dict(), tmp_path / "state.pt", tmp_path / "whole.pt"):
            with pytest.raises(ValueError, match="a quantised model"):
                loss(task, given)


@pytest.mark.filterwarnings("ignore")
def test_torchscript_exports_and_unzipped_files_are_refused_by_name(tmp_path):
    torch.jit.script(net()).save(str(tmp_path / "script.pt"))
    torch.save(net().state_dict(), tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as file:
        file.extractall(tmp_path)
        file.extractall(tmp_path / "outer")
    dcp.save({"w": torch.ones(3)}, checkpoint_id=tmp_path / "many", no_dist=True)
    torch.export.save(torch.export.export(net(), (X,)), tmp_path / "program.pt2")
    for name, message in {
        "script.pt": r"is TorchScript.*torch\.jit\.load\('.*script\.pt'\)\.state_dict\(\)",
        "program.pt2": r"a program of torch\.export.*torch\.export\.load",
        "a": r"unzipped file of torch\.save.*zip -0 -r",
        "outer": r"outer.a is an unzipped file of torch\.save.*outer && zip -0 -r NEW\.pt a",
        "many": "dcp_to_torch",
    }.items():
        with pytest.raises(ValueError, match=message):
            loss(TASK, tmp_path / name)


def test_a_folder_names_what_it_has(tmp_path):
    (tmp_path / "f").mkdir()
    save_file(net().state_dict(), tmp_path / "f" / "last.safetensors")
    with pytest.raises(LookupError, match=r"has no model\.safetensors or .*; it has last\.safetensors; give the"):
        loss(TASK, tmp_path / "f")
    index = tmp_path / "f" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(net().state_dict(), "last.safetensors")}))
    assert loss(TASK, index) == loss(TASK, tmp_path / "f") == pytest.approx(own(net()), rel=1e-6)
    index.write_text('{"weight_map": {"0.weight": "absent.safetensors"}}')
    with pytest.raises(
        LookupError, match=r"has no absent\.safetensors, which its model\.safetensors\.index\.json names"
    ):
        loss(TASK, tmp_path / "f")


class Twice(nn.Module):
    """Its first layer is called on the inputs and, as DoRA does, on the columns of the identity."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.a, self.b = nn.Linear(5, 8, bias=False), nn.Linear(8, 3)

    def forward(self, inputs):
        return self.b(self.a(inputs) / self.a(torch.eye(5)).norm(dim=0))


def test_a_layer_that_is_called_twice_is_not_computed_once():
    task, models = make_task(Twice(0), ENTROPY, (X, Y)), [Twice(1), Twice(2)]
    found = landscape.evaluate(task, models, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))["loss"]
    middle = Twice(0)
    with torch.no_grad():
        for part, one, two in zip(middle.parameters(), *(model.parameters() for model in models), strict=True):
            part.copy_((one + two) / 2)
    assert found.tolist() == pytest.approx([own(models[0]), own(middle)], rel=1e-5)
