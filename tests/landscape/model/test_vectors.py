"""State dicts and modules where models are taken as vectors: the numbers of the vectors, or one clear line."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.torch import save_file
from torch import Tensor, nn

import landscape
from landscape import Layout, Samples, Task

MODELS = ("theta", "a", "b", "w1", "w2", "w3", "models", "basis", "direction")
"""What arguments that are models are called."""

FEW: dict[str, dict[str, Any]] = {
    "evaluate": {"coefficients": torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])},
    "connecting_curve": {"steps": 2},
    "density": {"points": 101},
    "ntk": {"samples": Samples(torch.ones(2, 3), torch.tensor([0, 1]))},
    "step_cost": {"repeats": 1},
    "ball_sharpness": {"steps": 1, "directions": 2},
    "noise_robustness": {"draws": 1, "mean": (0.5,), "std": (0.05,)},
}
"""Further arguments, beside the smallest of what is common."""


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions of landscape that take models."""
    public = {name: getattr(landscape, name) for name in landscape.__all__}
    beside = {
        "weight_norm": "norms",
        "weight_histogram": "norms",
        "subset_errors": "ensemble",
    }
    public |= {
        name: getattr(importlib.import_module(f"landscape.measures.{file}"), name) for name, file in beside.items()
    }
    del public["surface"]  # takes models as positional arguments, or a sweep
    plain = {name: found for name, found in public.items() if inspect.isfunction(found)}
    return {name: found for name, found in plain.items() if set(MODELS) & set(inspect.signature(found).parameters)}


FUNCTIONS = functions()
WITH_TASK = [name for name, found in FUNCTIONS.items() if "task" in inspect.signature(found).parameters]
WITHOUT_TASK = sorted(set(FUNCTIONS) - set(WITH_TASK))
NO_BUFFERS = ("align", "aligned_barrier")
"""Functions that refuse models with buffers."""

CASES = [
    pytest.param(name, norm, marks=() if norm or name in NO_BUFFERS else pytest.mark.seconds)
    for name in WITH_TASK
    for norm in (False, True)
    if not (norm and name in NO_BUFFERS)
]


def net(seed: int, norm: bool) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4) if norm else nn.Identity(), nn.Linear(4, 2)]
    made = nn.Sequential(*layers)
    if norm:
        made.train()(torch.randn(9, 3) + seed)  # statistics of its own
    return made.eval()


def task(norm: bool) -> Task:
    generator = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(12, 3, generator=generator), torch.arange(12) % 2)
    return Task(net(9, norm), {"train": samples, "test": samples})


def called(name: str, task: Task | None, models: list[Any], **more: Any) -> Any:
    """The function on as many models as it takes."""
    known = inspect.signature(FUNCTIONS[name]).parameters
    places = [place for place in known if place in MODELS]
    given: dict[str, Any] = (
        {place: models if place in ("models", "basis") else models[row] for row, place in enumerate(places)}
        | {"points": 5, "products": 6, "probes": 1, "steps": 3}
        | {"weights": torch.ones(3), "task": task}
    )
    smallest = {key: value for key, value in given.items() if key in known}
    return FUNCTIONS[name](**smallest | FEW.get(name, {}) | more)


def buffers_of(name: str, task: Task, states: list[dict[str, Tensor]]) -> dict[str, Any]:
    """The buffers that a user of vectors would have to give."""
    known = inspect.signature(FUNCTIONS[name]).parameters
    if "buffers" not in known or not task.layout.buffer_size:
        return {}
    rows = torch.stack([task.layout.buffer_vector(state) for state in states])
    places = [place for place in known if place in MODELS]
    single = places == ["theta"]
    return {"buffers": rows[0] if single else rows[: len(rows) if places[0] in ("models", "basis") else len(places)]}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, xr.Dataset):
        return bool(timeless(one).equals(timeless(other)))
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, float | list):
        return one == other
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return all(same(getattr(one, key), getattr(other, key)) for key in vars(one) if torch.is_tensor(getattr(one, key)))


def timeless(ds: xr.Dataset) -> xr.Dataset:
    """Without measured times, which differ from call to call."""
    return ds.drop_vars([name for name, values in ds.data_vars.items() if values.attrs.get("units") == "s"])


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_state_dicts_and_modules_give_the_numbers_of_their_vectors(name, norm):
    one, modules = task(norm), [net(seed, norm) for seed in (1, 2, 3)]
    states = [module.state_dict() for module in modules]
    vectors = [one.layout.theta(state) for state in states]
    places = set(inspect.signature(FUNCTIONS[name]).parameters)
    stacked: Any = torch.stack(vectors) if places & {"models", "basis"} else vectors
    expected = called(name, one, stacked, **buffers_of(name, one, states))
    assert same(expected, called(name, one, states))
    assert same(expected, called(name, one, modules))


@pytest.mark.parametrize("name", WITHOUT_TASK)
@pytest.mark.parametrize("kind", ["state dict", "module"])
def test_a_function_without_a_task_says_how_to_make_vectors(name, kind):
    modules = [net(seed, False) for seed in (1, 2, 3)]
    given = modules if kind == "module" else [module.state_dict() for module in modules]
    sweep = {"sweep": None} if name == "project" else {}
    with pytest.raises(ValueError, match=rf"{name}: .* is a {kind}.*; it takes vectors.*task\.layout\.theta\(model\)"):
        called(name, None, given, **sweep)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", [None, 3, []], ids=["None", "number", "empty"])
def test_what_is_no_model_is_refused_in_one_line(name, value):
    sweep = {"sweep": None} if name == "project" else {}
    wrong = value if value == [] else [value] * 3
    with pytest.raises(ValueError, match="give a vector") as refused:
        called(name, task(False) if name in WITH_TASK else None, wrong or [[], [], []], **sweep)
    assert "\n" not in str(refused.value)


def written(folder: Path, model: nn.Module, kind: str) -> Path:
    """A checkpoint of a model, of each kind that is read."""
    state, path = model.state_dict(), folder / f"{len(list(folder.iterdir()))}{kind}"
    if kind == "folder":
        path.mkdir()
        save_file(state, path / "model.safetensors")
    elif kind == "several files":
        path.mkdir()
        names = {name: f"part-{place % 2}.safetensors" for place, name in enumerate(state)}
        for file in set(names.values()):
            save_file({name: state[name] for name in state if names[name] == file}, path / file)
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    elif kind == ".safetensors":
        save_file(state, path)
    elif kind == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in state.items()})
    else:
        torch.save({"state_dict": state, "epoch": 3} if kind == ".ckpt" else state, path)
    return path


FORMS = (".pt", ".pth", ".ckpt", ".safetensors", ".npz", "folder", "several files")


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("kind", "norm"),
    [(kind, kind in (".pt", "folder")) for kind in FORMS] + [("folder", False)],
)
def test_a_checkpoint_of_every_kind_gives_the_numbers_of_its_model(kind, norm, tmp_path):
    one, modules = task(norm), [net(seed, norm) for seed in (1, 2, 3)]
    paths = [written(tmp_path, module, kind) for module in modules]
    by_path = landscape.surface(one, *map(str, paths))
    assert by_path.mark.values.tolist() == [path.stem for path in paths] + ["mean"]
    assert same(landscape.surface(one, *modules).assign_coords(mark=by_path.mark), by_path)
    assert same(landscape.hessian(one, modules[0], k=2), landscape.hessian(one, paths[0], k=2))


@pytest.mark.parametrize("name", WITHOUT_TASK)
def test_a_function_without_a_task_takes_one_first_and_marks_have_the_names_of_files(name, tmp_path):
    one, modules = task(True), [net(seed, True) for seed in (1, 2, 3)]
    paths = [written(tmp_path, module, ".pt") for module in modules]
    more = {"sweep": landscape.line(one, *modules[:2])} if name == "project" else {}
    places = [place for place in inspect.signature(FUNCTIONS[name]).parameters if place in MODELS]
    single = places[0] not in ("models", "basis")
    first = [paths[: len(places)], modules[: len(places)]] if single else [[paths], [modules]]
    by_path, by_module = (FUNCTIONS[name](one, *models, **more) for models in first)
    if hasattr(by_path, "marks"):
        assert by_path.marks[0].name == ("model" if name == "scaling" else "0")
        by_path = replace(by_path, marks=by_module.marks)
    elif isinstance(by_path, xr.Dataset) and "mark" in by_path.coords:
        assert by_path.mark.values[0] == "0"
        by_path = by_path.assign_coords(mark=by_module.mark)
    assert same(by_path, by_module)


def test_marks_with_files_of_one_name_have_their_folders(tmp_path):
    paths = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        paths.append(written(tmp_path / folder, net(len(paths), False), ".pt"))
    assert [mark.name for mark in landscape.line(task(False), *paths).marks] == ["first/0", "second/0", "mean"]


def test_half_precision_is_read_in_the_precision_of_the_task(tmp_path):
    state = {name: value.half() for name, value in net(1, False).state_dict().items()}
    torch.save(state, tmp_path / "half.pt")
    ds = landscape.hessian(task(False), tmp_path / "half.pt", k=1)
    expected = landscape.hessian(task(False), {name: value.float() for name, value in state.items()}, k=1)
    assert same(ds, expected)


@pytest.mark.parametrize("norm", [False, True])
def test_a_checkpoint_of_the_module_around_a_model_is_read_as_that_part(norm, tmp_path):
    one, whole = task(norm), {f"model.net.{name}": value for name, value in net(1, norm).state_dict().items()}
    torch.save({"state_dict": whole, "epoch": 3}, tmp_path / "last.ckpt")
    assert same(landscape.hessian(one, tmp_path / "last.ckpt", k=1), landscape.hessian(one, net(1, norm), k=1))
    torch.save(whole | {"scale": torch.ones(1)}, tmp_path / "more.pt")
    with pytest.raises(
        ValueError, match=r"the model has no tensor 'scale' .*Choose a part of it by '.*\[model\]\[net\]'"
    ):
        landscape.hessian(one, tmp_path / "more.pt")
    assert same(
        landscape.hessian(one, f"{tmp_path}/more.pt[model][net]", k=1), landscape.hessian(one, net(1, norm), k=1)
    )
    torch.save(dict(list(whole.items())[1:]), tmp_path / "less.pt")
    with pytest.raises(ValueError, match=r"less\.pt: .* it has no '0\.weight' \(nearest: "):
        landscape.hessian(one, tmp_path / "less.pt")


def test_a_barrier_has_the_names_of_its_files(tmp_path):
    paths = [written(tmp_path, net(seed, False), ".pt") for seed in (1, 2)]
    assert landscape.barrier(task(False), *paths).mark.values.tolist() == ["0", "1", "mean"]


def test_a_checkpoint_that_is_absent_or_foreign_is_named_and_never_run(tmp_path):
    one = task(False)
    with pytest.raises(LookupError, match=r"no checkpoint nowhere\.pt; give a file"):
        landscape.hessian(one, "nowhere.pt")
    with pytest.raises(LookupError, match=r"has no model\.safetensors or pytorch_model\.bin"):
        landscape.hessian(one, tmp_path)
    torch.save(nn.Linear(3, 3).state_dict(), tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other\.pt: .*it has no '\d\.weight' \(nearest: 'weight'\).*was it trained"):
        landscape.hessian(one, tmp_path / "other.pt")
    torch.save({"0.weight": torch.zeros(4, 3)}, tmp_path / "part.pt")
    with pytest.raises(ValueError, match=r"part\.pt: 1 of its 1 tensors .*it has no '0\.bias'"):
        landscape.hessian(one, tmp_path / "part.pt")
    torch.save(net(1, False), tmp_path / "module.pt")
    assert same(landscape.hessian(one, tmp_path / "module.pt", k=1), landscape.hessian(one, net(1, False), k=1))
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"0.weight": "../part.pt"}}')
    with pytest.raises(ValueError, match="it names files outside its folder"):
        landscape.hessian(one, tmp_path)


def test_a_sweep_says_how_it_is_drawn():
    sweep = landscape.line(task(False), net(1, False), net(2, False))
    with pytest.raises(AttributeError, match=r"landscape\.surface\(task, sweep\)\.plot\(\) evaluates and draws it"):
        sweep.plot()
    assert not hasattr(sweep, "points") and pickle.loads(pickle.dumps(sweep)).shape == sweep.shape


@pytest.mark.seconds
def test_models_make_the_usual_sweep_and_nothing_stands_beside_a_sweep():
    one, modules = task(False), [net(seed, False) for seed in range(5)]
    kinds = {1: "random_plane", 2: "line", 3: "plane", 4: "principal_plane", 5: "principal_plane"}
    for count, kind in kinds.items():
        assert landscape.surface(one, *modules[:count], metrics=("loss",)).analysis == kind
        assert landscape.surface(one, modules[:count], metrics=("loss",)).analysis == kind
    with pytest.raises(ValueError, match="give either the sweep or the models"):
        landscape.surface(one, landscape.line(one, *modules[:2]), modules[2])
    with pytest.raises(ValueError, match=r"there is no model in \[\]; give a sweep"):
        landscape.surface(one, [])


def test_a_state_dict_in_a_table_is_read_and_one_of_another_model_is_refused_by_name():
    one, state = task(False), net(1, False).state_dict()
    expected = landscape.top_eigenvalues(one, state, k=1)
    assert same(landscape.top_eigenvalues(one, {"model": state, "epoch": 3}, k=1), expected)
    arrays = {key: value.numpy() for key, value in state.items()}
    assert same(landscape.top_eigenvalues(one, arrays, k=1), expected)
    with pytest.raises(ValueError, match=r"the model given: .*it has no '0\.weight' \(nearest: '\w\.weight'\)"):
        landscape.top_eigenvalues(one, {"a.weight": state["0.weight"], "b": state["0.bias"]})
    with pytest.raises(ValueError, match="was given; give a module or its state dict"):
        one.layout.theta(one.theta)


def test_outputs_are_those_of_the_module_also_with_batch_normalisation():
    one, other = task(True), net(1, True)
    with torch.no_grad():
        expected = other(one.samples["test"].inputs)
    assert torch.allclose(one.outputs(other, "test"), expected)
    assert torch.equal(one.outputs(other, "test"), one.outputs(other.state_dict(), "test"))


def test_vectors_and_state_dicts_together_are_refused_where_buffers_would_be_a_guess():
    one, state = task(True), net(1, True).state_dict()
    with pytest.raises(ValueError, match="some models are vectors without the floating buffers"):
        landscape.barrier(one, one.theta.theta, state)
    plain = task(False)
    state = net(1, False).state_dict()
    assert same(
        landscape.barrier(plain, plain.theta, state),
        landscape.barrier(plain, plain.theta, Layout.theta(plain.layout, state)),
    )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_array_has_the_numbers_of_its_tensor(kind):
    samples = Samples(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 2)
    task = landscape.make_task(nn.Linear(3, 2), nn.CrossEntropyLoss(), {"test": samples, "train": samples})
    one, two = torch.full((8,), 0.25), torch.arange(8) / 8
    tensors, arrays = (one, two), (one.numpy().astype(kind), two.numpy().astype(kind))
    assert landscape.barrier(task, *arrays, points=5).equals(landscape.barrier(task, *tensors, points=5))
    assert landscape.hessian(task, arrays[1], k=2).equals(landscape.hessian(task, two, k=2))
