"""A cohort by Flower's simulation, run by the interpreter of a virtual environment that has flwr[simulation].

    VENV/bin/python -m benchmarks._flower cnn_fmnist

Every client trains in every round, one actor on one core. Seconds are CPU time of this process and all that it started
(actors, schedulers), from the end of one round to the end of the next; the first round, which starts them, is left out.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")

import psutil
import torch
import torch.nn.functional as F
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._peer_settings import LR, MOMENTUM, model, settings

ROUNDS = 4


def client_app(case: dict) -> ClientApp:
    """Clients that train as Flower's PyTorch quickstart does."""

    class Trainer(NumPyClient):
        def __init__(self, number: int) -> None:
            torch.set_num_threads(1)
            source = torch.Generator().manual_seed(number)
            inputs = torch.randn(case["samples"], *case["shape"], generator=source)
            targets = torch.randint(10, (case["samples"],), generator=source)
            self.loader = DataLoader(TensorDataset(inputs, targets), batch_size=case["batch"], shuffle=True)
            self.net = model(case)

        def fit(self, parameters, config):
            state = zip(self.net.state_dict(), parameters, strict=True)
            self.net.load_state_dict({name: torch.tensor(value) for name, value in state})
            optimizer = torch.optim.SGD(self.net.parameters(), lr=LR, momentum=MOMENTUM)
            self.net.train()
            for _ in range(case["epochs"]):
                for inputs, targets in self.loader:
                    optimizer.zero_grad()
                    F.cross_entropy(self.net(inputs), targets).backward()
                    optimizer.step()
            return [value.numpy() for value in self.net.state_dict().values()], case["samples"], {}

    def build(context: Context):
        return Trainer(int(context.node_config["partition-id"])).to_client()

    return ClientApp(client_fn=build)


def spent() -> float:
    """CPU seconds of this process and everything below it so far."""
    total = 0.0
    own = psutil.Process()
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def main() -> None:
    """Simulate and print the seconds of each round but the first as one line of JSON."""
    case = settings(sys.argv[1])
    marks: list[float] = []

    class Marked(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            if failures:
                raise RuntimeError(str(failures[0]))
            found = super().aggregate_fit(server_round, results, failures)
            marks.append(spent())
            return found

    def build(context: Context) -> ServerAppComponents:
        start = ndarrays_to_parameters([value.numpy() for value in model(case).state_dict().values()])
        strategy = Marked(fraction_fit=1.0, fraction_evaluate=0.0, initial_parameters=start)
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0}, "init_args": {"num_cpus": 1}}
    run_simulation(ServerApp(server_fn=build), client_app(case), case["clients"], backend_config=resources)
    print(json.dumps({"seconds": [after - before for before, after in pairwise(marks)]}))


if __name__ == "__main__":
    main()
