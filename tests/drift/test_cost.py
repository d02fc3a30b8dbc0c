import pytest
import tiny
import torch

from drift.cost import cost


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [tiny.trained(folder, *method) for method in ([], ["method=lss", "local.optimizer=adam"])]


def test_a_linear_model_costs_two_products_a_sample(runs):
    """8 features, 4 classes; the gradient with respect to the inputs is not needed."""
    ds = cost(runs[0])
    assert float(ds.macs) == 8 * 4
    assert float(ds.macs_round) == 2 * 8 * 4 * float(ds.samples)
    assert float(ds.bytes_up) == 3 * 36 * 4
    assert float(ds.bytes_down) == float(ds.bytes_up)
    assert float(ds.seconds_recorded) > 0
    assert float(ds.macs_training) == float(ds.macs)


def test_a_pool_costs_its_candidates(runs):
    plain, pool = (cost(run) for run in runs)
    candidates = runs[1].method.candidates
    assert float(pool.macs_round) == candidates * float(plain.macs_round)
    assert float(pool.macs_training) == (candidates + 1) / 2 * float(plain.macs)
    assert float(pool.memory_round) > float(plain.memory_round) + candidates * 36 * 4


def test_counting_leaves_random_state_and_record_alone(runs):
    state, before = torch.get_rng_state(), runs[0].round(-1).end
    cost(runs[0])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(runs[0].round(-1).end, before)
