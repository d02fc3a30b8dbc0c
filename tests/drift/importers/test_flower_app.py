"""A Flower app from end to end: the tutorial as written, a deployment, and the bits of recorded strategies."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import drift
from drift.simulation.verify import verify

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("howto-flower", "howto-adapters", "tutorial-federated")
HOWTO, TUNING, TUTORIAL = ((ROOT / "docs" / f"{name}.md").read_text() for name in PAGES)


EXACT = """
import random

import numpy as np
import torch
from flwr.app import ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam, FedAvg, FedMedian
from flwr.simulation import run_simulation

from app import client
from drift import recorded
from task import net

server = ServerApp()


def ordered(kind):
    '''Sums do not depend on which client is done first.'''
    class Ordered(kind):
        def aggregate_train(self, number, replies):
            replies = sorted(replies, key=lambda reply: reply.content.config_records["fedscape"]["client"])
            return super().aggregate_train(number, replies)

    return Ordered(fraction_evaluate=0, min_train_nodes=3)  # a server starts while its nodes still arrive


STRATEGIES = {
    "mean": lambda: ordered(FedAvg),
    "adam": lambda: ordered(FedAdam),
    "median": lambda: ordered(FedMedian),
    "private": lambda: DifferentialPrivacyServerSideFixedClipping(ordered(FedAvg), 0.0, 1.0, 3),
}


@server.main()
def main(grid, context):
    for name, make in STRATEGIES.items():
        for recording in (False, True):
            random.seed(0)
            np.random.seed(0)
            strategy = recorded(make(), f"runs/{name}") if recording else make()
            result = strategy.start(grid, ArrayRecord(net().state_dict()), num_rounds=2)
            torch.save(result.arrays.to_torch_state_dict(), f"{name}-{recording}.pt")


run_simulation(server, client, num_supernodes=3)
"""


@pytest.fixture(scope="module")
def flower(tmp_path_factory):
    """Python of an environment with Flower: FEDSCAPE_FLOWER names one, else it is made from the registry."""
    if named := os.environ.get("FEDSCAPE_FLOWER"):
        return named
    folder = tmp_path_factory.mktemp("flower")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    wanted = ["flwr[simulation]>=1.30", "torch==2.13.0", "numpy", "safetensors", "threadpoolctl"]
    wanted += ["transformers>=5,<6", "peft>=0.18"]
    told = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", *wanted], capture_output=True, text=True, check=False
    )
    if told.returncode:
        pytest.skip(f"Flower could not be installed: {told.stderr.strip().splitlines()[-1][:200]}")
    return str(folder / "bin" / "python")


SETTINGS = {"PYTHONPATH": str(ROOT), "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1", "RAY_DEDUP_LOGS": "0"}


def ran(python, script, folder):
    """Run a script of an app as a user would; PYTHONPATH stands for installing fedscape without its dependencies."""
    command = [python, script]
    told = subprocess.run(command, cwd=folder, env=os.environ | SETTINGS, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    return told


def files(page):
    """The files that a page shows, by name."""
    return dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL))


@pytest.fixture
def app(tmp_path):
    """The tutorial's files, as written."""
    for name, text in files(TUTORIAL).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def normalised(app):
    """The tutorial's files, with a layer of batch normalisation, whose statistics are no parameters."""
    plain = (app / "task.py").read_text()
    (app / "task.py").write_text(plain.replace("nn.ReLU()", "nn.BatchNorm1d(32), nn.ReLU()"))
    return app


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_as_written(flower, app, monkeypatch):
    ran(flower, "app.py", app)
    monkeypatch.chdir(app)
    draw("runs/flower")
    assert verify("runs/flower") == [] and drift.open("runs/flower").rounds() == list(range(8))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_app_with_batch_normalisation(flower, normalised, monkeypatch):
    ran(flower, "app.py", normalised)
    monkeypatch.chdir(normalised)
    assert verify("runs/flower") == []
    bare = drift.open("runs/flower")
    assert bare.rounds() == list(range(8)) and np.isfinite(drift.coherence(bare).coherence).all()
    assert all(set(bare.round(index).ids.tolist()) <= set(range(5)) for index in bare.rounds())
    run = drift.open("runs/flower", task="task.py:make_task")
    for index in run.rounds():
        record = run.round(index)
        assert record.sizes.tolist() == [len(run.parts[client]) for client in record.ids.tolist()]
    found = run.cached(drift.global_line, points=3)
    record = run.round(-1)
    outputs = run.task.outputs(record.end, "test", buffers=record.end_buffers)
    loss = run.task.loss(outputs, run.task.split("test").targets).mean()
    assert float(loss) == pytest.approx(record.metrics["loss"], rel=1e-4)
    assert np.isfinite(found.loss).all()


def draw(run):
    """The figure of the how-to."""
    from figures.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["figures", "draw", "planes-clients", run, "--task", "task.py:make_task"])
    assert not stop.value.code and Path("out/figures/planes-clients.png").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_fine_tuning_app_of_the_howto_is_recorded(flower, tmp_path):
    for name, text in files(TUNING).items():
        (tmp_path / name).write_text(text.partition("for variant in")[0] if name == "tune.py" else text)
    ran(flower, "tune.py", tmp_path)  # the base alone
    ran(flower, "app.py", tmp_path)
    run = drift.open(tmp_path / "runs" / "flower")
    assert verify(run.folder) == [] and run.rounds() == [0, 1]
    assert all(run.round(index).ids.tolist() == [0, 1, 2] for index in run.rounds())
    assert {name.rpartition(".lora_")[2] for name, _ in run.layout.parameters} == {"A.weight", "B.weight"}
    ds = drift.product_gap(run)
    assert ds.attrs["scaled"] == 0 and (ds.gap > 0).all()
    np.testing.assert_allclose(ds.missed, ds.gap, rtol=1e-4)  # the server averaged the factors


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_deployment_on_loopback_is_recorded(flower, normalised):
    app = normalised
    (text,) = re.findall(r"```toml\n(# pyproject\.toml\n.*?)```", HOWTO, re.DOTALL)
    for folder in ("app", "home"):
        (app / folder).mkdir()
    for name in ("app.py", "task.py"):  # of two nodes and rounds: every client of every round is a process
        moved = (app / name).rename(app / "app" / name)
        moved.write_text(re.sub("(num_rounds|min_train_nodes)=.", r"\1=2", moved.read_text()))
    (app / "app" / "pyproject.toml").write_text(text)
    ports = [free_port() for _ in range(3)]
    address = f"127.0.0.1:{ports[0]}"
    (app / "home" / "config.toml").write_text(f'[superlink.loopback]\naddress = "{address}"\ninsecure = true\n')
    programs = Path(flower).parent
    settings = SETTINGS | {"FLWR_HOME": str(app / "home"), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    node = [programs / "flower-supernode", "--insecure", "--superlink", address]
    numbers = [f"partition-id={number} num-partitions=2" for number in (0, 1)]
    commands = [[programs / "flower-superlink", "--insecure", "--port", str(ports[0])]]
    commands += [[*node, "--port", str(ports[1 + place]), "--node-config", text] for place, text in enumerate(numbers)]
    processes = []
    try:
        for place, command in enumerate(commands):
            with open(app / f"{place}.log", "w") as log:
                started = subprocess.Popen(command, cwd=app, env=os.environ | settings, stdout=log, stderr=log)
            processes.append(started)
        submit = [programs / "flwr", "run", app / "app", "loopback"]
        wait_for(lambda: subprocess.run(submit, cwd=app, env=os.environ | settings, check=False).returncode == 0)
        wait_for(lambda: len(list((app / "runs" / "flower" / "rounds").glob("*.safetensors"))) == 2)
        wait_for(lambda: drift.open(app / "runs" / "flower").rounds() == [0, 1])
    finally:
        for started in reversed(processes):
            started.terminate()
            started.wait()
    run = drift.open(app / "runs" / "flower")
    assert verify(run.folder) == [] and set(run.round(0).ids.tolist()) == {0, 1}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(done):
    """Until a condition holds; the test's own limit of time ends it."""
    while not done():
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_recorded_strategies_end_at_the_same_bits(flower, normalised):
    import torch

    app = normalised
    (app / "exact.py").write_text(EXACT)
    ran(flower, "exact.py", app)
    for name in ("mean", "adam", "median", "private"):
        plain, found = (torch.load(app / f"{name}-{recording}.pt") for recording in (False, True))
        assert all(torch.equal(value, found[key]) for key, value in plain.items()), name
        run = drift.open(app / "runs" / name)
        assert run.rounds() == [0, 1] and verify(run.folder) == []
        theta = torch.cat([found[key].reshape(-1) for key, _ in run.about["layout"]])
        assert torch.equal(run.round(-1).end, theta.float())  # adam's are float64, which no client's model is
