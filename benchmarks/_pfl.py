"""A cohort by pfl-research's simulation, run by the interpreter of a virtual environment that has pfl and torch.

    VENV/bin/python -m benchmarks._pfl cnn_fmnist

Every client trains in every round, one process on one core, batches from resident tensors as pfl's examples have them.
Seconds are CPU time of this process from the end of one round to the end of the next; the first round is left out.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise

import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from benchmarks._peer_settings import LR, MOMENTUM, model, settings

ROUNDS = 4


def network(case: dict) -> torch.nn.Module:
    """The network of a setting, with the loss and metrics that pfl asks for."""
    net = model(case)
    net.loss = lambda inputs, targets, eval=False: F.cross_entropy(net(inputs), targets)
    net.metrics = lambda inputs, targets, eval=True: {}
    return net.train()


def users(case: dict) -> FederatedDataset:
    """The clients' data, the same numbers each time a client is asked for."""
    held = {}
    for number in range(case["clients"]):
        source = torch.Generator().manual_seed(number)
        inputs = torch.randn(case["samples"], *case["shape"], generator=source)
        targets = torch.randint(10, (case["samples"],), generator=source)
        held[number] = PyTorchTensorDataset((inputs, targets), user_id=str(number))
    return FederatedDataset(held.__getitem__, get_user_sampler("minimize_reuse", list(held)))


def main() -> None:
    """Simulate and print the seconds of each round but the first as one line of JSON."""
    case, marks = settings(sys.argv[1]), []
    torch.set_num_threads(1)

    class Marked(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            marks.append(time.process_time())
            return False, Metrics()

    net = network(case)
    wrapped = PyTorchModel(
        net,
        local_optimizer_create=lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=MOMENTUM),
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    data = users(case)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS,
            evaluation_frequency=ROUNDS + 1,
            train_cohort_size=case["clients"],
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        wrapped,
        NNTrainHyperParams(local_batch_size=case["batch"], local_num_epochs=case["epochs"], local_learning_rate=LR),
        callbacks=[Marked()],
    )
    print(json.dumps({"seconds": [after - before for before, after in pairwise(marks)]}))


if __name__ == "__main__":
    main()
