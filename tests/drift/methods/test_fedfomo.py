"""FedFomo: mixtures by hand, and what clients receive."""

from dataclasses import replace

import pytest
import torch

from drift.config import method as methods
from drift.methods.fedfomo import helpfulness, shares_of
from drift.training.validation import validate
from tests.tiny import trained

HELD = ("method=fedfomo", "clients.valid_ratio=0.3", "clients.per_round=4", "rounds=2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), *HELD)


def test_shares_are_gains_over_distances(run):
    client = run.client(1, 0)
    first = client.start
    models = run.round(1).clients
    shares = shares_of(helpfulness(client, models, torch.zeros(4, 0), client.held_out))
    gains = []
    client.flat.load(first)
    own = validate(client, client.held_out)[0]
    for model in models:
        client.flat.load(model)
        gains.append(max(0.0, own - validate(client, client.held_out)[0]) / (float((model - first).norm()) + 1e-5))
    expected = torch.tensor(gains, dtype=torch.float64)
    assert float(expected.sum()) > 0
    torch.testing.assert_close(shares, expected / expected.sum())


def test_where_no_model_is_better_the_client_goes_on_from_its_own(run):
    client = run.client(1, 0)
    worse = client.start + 100 * torch.randn(len(client.start), generator=torch.Generator().manual_seed(0))
    assert not bool(shares_of(helpfulness(client, worse[None], torch.zeros(1, 0), client.held_out)).any())
    alone = replace(client, server={**client.server, "models": worse.expand(4, -1).clone()})
    own = replace(client, start=client.state["theta"], server={})
    method = methods.load("fedfomo")()
    assert torch.equal(method.local(alone).theta, method.local(own).theta)


def test_clients_receive_the_last_cohort_s_models_but_not_their_own(run):
    client = run.client(1, 2)
    assert torch.equal(client.server["models"], run.round(0).clients)
    method = methods.load("fedfomo")(models=3)
    changed = client.server["models"].clone()
    changed[client.server["models_ids"].tolist().index(2)] = torch.nan
    again = replace(client, server={**client.server, "models": changed})
    assert torch.equal(method.local(again).theta, method.local(client).theta)


def test_the_first_round_is_fedavg(run, tmp_path):
    plain = trained(tmp_path, *HELD[1:], "method=fedavg")
    assert torch.equal(run.round(0).end, plain.round(0).end)
    assert not torch.equal(run.round(1).end, plain.round(1).end)
