"""Flower: strategies are recorded unchanged, saved weights become runs, and a real app from end to end."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import drift
from drift.importers.flower import client_number, read_weights, recorded
from drift.simulation.verify import verify
from drift.store import files

ROOT = Path(__file__).resolve().parents[3]
HOWTO = (ROOT / "docs" / "howto-flower.md").read_text()
START = {"w": np.arange(3, dtype=np.float32), "bn.running_mean": np.zeros(2, np.float32)}


class Array:
    """As much of Flower's as is used: bytes, and the array that they mean."""

    def __init__(self, values):
        self.values, self.data = values, values.tobytes()

    def numpy(self):
        return self.values.copy()


def arrays(**values):
    return {name: Array(np.asarray(value, np.float32)) for name, value in values.items()}


def model(by):
    return {name: Array(value + np.float32(by)) for name, value in START.items()}


def message(node, records, size=None, *, number=None, error=False):
    metrics = {} if size is None else {"metrics": {"num-examples": size}}
    config = {} if number is None else {"fedscape": {"client": number}}
    content = SimpleNamespace(array_records=records, metric_records=metrics, config_records=config)
    return SimpleNamespace(content=content, metadata=SimpleNamespace(src_node_id=node), has_error=lambda: error)


class Mean:
    """A strategy of the message interface, with its own loop."""

    weighted_by_key = "num-examples"

    def __init__(self, replies, *, fails=()):
        self.replies, self.fails, self.seen = replies, fails, []

    def configure_train(self, server_round, arrays, config, grid):
        return (message(node, {"arrays": arrays}) for node in (1, 2))

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        self.seen.append([reply.metadata.src_node_id for reply in replies])
        if server_round in self.fails:
            return None, None
        held = [reply.content.array_records["arrays"] for reply in replies if not reply.has_error()]
        mean = {name: Array(np.mean([one[name].numpy() for one in held], axis=0, dtype=np.float32)) for name in START}
        return mean, {"train_loss": 0.25, "list": [1.0]}

    def aggregate_evaluate(self, server_round, replies):
        return {"accuracy": 0.5}

    def start(self, grid, initial_arrays, num_rounds=3, evaluate_fn=None):
        held = initial_arrays
        for number in range(1, num_rounds + 1):
            list(self.configure_train(number, held, {}, grid))
            found, _ = self.aggregate_train(number, iter(self.replies(number)))
            held = held if found is None else found
            self.aggregate_evaluate(number, [])
            if evaluate_fn is not None:
                evaluate_fn(number, held)
        return held


def replies(order=(0, 1), *, numbers=(None, None)):
    def make(number):
        both = [
            message(2**60 + node, {"arrays": model(number + node)}, 3 + 4 * node, number=numbers[node])
            for node in (0, 1)
        ]
        return [both[place] for place in order] + [message(7, {}, error=True)]

    return make


def test_a_strategy_is_recorded_and_computes_what_it_did(tmp_path):
    initial = model(0)
    plain = Mean(replies()).start(None, initial)
    strategy = Mean(replies())
    watched = recorded(strategy, tmp_path / "run")
    assert watched is strategy
    found = watched.start(None, initial, evaluate_fn=lambda number, held: {"loss": 1 / number})
    assert all(np.array_equal(found[name].numpy(), plain[name].numpy()) for name in START)
    run = drift.open(tmp_path / "run")
    assert run.rounds() == [0, 1, 2] and verify(run.folder) == []
    record = run.round(1)
    np.testing.assert_array_equal(record.clients, np.stack([START["w"] + 2, START["w"] + 3]))
    np.testing.assert_array_equal(record.client_buffers, [[2, 2], [3, 3]])
    np.testing.assert_array_equal(record.start, START["w"] + 1.5)
    assert record.sizes.tolist() == [3, 7] and run.about["names"] == [str(2**60), str(2**60 + 1)]
    assert record.metrics == {"loss": 0.5, "clients_accuracy": 0.5, "train_loss": 0.25}
    with pytest.raises(ValueError, match="recorded already"):
        recorded(strategy, tmp_path / "other")


def test_the_order_of_replies_does_not_matter_and_the_mod_numbers_clients(tmp_path):
    for name, order in (("one", (0, 1)), ("two", (1, 0))):
        recorded(Mean(replies(order, numbers=(4, 2))), tmp_path / name).start(None, model(0))
    for index in range(3):
        one, two = (files.round_path(tmp_path / name, index).read_bytes() for name in ("one", "two"))
        assert one == two
    assert drift.open(tmp_path / "one").round(0).ids.tolist() == [2, 4]


def test_a_round_whose_aggregation_failed_leaves_the_model(tmp_path):
    recorded(Mean(replies(), fails=(2,)), tmp_path / "run").start(None, model(0))
    run = drift.open(tmp_path / "run")
    np.testing.assert_array_equal(run.round(1).end, run.round(0).end)


def test_a_failing_record_does_not_stop_training(tmp_path, caplog):
    def broken(number):
        return replies()(np.nan if number == 2 else number)

    strategy = recorded(Mean(broken), tmp_path / "run")
    with caplog.at_level("WARNING", logger="flwr"):
        strategy.start(None, model(0))
    assert len(strategy.seen) == 3
    assert drift.open(tmp_path / "run").rounds() == [0]
    assert len(caplog.records) == 1 and "training goes on" in caplog.text


def test_a_folder_of_another_training_is_refused_before_training(tmp_path):
    recorded(Mean(replies()), tmp_path / "run").start(None, model(0))
    strategy = recorded(Mean(replies()), tmp_path / "run")
    with pytest.raises(ValueError, match="does not begin where they ended"):
        strategy.start(None, model(0))
    assert strategy.seen == []
    last = drift.open(tmp_path / "run").round(-1)
    going = arrays(**{"w": last.end.numpy(), "bn.running_mean": last.end_buffers.numpy()})
    recorded(Mean(replies()), tmp_path / "run").start(None, going, num_rounds=1)
    assert drift.open(tmp_path / "run").rounds() == [0, 1, 2, 3]


def test_a_strategy_inside_another_is_recorded_by_its_calls(tmp_path):
    inner = recorded(Mean(replies()), tmp_path / "run")
    held = model(0)
    for number in (1, 2):
        list(inner.configure_train(number, held, {}, None))
        held, _ = inner.aggregate_train(number, replies()(number))
        inner.aggregate_evaluate(number, [])
    assert drift.open(tmp_path / "run").rounds() == [0, 1]


def test_a_strategy_of_the_earlier_interface_is_refused_with_what_to_do(tmp_path):
    earlier = type("FedProx", (), {"configure_fit": None, "aggregate_fit": lambda self: None})()
    with pytest.raises(ValueError, match=r"FedProx is a strategy of Flower's earlier interface.*import FedProx from"):
        recorded(earlier, tmp_path / "run")
    with pytest.raises(ValueError, match=r"int has no start: .*derive it from flwr\.serverapp\.strategy\.Strategy"):
        recorded(3, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_a_folder_each_training_has_its_own_and_its_description(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        drift.recorded(Mean(replies()), name="mine", seed=3, settings={"lr": 0.1}).start(None, model(0))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["mean", "mean-2"]
    recorded_options = drift.open("runs/mean-2").about["told"]
    assert recorded_options["method"] == "Mean" and recorded_options["seed"] == 3


def test_saved_weights_become_a_run(tmp_path):
    values = [{name: value + number for name, value in START.items()} for number in range(5)]
    for number in (1, 2, 4, 5):
        np.savez(tmp_path / f"round-{number}-weights.npz", *values[number - 1].values())
    run = drift.open(read_weights(tmp_path, tmp_path / "run", model=START))
    assert run.rounds() == [1, 4] and verify(run.folder) == []
    np.testing.assert_array_equal(run.round(4).start, START["w"] + 3)
    np.testing.assert_array_equal(run.round(4).end, START["w"] + 4)
    assert run.round(1).clients.shape == (0, 3)
    assert read_weights(tmp_path, tmp_path / "run", model=START) == tmp_path / "run"


def test_bad_weights_are_named_and_never_run(tmp_path):
    with pytest.raises(LookupError, match="no two rounds in a row"):
        read_weights(tmp_path, tmp_path / "run", model=START)
    np.savez(tmp_path / "round-1-weights.npz", *START.values())
    path = tmp_path / "round-2-weights.npz"
    bad = [np.array([print], dtype=object), np.zeros(2, np.float32)]
    for content in (bad, [np.zeros(10**6, np.float32), np.zeros(2)], [np.zeros(3)], [np.zeros(4), np.zeros(2)]):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for place, value in enumerate(content):
                with file.open(f"arr_{place}.npy", "w") as entry:
                    np.lib.format.write_array(entry, value)
        with pytest.raises(ValueError, match=r"cannot be read|has shape"):
            read_weights(tmp_path, tmp_path / "run", model=START)
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"round-2-weights\.npz cannot be read"):
        read_weights(tmp_path, tmp_path / "run", model=START)


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
from net import net

server = ServerApp()


def ordered(kind):
    '''Sums do not depend on which client is done first.'''
    class Ordered(kind):
        def aggregate_train(self, number, replies):
            replies = sorted(replies, key=lambda reply: reply.content.config_records["fedscape"]["client"])
            return super().aggregate_train(number, replies)

    return Ordered(fraction_evaluate=0)


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
    wanted = ["flwr[simulation]>=1.30", "torch==2.13.0", "numpy", "safetensors", "scikit-learn"]
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


@pytest.fixture
def app(tmp_path):
    """The how-to's files, as written."""
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", HOWTO, re.DOTALL):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_howto_as_written(flower, app, monkeypatch, capsys):
    ran(flower, "app.py", app)
    monkeypatch.chdir(app)
    assert verify("runs/digits") == []
    bare = drift.open("runs/digits")
    assert bare.rounds() == [0, 1, 2] and np.isfinite(drift.coherence(bare).coherence).all()
    assert all(set(bare.round(index).ids.tolist()) <= set(range(5)) for index in bare.rounds())
    run = drift.open("runs/digits", task="task.py:make_task")
    for index in run.rounds():
        record = run.round(index)
        assert record.sizes.tolist() == [len(run.parts[client]) for client in record.ids.tolist()]
    found = run.cached(drift.global_line, points=3)
    record = run.round(-1)
    outputs = run.task.outputs(record.end, "test", buffers=record.end_buffers)
    loss = run.task.loss(outputs, run.task.split("test").targets).mean()
    assert float(loss) == pytest.approx(record.metrics["loss"], rel=1e-4)
    assert np.isfinite(found.loss).all()
    from figures.cli import main

    monkeypatch.setattr(
        sys, "argv", ["fedscape", "figures", "draw", "planes-clients", "runs/digits", "--task", "task.py:make_task"]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code and (app / "out" / "figures" / "planes-clients.png").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_deployment_on_loopback_is_recorded(flower, app):
    (text,) = re.findall(r"```toml\n(# pyproject\.toml\n.*?)```", HOWTO, re.DOTALL)
    for folder in ("app", "home"):
        (app / folder).mkdir()
    for name in ("app.py", "net.py"):
        (app / name).rename(app / "app" / name)
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
        wait_for(lambda: len(list((app / "runs" / "digits" / "rounds").glob("*.safetensors"))) == 3)
        wait_for(lambda: drift.open(app / "runs" / "digits").rounds() == [0, 1, 2])
    finally:
        for started in reversed(processes):
            started.terminate()
            started.wait()
    run = drift.open(app / "runs" / "digits")
    assert verify(run.folder) == [] and set(run.round(0).ids.tolist()) == {0, 1}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(done):
    """Until a condition holds; the test's own limit of time ends it."""
    while not done():
        time.sleep(2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_recorded_strategies_end_at_the_same_bits(flower, app):
    import torch

    text = (app / "app.py").read_text()
    (app / "app.py").write_text(text.replace("    optimizer =", "    torch.manual_seed(0)\n    optimizer ="))
    (app / "exact.py").write_text(EXACT)
    ran(flower, "exact.py", app)
    for name in ("mean", "adam", "median", "private"):
        plain, found = (torch.load(app / f"{name}-{recording}.pt") for recording in (False, True))
        assert all(torch.equal(value, found[key]) for key, value in plain.items()), name
        run = drift.open(app / "runs" / name)
        assert run.rounds() == [0, 1] and verify(run.folder) == []
        theta = torch.cat([found[key].reshape(-1) for key, _ in run.about["layout"]])
        assert torch.equal(run.round(-1).end, theta.float())  # adam's are float64, which no client's model is


def test_the_mod_adds_one_record(monkeypatch):
    app = SimpleNamespace(ConfigRecord=dict)
    monkeypatch.setitem(sys.modules, "flwr", SimpleNamespace(app=app))
    monkeypatch.setitem(sys.modules, "flwr.app", app)
    reply = SimpleNamespace(content={}, has_content=lambda: True)
    context = SimpleNamespace(node_config={"partition-id": 3})
    assert client_number(None, context, lambda *_: reply) is reply
    assert reply.content == {"fedscape": {"client": 3}}
    assert json.dumps(reply.content)
