"""Recorded clients that are late, stopped, partial or sent another model: what is stored, and what is refused."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from drift import update_causes
from drift.record.recorder import Recorder
from drift.runs.run import Run


def state(seed: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double().state_dict()


def vector(model: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([value.reshape(-1) for value in model.values()])


def recorded(folder, **unequal) -> Run:
    recorder = Recorder(folder)
    recorder.round(start=state(0), clients={0: (state(10), 5), 1: (state(11), 3)}, end=state(1))
    recorder.round(clients={0: (state(12), 5), 1: (state(13), 3)}, end=state(2))
    body = {name: value for name, value in state(16).items() if name.startswith("0.")}
    recorder.round(
        clients={0: (state(14), 5), 3: (state(15), 3), 1: (body, 2)},
        end=state(3),
        unequal={3: {"start_round": 1, "steps": 7, "sent": state(17)}, 4: {"stopped": True}, **unequal},
    )
    return Run(folder)


def test_an_update_is_measured_against_the_model_that_its_client_started_from(tmp_path):
    run = recorded(tmp_path / "run")
    record, begun, now = run.round(2), vector(state(1)), vector(state(2))
    assert record.ids.tolist() == [0, 1, 3]
    torch.testing.assert_close(record.deltas[0], vector(state(14)) - now)
    torch.testing.assert_close(record.deltas[2], vector(state(17)) - begun)
    torch.testing.assert_close(record.extras["trained"][2] - record.start, vector(state(15)) - begun)
    torch.testing.assert_close(record.extras["trained"][:2], record.clients[:2])
    assert float(record.gram[5, 5]) == pytest.approx(float((vector(state(17)) - begun).square().sum()))
    assert record.extras["start_round"].tolist() == [2, 2, 1]
    assert record.extras["steps"][2] == 7
    assert record.extras["steps"][:2].isnan().all()
    assert record.extras["stopped"].tolist() == [4]
    assert record.extras["partial"].tolist() == [1]
    assert record.extras["partial_tensors"].tolist() == [[1, 1, 0, 0]]
    assert run.experiment.clients.number == 5
    assert run.unequal == "late, partial, sent, steps, stopped"
    assert not {"start_round", "trained", "stopped"} & set(run.round(1).extras)


def test_smaller_tensors_of_a_narrow_client_are_leading_blocks_and_their_cause_is_split_out(tmp_path):
    recorder, narrow = Recorder(tmp_path / "run"), {"0.weight": (2, 3), "0.bias": (2,), "1.weight": (2, 2)}
    small = {name: state(11)[name][tuple(map(slice, shape))] for name, shape in narrow.items()}
    clients = {0: (state(10), 5), 1: (small, 3), 2: ({"1.bias": state(12)["1.bias"]}, 2)}
    recorder.round(start=state(0), clients=clients, end=state(1), unequal={1: {"narrow": True}})
    run = Run(tmp_path / "run")
    record, sent = run.round(0), {}
    for client, mine in ((1, small), (2, clients[2][0])):
        expected, mask = state(0), {name: torch.zeros_like(values) for name, values in state(0).items()}
        for name, values in mine.items():
            block = tuple(map(slice, values.shape))
            expected[name][block], mask[name][block] = values, 1
        sent[client] = vector(mask)
        assert torch.equal(record.clients[client], vector(expected))
        assert torch.equal(record.extras["partial_entries"][client - 1].double(), sent[client])
    assert run.unequal == "partial" and record.extras["partial"].tolist() == [1, 2]
    p, deltas = record.weights.double(), record.deltas.double()
    has = torch.stack([torch.ones(run.layout.size).double(), sent[1], sent[2]])
    complete = (p[:, None] * has * deltas).sum(0) / (p @ has)
    found = update_causes(run).sel(round=0)
    assert float(found.norm.sel(cause="partial")) == pytest.approx(float((p @ deltas - complete).norm()), rel=1e-12)
    assert found.attrs["unequal"].startswith("partial: ")


def test_windows_of_a_narrow_client_are_where_their_indices_are(tmp_path):
    recorder = Recorder(tmp_path / "run")
    places = {"0.weight": [[3, 0]], "0.bias": ([3, 0],), "1.weight": [[1], torch.tensor([3, 0])]}
    new, start = state(11), state(0)
    small = {"0.weight": new["0.weight"][[3, 0]], "0.bias": new["0.bias"][[3, 0]], "1.bias": new["1.bias"]}
    small |= {"1.weight": new["1.weight"][1:, [3, 0]]}
    clients = {0: (state(10), 5), 1: (small, 3)}
    recorder.round(start=start, clients=clients, end=state(1), unequal={1: {"narrow": places}})
    expected, mask = dict(start), {name: torch.zeros_like(values) for name, values in start.items()}
    for name in ("0.weight", "0.bias"):
        expected[name] = torch.stack([new[name][0], start[name][1], start[name][2], new[name][3]])
        mask[name][[0, 3]] = 1
    expected["1.weight"] = start["1.weight"].clone()
    expected["1.weight"][1, [0, 3]] = new["1.weight"][1, [0, 3]]
    mask["1.weight"][1, [0, 3]] = 1
    expected["1.bias"], mask["1.bias"] = new["1.bias"], torch.ones(2)
    run = Run(tmp_path / "run")
    record = run.round(0)
    assert torch.equal(record.clients[1], vector(expected))
    assert torch.equal(record.extras["partial_entries"][0].double(), vector(mask).double())
    assert run.unequal == "partial" and record.extras["partial"].tolist() == [1]


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ([[0, 4]], "narrow states [[0, 4]] of tensor '0.bias' of shape (4,); give a list of different indices"),
        ([[-1, 0]], "narrow states [[-1, 0]]"),
        ([[1, 1]], "narrow states [[1, 1]]"),
        ([[0.0, 1.0]], "narrow states [[0.0, 1.0]]"),
        ([[True, False]], "narrow states [[True, False]]"),
        ([0, 1], "narrow states [0, 1] of tensor"),
        ([[0, 1], [0]], "narrow states [[0, 1], [0]]"),
        ("01", "narrow states '01'"),
        (3, "narrow states 3"),
        ([[0, 1, 2]], "tensor '0.bias' has shape (2,), the run has (4,) (see `narrow`)"),
    ],
)
def test_indices_that_are_none_are_refused_by_client_and_tensor(tmp_path, stated, words):
    recorder, small = Recorder(tmp_path / "run"), {**state(1), "0.bias": torch.zeros(2).double()}
    with pytest.raises(ValueError, match=re.escape(f"client 1: {words}")) as caught:
        recorder.round(
            start=state(0), clients={1: (small, 3)}, end=state(1), unequal={1: {"narrow": {"0.bias": stated}}}
        )
    assert "\n" not in str(caught.value) and recorder.next == 0


def test_indices_of_a_tensor_that_there_is_not_are_refused(tmp_path):
    recorder, small = Recorder(tmp_path / "run"), {**state(1), "0.bias": torch.zeros(2).double()}
    for name in ("0.bais", 0):
        places = {"0.bias": [[0, 1]], name: [[0, 1]]}
        with pytest.raises(ValueError, match=rf"client 1: narrow states tensor {name!r}, and the run has none of this"):
            recorder.round(start=state(0), clients={1: (small, 3)}, end=state(1), unequal={1: {"narrow": places}})
    assert recorder.next == 0


def test_a_narrow_client_that_is_not_narrow_is_refused_by_client_and_tensor(tmp_path):
    recorder = Recorder(tmp_path / "run")
    wide = {**state(1), "0.bias": torch.zeros(5).double()}
    flat = {**state(1), "0.weight": torch.zeros(3).double()}
    deep = {**state(1), "0.bias": torch.zeros(2, 2).double()}
    refused = {r"\(5,\), the run has \(4,\)": wide, r"\(3,\), the run has \(4, 3\)": flat, r"\(2, 2\), the run": deep}
    for shape, model in refused.items():
        with pytest.raises(ValueError, match=rf"client 1: tensor '0\.\w+' has shape {shape}"):
            recorder.round(start=state(0), clients={1: (model, 3)}, end=state(1), unequal={1: {"narrow": True}})
    with pytest.raises(ValueError, match=r"unequal\[1\] is \{'narrow': 1\}"):
        recorder.round(start=state(0), clients={1: (state(1), 3)}, end=state(1), unequal={1: {"narrow": 1}})
    recorder.round(start=state(0), clients={1: (state(1), 3)}, end=state(1), unequal={1: {"narrow": False}})
    assert Run(tmp_path / "run").unequal == "", "what is said not to apply is no inequality"


def test_a_start_that_is_not_recorded_is_stated_instead(tmp_path):
    recorder = Recorder(tmp_path / "run", globals="none", clients="none")
    for seed in (1, 2):
        recorder.round(start=state(seed - 1), clients={0: (state(8), 5)}, end=state(seed))
    with pytest.raises(ValueError, match="client 0: it started from round 0, whose start is not recorded; state it"):
        recorder.round(clients={0: (state(9), 5)}, end=state(3), unequal={0: {"start_round": 0}})
    recorder.round(clients={0: (state(9), 5)}, end=state(3), unequal={0: {"start_round": 0, "start": state(0)}})
    square = float((vector(state(9)) - vector(state(0))).square().sum())
    (record,) = Run(tmp_path / "run").without_models([2])
    assert float(record.gram[3, 3]) == pytest.approx(square)
    assert "trained" not in record.extras


def test_a_start_that_is_that_of_its_round_is_taken_and_one_without_a_round_may_be_any(tmp_path):
    run = recorded(tmp_path / "run")
    recorder = Recorder(run.folder)
    stated = {0: {"start_round": 1, "start": state(1)}, 1: {"start": state(20)}}
    recorder.round(clients={0: (state(12), 5), 1: (state(13), 5)}, end=state(4), unequal=stated)
    record = Run(run.folder).round(3)
    torch.testing.assert_close(record.deltas[0], vector(state(12)) - vector(state(1)))
    torch.testing.assert_close(record.deltas[1], vector(state(13)) - vector(state(20)))


@pytest.mark.parametrize(
    ("unequal", "message"),
    [
        ([3], "unequal is [3]; give {client"),
        ({0: 3}, "unequal is {0: 3}; give"),
        ({0: {"lateness": 1}}, "unequal[0] has 'lateness'; give"),
        ({9: {"steps": 3}}, "unequal[9] is {'steps': 3}, and clients lacks it; only {'stopped': True} says so"),
        ({0: {"stopped": True}}, "unequal[0] is {'stopped': True}, and clients has it"),
        ({9: {"stopped": 1}}, "unequal[9] is {'stopped': 1}, and clients lacks it"),
        ({9: {"stopped": True, "steps": 3}}, "clients lacks it; only {'stopped': True} says so"),
        ({0: {"steps": -1}}, "steps of client 0 is -1; give a whole number from 0 to inf"),
        ({0: {"steps": 2.5}}, "steps of client 0 is 2.5"),
        ({0: {"start_round": 4}}, "start_round of client 0 is 4; give a whole number from 0 to 1"),
        ({0: {"start_round": True}}, "start_round of client 0 is True"),
        ({0: {"sent": 4.0}}, "client 0: a model is a float; give a state dict"),
        ({0: {"start": 4.0}}, "client 0: a model is a float; give a state dict"),
        ({0: {"start_round": 0, "start": {"weight": torch.ones(2)}}}, "client 0: the model has no tensor"),
        ({0: {"sent": {"weight": torch.ones(2)}}}, "client 0: the model has no tensor"),
        ({0: {"sent": dict([*state(12).items()][1:])}}, "client 0: sent lacks tensor '0.weight', which its model"),
        (
            {0: {"start_round": 0, "start": state(4)}},
            "client 0: start is not the recorded start of round 0, its start_r",
        ),
        (
            {0: {"start_round": 1, "start": state(0)}},
            "client 0: start is not the recorded start of round 1, its start_r",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_recorded(unequal, message, tmp_path):
    recorder = Recorder(tmp_path / "run")
    recorder.round(start=state(0), clients={0: (state(10), 5)}, end=state(1))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        recorder.round(clients={0: (state(12), 5)}, end=state(2), unequal=unequal)
    assert "\n" not in str(caught.value)
    assert recorder.next == 1


def test_a_late_model_that_is_not_finite_is_excluded(tmp_path):
    recorder = Recorder(tmp_path / "run")
    recorder.round(start=state(0), clients={0: (state(10), 5)}, end=state(1))
    wrong = {name: value * torch.nan for name, value in state(12).items()}
    recorder.round(
        clients={0: (state(12), 5), 1: (wrong, 5), 2: (state(13), 5)},
        end=state(2),
        unequal={1: {"start_round": 0}, 2: {"sent": wrong}},
    )
    record = Run(tmp_path / "run").round(1)
    assert record.extras["excluded"].tolist() == [1, 2]
    assert record.ids.tolist() == [0]
    assert record.extras["start_round"].tolist() == [1]
