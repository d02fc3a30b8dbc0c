"""A task of whatever people have: modules and factories, any loss, data of every usual kind, with the same numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

import landscape
from landscape.task import cross_entropy

X = torch.randn(23, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(23) % 3
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    TRACED = torch.jit.trace(nn.Linear(5, 3), X)


class Items(Dataset):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return X[index], int(Y[index])


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(zip(X, Y.tolist(), strict=True))


class Named(Dataset):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input": X[index], "label": int(Y[index]), "text": "a"}


def hugging_face(**columns: Any) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({name: np.asarray(values).tolist() for name, values in columns.items()})


DATA = {
    "tensors": lambda: (X, Y),
    "arrays": lambda: (X.double().numpy(), Y.numpy().astype(np.int32)),
    "TensorDataset": lambda: TensorDataset(X, Y),
    "Dataset": Items,
    "Dataset of tables": Named,
    "IterableDataset": Stream,
    "DataLoader": lambda: DataLoader(Items(), batch_size=7),
    "shuffled, incomplete DataLoader": lambda: DataLoader(Items(), batch_size=7, shuffle=True, drop_last=True),
    "DataLoader of a stream": lambda: DataLoader(Stream(), batch_size=4),
    "Hugging Face": lambda: hugging_face(pixels=X, label=Y),
    "table": lambda: {"input": X, "labels": Y},
    "samples": lambda: landscape.Samples(X, Y),
}


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.seconds if kind == "Hugging Face" else ()) for kind in DATA]
)
def test_data_of_every_kind_gives_the_same_samples(kind):
    task = landscape.make_task(net, nn.CrossEntropyLoss(), {"train": DATA[kind](), "test": (X[:9], Y[:9])})
    samples = task.samples["train"]
    assert torch.equal(samples.inputs, X) and torch.equal(samples.targets, Y)
    assert [len(part) for part in task.samples.values()] == [9, 23] and task.metrics
    single = landscape.make_task(net, nn.CrossEntropyLoss(), DATA[kind]())
    assert torch.equal(single.samples["test"].inputs, X)


LOSSES = {
    "module": nn.CrossEntropyLoss(),
    "function": F.cross_entropy,
    "per sample": nn.CrossEntropyLoss(reduction="none"),
    "own mean": lambda outputs, targets: F.cross_entropy(outputs, targets),
    "smoothed": nn.CrossEntropyLoss(label_smoothing=0.1),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_is_that_of_torch(kind):
    task = landscape.make_task(net(), LOSSES[kind], (X, Y))
    expected = LOSSES[kind](net()(X), Y).mean()
    values = task.per_sample(task.outputs(task.theta, "train"), Y)
    assert values.shape == (23,)
    torch.testing.assert_close(values.mean(), expected)
    assert (task.loss is cross_entropy) == (kind in ("module", "function", "per sample"))


def test_weights_beside_those_of_the_loss_are_refused():
    x, y, weight = torch.randn(40, 4), torch.arange(40) % 3, torch.tensor([1.0, 5.0, 0.2])
    model = nn.Linear(4, 3)
    for loss in (
        nn.CrossEntropyLoss(weight=weight, reduction="none"),
        lambda outputs, targets: F.cross_entropy(outputs, targets, weight, reduction="none"),
    ):
        with pytest.raises(ValueError, match="would count the weights twice"):
            landscape.make_task(model, loss, (x, y), weight=weight)
    plain = nn.CrossEntropyLoss(reduction="none")
    expected = float(F.cross_entropy(model(x), y, weight).detach())
    for loss, given in ((plain, weight), (nn.CrossEntropyLoss(weight=weight), None)):
        found = landscape.loss(landscape.make_task(model, loss, (x, y), weight=given), model)
        assert found == pytest.approx(expected, rel=1e-5)


def test_means_over_several_outputs_are_means_per_sample():
    targets = torch.randn(23, 3, generator=torch.Generator().manual_seed(2))
    for loss in (nn.MSELoss(), nn.SmoothL1Loss(), F.mse_loss):
        task = landscape.make_task(net(), loss, (X, targets))
        values = task.per_sample(net()(X), targets)
        torch.testing.assert_close(values.mean(), loss(net()(X), targets))
        assert not task.metrics


def test_a_sampler_that_selects_is_respected_and_no_random_state_moves():
    some = DataLoader(Items(), batch_size=4, sampler=torch.utils.data.SubsetRandomSampler([3, 1, 8]))
    model, before = net(), torch.random.get_rng_state()
    task = landscape.make_task(model, nn.CrossEntropyLoss(), some)
    assert sorted(task.samples["train"].targets.tolist()) == sorted(Y[[3, 1, 8]].tolist())
    drawn = DataLoader(Items(), batch_size=4, sampler=RandomSampler(range(23)))
    assert len(landscape.make_task(model, nn.CrossEntropyLoss(), drawn).samples["train"]) == 23
    assert torch.equal(torch.random.get_rng_state(), before)


class Drawn(Items):
    def __getitem__(self, index):
        inputs, target = super().__getitem__(index)
        return inputs + torch.randn(inputs.shape), target


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (Drawn(), "a sample has other values when it is read again"),
        (DataLoader(Drawn(), batch_size=4), "a sample has other values when it is read again"),
        (
            DataLoader(Items(), batch_size=4, sampler=torch.utils.data.WeightedRandomSampler(torch.ones(23), 9)),
            "its samples are drawn by chance",
        ),
    ],
)
def test_random_data_is_said_to_be_so(data, what):
    model, before = net(), torch.random.get_rng_state()
    with pytest.warns(UserWarning, match=rf"^the data is random \({what}\), and one draw is taken for it"):
        landscape.make_task(model, nn.CrossEntropyLoss(), data)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_pair_of_a_loss_in_float32_is_taken():
    weights = torch.tensor([1.0, 5.0, 0.2])

    def pair(outputs, targets):
        own = weights[targets]
        return nn.functional.cross_entropy(outputs, targets, reduction="none") * own, own

    model = net()
    task = landscape.make_task(model, pair, (X, Y % 3))
    expected = nn.functional.cross_entropy(model(X), Y % 3, weight=weights).item()
    assert landscape.loss(task, model) == pytest.approx(expected, rel=1e-6)


class Output(dict):
    """As models of transformers return it."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__(logits=logits)
        self.logits = logits


class Words(nn.Module):
    """Takes what tokenizers return, and returns an object with logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Output:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (self.embedding(input_ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return Output(self.head(mean))


def test_a_model_that_returns_logits_is_evaluated_on_the_columns_that_it_takes():
    model, words = Words(), torch.arange(12).reshape(6, 2) % 9
    table = hugging_face(
        input_ids=words, attention_mask=torch.ones_like(words), idx=torch.arange(6), label=words[:, 0] % 2
    )
    task = landscape.make_task(model, nn.CrossEntropyLoss(), table)
    assert set(task.samples["train"].inputs) == {"input_ids", "attention_mask"}
    expected = F.cross_entropy(model(words).logits, words[:, 0] % 2)
    ds = landscape.surface(task, model, landscape.make_task(Words, F.cross_entropy, table).theta + 0.1)
    assert ds.mark_loss.values[0] == pytest.approx(expected.item(), rel=1e-6)
    assert np.isfinite(landscape.hessian(task, model, k=2).eigenvalue).all()
    assert not model._forward_hooks  # the caller's module is not touched


class Pair(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return x, x


REFUSED = {
    "TorchScript": ((TRACED, nn.CrossEntropyLoss(), (X, Y)), "the model is TorchScript"),
    "a model by path": (("a.pt", nn.CrossEntropyLoss(), (X, Y)), "the model is a str; give a module"),
    "no loss": ((net, None, (X, Y)), "the loss is None; give a function"),
    "inputs alone": ((net, nn.CrossEntropyLoss(), X), r"split 'train': a Tensor was given; give \(inputs, targets\)"),
    "no train": ((net, nn.CrossEntropyLoss(), {"val": (X, Y)}), "data has the splits val; give train"),
    "no samples": ((net, nn.CrossEntropyLoss(), (X[:0], Y[:0])), "split 'train' has no samples"),
    "unequal": ((net, nn.CrossEntropyLoss(), (X, Y[:9])), r"split 'train': inputs and targets have \[9, 23\] samples"),
    "bytes": ((net, nn.CrossEntropyLoss(), (X.byte(), Y)), r"uint8: .*images / 255"),
    "no targets": ((net, nn.CrossEntropyLoss(), {"pixels": X}), "columns pixels; call the column of targets one of"),
    "two inputs": (
        (net, nn.CrossEntropyLoss(), {"a": X, "b": X, "label": Y}),
        "columns of numbers are a, b; the model",
    ),
    "two targets": ((net, nn.CrossEntropyLoss(), (X, (Y, Y))), "its targets are a tuple; give one tensor"),
    "labels as texts": ((net, nn.CrossEntropyLoss(), (X, ["a"] * 23)), "its targets are a list; give one tensor"),
    "no shapes": ((nn.LazyLinear(3), F.cross_entropy, (X, Y)), r"layers without a shape .*model\(inputs\)"),
    "two outputs": ((Pair(5, 3), F.cross_entropy, (X, Y)), "returns a tuple; a task needs one tensor"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_task_is_refused_in_one_line(what):
    arguments, message = REFUSED[what]
    with pytest.raises(ValueError, match=message) as refused:
        landscape.make_task(*arguments)
    assert "\n" not in str(refused.value)


class Wrapped(nn.Module):
    """A model inside another one whose forward names no arguments, as peft has it."""

    def __init__(self) -> None:
        super().__init__()
        self.base_model = Masked()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.base_model(*args, **kwargs)

    def get_base_model(self) -> nn.Module:
        return self.base_model


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, pixels: Tensor, mask: Tensor) -> Tensor:
        return self.inner(pixels * mask)


def test_columns_reach_a_model_whose_wrapper_names_no_arguments():
    table = {"pixels": X, "mask": (X > 0).float(), "number": torch.arange(len(X)), "label": Y}
    model = Wrapped()
    task = landscape.make_task(model, nn.CrossEntropyLoss(), table)
    expected = nn.functional.cross_entropy(model(X, table["mask"]), Y).item()
    assert landscape.loss(task, model) == pytest.approx(expected, rel=1e-5)


class Phases(nn.Module):
    def __init__(self):
        super().__init__()
        self.real, self.imaginary = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.complex(self.real(x), self.imaginary(x))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(5))
def test_complex_outputs_have_the_loss_of_both_parts_and_no_error(seed):
    torch.manual_seed(seed)
    inputs, targets = torch.randn(20, 4), torch.arange(20) % 3
    loss, model = lambda outputs, targets: F.cross_entropy(outputs.imag * outputs.abs(), targets), Phases()
    line = landscape.surface(landscape.make_task(model, loss, (inputs, targets)), model, Phases())
    with torch.no_grad():
        assert float(line.mark_loss[0]) == pytest.approx(float(loss(model(inputs), targets)), rel=1e-5)
    assert "error" not in line


def test_a_loader_of_single_samples_is_refused_in_words():
    with pytest.raises(ValueError, match="its loader returns single samples, not batches; give it a batch_size"):
        landscape.make_task(net(), nn.CrossEntropyLoss(), DataLoader(Items(), batch_size=None))
