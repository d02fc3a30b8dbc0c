"""Flower: strategies are recorded unchanged, and saved weights become runs; with stand-ins for its classes."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import drift
from drift.importers.flower import client_number, recorded
from drift.simulation.verify import verify
from drift.store import files

START = {"w": np.arange(3, dtype=np.float32), "bn.running_mean": np.zeros(2, np.float32)}


class Array:
    """As much of Flower's as is used: bytes, and the array that they mean."""

    def __init__(self, values):
        self.values, self.data, self.shape = values, values.tobytes(), values.shape

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
    return SimpleNamespace(
        content=content, metadata=SimpleNamespace(src_node_id=node, dst_node_id=node), has_error=lambda: error
    )


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
    assert record.metrics == {"loss": 0.5, "clients_accuracy": 0.5, "train_loss": 0.25, "train_failed": 1.0}
    with pytest.raises(ValueError, match="recorded already"):
        recorded(strategy, tmp_path / "other")


def test_the_order_of_replies_does_not_matter_and_the_mod_numbers_clients(tmp_path):
    for name, order in (("one", (0, 1)), ("two", (1, 0))):
        recorded(Mean(replies(order, numbers=(4, 2))), tmp_path / name).start(None, model(0))
    for index in range(3):
        one, two = (files.round_path(tmp_path / name, index).read_bytes() for name in ("one", "two"))
        assert one == two
    assert drift.open(tmp_path / "one").round(0).ids.tolist() == [2, 4]


class Blocks(Mean):
    """HeteroFL: node 2 trains the first entries; the mean of an entry is over the nodes that have it."""

    part = slice(2)

    def configure_train(self, server_round, arrays, config, grid):
        for node in (1, 2):
            yield message(node, {"arrays": arrays if node == 1 else {**arrays, "w": self.cut(arrays)}})

    def cut(self, arrays):
        return Array(arrays["w"].numpy()[self.part])

    def aggregate_train(self, server_round, replies):
        return self.end, {}

    def start(self, grid, initial_arrays, num_rounds=1):
        self.end = model(4)
        list(self.configure_train(1, initial_arrays, {}, grid))
        self.aggregate_train(1, iter(self.replies(1)))
        self.aggregate_evaluate(1, [])


def narrow_replies(number):
    small = {**model(2), "w": Array(START["w"][:2] + 2)}
    return [message(1, {"arrays": model(1)}, 3, number=0), message(2, {"arrays": small}, 5, number=1)]


def test_a_client_that_was_sent_leading_blocks_is_recorded_as_a_narrow_one_of_a_loop_is(tmp_path):
    recorded(Blocks(narrow_replies), tmp_path / "run").start(None, model(0))
    whole, small = START, {"w": START["w"][:2] + 2, "bn.running_mean": START["bn.running_mean"] + 2}
    plus = lambda by: {name: value + np.float32(by) for name, value in whole.items()}  # noqa: E731
    recorder = drift.Recorder(tmp_path / "loop")
    clients = {0: (plus(1), 3), 1: (small, 5)}
    recorder.round(
        start=whole, clients=clients, end=plus(4), unequal={1: {"narrow": True}}, metrics={"clients_accuracy": 0.5}
    )
    ours, loop = (drift.open(tmp_path / name) for name in ("run", "loop"))
    assert ours.unequal == "partial" and ours.round(0).extras["partial"].tolist() == [1]
    one, other = (files.round_path(run.folder, 0).read_bytes() for run in (ours, loop))
    assert one == other
    np.testing.assert_array_equal(ours.round(0).clients[1], [2, 3, 2])
    parts = drift.update_causes(ours).norm.sel(round=0)
    assert float(parts.sel(cause="partial")) == pytest.approx(abs(3 * 1 / 8 - 1)), (
        "the last entry is the first client's"
    )


def test_where_all_clients_are_narrow_the_round_starts_at_the_global_model(tmp_path):
    def small(number):
        return [message(node, {"arrays": {"w": Array(START["w"][:2] + node)}}, 3, number=node) for node in (1, 2)]

    strategy = Blocks(small)
    strategy.configure_train = lambda number, arrays, *_: [
        message(node, {"arrays": {**arrays, "w": strategy.cut(arrays)}}) for node in (1, 2)
    ]
    recorded(strategy, tmp_path / "run").start(None, model(0))
    record = drift.open(tmp_path / "run").round(0)
    np.testing.assert_array_equal(record.start, START["w"])
    np.testing.assert_array_equal(record.clients, [[1, 2, 2], [2, 3, 2]])


@pytest.mark.parametrize("part", [slice(1, 3), slice(3)], ids=["a window", "all, and the client cut it"])
def test_smaller_tensors_that_may_be_any_part_end_the_record_by_client_and_tensor(tmp_path, caplog, part):
    strategy = Blocks(narrow_replies)
    strategy.part = part
    with caplog.at_level("WARNING", logger="flwr"):
        recorded(strategy, tmp_path / "run").start(None, model(0))
    (said,) = [record.getMessage() for record in caplog.records]
    assert "client 1: tensor 'w' has shape (2,), the run has (3,) (see `narrow`)" in said
    assert not (tmp_path / "run" / "run.json").exists()


def rolled(message):
    return {"w": [[2, 0]]} if message.metadata.dst_node_id == 2 else {}


@pytest.mark.parametrize("cut_by_client", [False, True])
def test_a_client_whose_window_is_stated_is_recorded_where_it_is(tmp_path, cut_by_client):
    strategy = Blocks(narrow_replies)
    strategy.cut = lambda arrays: arrays["w"] if cut_by_client else Array(arrays["w"].numpy()[[2, 0]])
    recorded(strategy, tmp_path / "run", narrow=rolled).start(None, model(0))
    record = drift.open(tmp_path / "run").round(0)
    np.testing.assert_array_equal(record.clients, [START["w"] + 1, [3, 1, 2]])
    assert record.extras["partial"].tolist() == [1]
    assert record.extras["partial_entries"].tolist() == [[True, False, True]]


def broken(message):
    return {"w": [message.metadata.no_such_name]}


@pytest.mark.parametrize(
    ("narrow", "words"),
    [
        (lambda message: {"w": [[0, 1]]}, "node 2 was sent other entries than `narrow` states"),
        (
            lambda message: {"w": [[3, 0]]},
            "narrow states [[3, 0]] of tensor 'w' of shape (3,); give a list of",
        ),
        (lambda message: {"v": [[0, 1]]}, "node 2 was sent other entries than `narrow` states"),
        (broken, "has no attribute 'no_such_name'"),
    ],
)
def test_a_wrongly_stated_window_ends_the_record_once_and_training_goes_on(tmp_path, caplog, narrow, words):
    strategy = Blocks(narrow_replies)
    strategy.part = [2, 0]
    with caplog.at_level("WARNING", logger="flwr"):
        recorded(strategy, tmp_path / "run", narrow=narrow).start(None, model(0))
    (said,) = [record.getMessage() for record in caplog.records]
    assert words in said and "training goes on" in said
    assert not (tmp_path / "run" / "run.json").exists()


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
    with pytest.raises(
        ValueError, match=r"int has no start: .*derive one from flwr\.serverapp\.strategy \(since Flower 1\.21\)"
    ):
        recorded(3, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_a_folder_each_training_has_its_own_and_its_description(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        drift.recorded(Mean(replies()), name="mine", seed=3, settings={"lr": 0.1}).start(None, model(0))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["mean", "mean-2"]
    recorded_options = drift.open("runs/mean-2").about["told"]
    assert recorded_options["method"] == "Mean" and recorded_options["seed"] == 3


def test_the_mod_adds_one_record(monkeypatch):
    app = SimpleNamespace(ConfigRecord=dict)
    monkeypatch.setitem(sys.modules, "flwr", SimpleNamespace(app=app))
    monkeypatch.setitem(sys.modules, "flwr.app", app)
    reply = SimpleNamespace(content={}, has_content=lambda: True)
    context = SimpleNamespace(node_config={"partition-id": 3})
    assert client_number(None, context, lambda *_: reply) is reply
    assert reply.content == {"fedscape": {"client": 3}}
    assert json.dumps(reply.content)


def test_a_stopped_training_asks_no_further_client(tmp_path, caplog):
    strategy = Mean(replies())
    strategy.configure_evaluate = lambda *_: ["evaluate"]
    watched = recorded(strategy, tmp_path / "run", stop=lambda index, numbers: "enough" if index == 1 else None)
    final = watched.start(None, model(0), num_rounds=6, evaluate_fn=lambda number, held: {"loss": 1 / number})
    assert len(strategy.seen) == 2 and watched.configure_evaluate(3, {}, {}, None) == []
    assert np.array_equal(final["w"].numpy(), START["w"] + 2.5)  # the model after the second round
    run = drift.open(tmp_path / "run")
    assert run.rounds() == [0, 1] and run.about["stopped"] == "enough" and verify(run.folder) == []
    assert [record.getMessage() for record in caplog.records] == ["fedscape stops the training: enough"]
    watched = recorded(Mean(replies()), tmp_path / "run", stop=lambda index, numbers: "enough" if index == 1 else None)
    watched.start(None, final, num_rounds=6)
    assert watched.configure_train(1, final, {}, None) == [] and drift.open(tmp_path / "run").rounds() == [0, 1], (
        "it stays stopped"
    )
    with pytest.raises(ValueError, match="stop is 'soon'"):
        recorded(Mean(replies()), tmp_path / "other", stop="soon")


def test_the_early_warning_stops_a_training_whose_steps_are_as_long_as_the_model(tmp_path):
    recorded(Mean(replies()), tmp_path / "run", stop="early warning").start(None, model(0), num_rounds=5)
    run = drift.open(tmp_path / "run")
    assert run.rounds() == [0] and run.about["stopped"].startswith("early warning rate in round 0: ")
