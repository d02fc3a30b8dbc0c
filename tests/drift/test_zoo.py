"""One federated round of any module that runs in plain PyTorch, against a loop of plain PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.config.load import validated
from drift.config.method_values import Setting
from drift.config.random_keys import key
from drift.engines.choice import choose_engine
from drift.simulation.one_round import run_round
from drift.simulation.simulate import simulate
from drift.training.data import Data
from drift.training.server import Server, first_cohort
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.landscape import zoo

PARTS = [np.arange(0, 3), np.arange(3, 10), np.arange(10, 14)]

BATCHED = (
    *("attention", "double", "frozen", "in_place", "lstm", "mean_loss", "mean_module_loss", "nested", "shared"),
    *("tuple", "view", "view_in_training", "view_single", "weight_norm"),
)
"""Those whose clients can be trained as rows of one computation; the others have a reason in one line."""


def posed(name: str, engine: str) -> tuple[Setting, Data]:
    """Three clients with 3, 7 and 4 of 14 samples."""
    idiom = zoo.IDIOMS[name]
    splits = {"train": Samples(*idiom.samples(14, 1)), "test": Samples(*idiom.samples(9, 2))}
    experiment = validated(
        {
            "rounds": 1,
            "seed": 4,
            "task": {"dataset": "blobs", "model": "linear"},
            "clients": {"number": 3, "per_round": 3, "partition": {"name": "iid"}},
            "local": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "epochs": 2, "batch": 4},
        }
    )
    data = Data(splits, ("a", "b", "c"), zoo.SHAPE, "", PARTS, [np.zeros(0, np.int64)] * 3)
    return Setting(Task(idiom.model(), splits, idiom.loss), experiment, engine=engine), data


def plain_client(name: str, setting: Setting, data: Data, client: int) -> nn.Module:
    """The client's model after its local epochs, by plain PyTorch with the batches and random draws of this project."""
    idiom = zoo.IDIOMS[name]
    ready = first_cohort(setting, data, Server.fresh(setting))[client]
    batches = list(ready.batches())
    model = idiom.model().train()
    parameters = [part for part in model.parameters() if part.requires_grad]
    sgd = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)
    with torch.random.fork_rng():
        torch.manual_seed(key(4, 0, client, "dropout"))
        for batch in batches:
            sgd.zero_grad()
            idiom.loss(zoo.called(model, batch.inputs), batch.targets).mean().backward()
            for part in parameters:  # as here: a parameter that is not used has a zero gradient
                part.grad = torch.zeros_like(part) if part.grad is None else part.grad
            sgd.step()
    return model


def joined(tensors: list[Tensor]) -> Tensor:
    return torch.cat([one.detach().flatten() for one in tensors]) if tensors else torch.zeros(0)


@pytest.mark.parametrize("engine", ["serial", "batched"])
@pytest.mark.parametrize("name", sorted(zoo.IDIOMS))
def test_a_round_is_that_of_plain_pytorch(name, engine):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*channels last.*")
        warnings.filterwarnings("ignore", message="There is a performance drop")  # torch, of vmap
        setting, data = posed(name, engine)
        choice = choose_engine(engine, setting.experiment.method, first_cohort(setting, data, Server.fresh(setting)))
        assert (choice.name == "batched") == (engine == "batched" and name in BATCHED), choice.reason
        assert "\n" not in choice.reason
        if choice.name != engine:
            return  # trained as by the other engine
        setting, data = posed(name, choice.name)
        record, after = run_round(setting, data, Server.fresh(setting))
        models = [plain_client(name, setting, data, client) for client in range(3)]
    thetas = [joined([part for part in model.parameters() if part.requires_grad]) for model in models]
    buffers = [joined([one.to(thetas[0]) for one in model.buffers() if one.is_floating_point()]) for model in models]
    close = {"rtol": 1e-4, "atol": 1e-5} if zoo.IDIOMS[name].dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-10}
    torch.testing.assert_close(record.clients, torch.stack(thetas), **close)
    torch.testing.assert_close(record.client_buffers, torch.stack(buffers).to(record.client_buffers), **close)
    shares = torch.tensor([3, 7, 4]).to(thetas[0]) / 14
    torch.testing.assert_close(after.theta, shares @ torch.stack(thetas), **close)


class Tutorial(nn.Module):
    """PyTorch's tutorial network on digits."""

    def __init__(self, shape, classes):
        super().__init__()
        self.convolution, self.head = nn.Conv2d(shape[0], 4, 3), nn.Linear(4 * 36, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.convolution(x))
        return self.head(x.view(x.size(0), -1))


@pytest.mark.parametrize("engine", ["serial", "batched"])
def test_a_run_of_a_users_own_model_warns_once_and_is_trained(tmp_path, engine):
    experiment = validated(
        {
            "rounds": 2,
            "engine": engine,
            "task": {"dataset": "digits", "model": "tests.drift.test_zoo:Tutorial", "train_samples": 60},
            "clients": {"number": 3, "per_round": 2, "partition": {"name": "iid"}},
            "local": {"lr": 0.1, "epochs": 1, "batch": 10},
        }
    )
    with pytest.warns(UserWarning, match="channels last") as said:
        run = simulate(experiment, runs=tmp_path)
    assert len(said) == 1
    assert run.rounds() == [0, 1]
