"""Sums over client models by blocks against those over the whole matrix."""

import pytest
import torch

from drift.store.column_blocks import WIDTH, Updates, column_blocks, summed_models, weighted_models
from drift.store.round_record import gram, gram_and_mean_update, gram_of_models, mean_and_sums
from drift.store.row_matrices import Rows
from landscape.model import mapped_files


@pytest.fixture(params=[(3, 5), (7, WIDTH), (10, 2 * WIDTH + 7), (33, WIDTH + 1)], ids=str)
def models(request):
    return torch.randn(*request.param, generator=torch.Generator().manual_seed(1))


def test_sums_by_blocks_have_the_bits_of_the_whole(models):
    m, d = models.shape
    generator = torch.Generator().manual_seed(2)
    weights, start = torch.rand(m, generator=generator).double(), torch.randn(d, generator=generator)
    deltas = models - start
    assert torch.equal(weighted_models(weights, models), weights.float() @ models)
    assert torch.equal(weighted_models(weights, models), torch.mv(models.T, weights.float()))
    assert torch.equal(weighted_models(weights, models, start), weights.float() @ deltas)
    active = weights > 0.3
    assert torch.equal(summed_models(models, start, active), deltas[active].sum(0))
    previous, step = torch.randn(2, d, generator=generator)
    assert torch.equal(gram_of_models(start, previous, step, models), gram(start, previous, step, deltas))


@pytest.mark.seconds
@pytest.mark.parametrize("models", [(3, 5), (10, 2 * WIDTH + 7), (300, WIDTH + 1)], ids=str, indirect=True)
def test_one_reading_of_a_file_gives_the_bits_of_all_sums(models, tmp_path, monkeypatch):
    m, d = models.shape
    generator = torch.Generator().manual_seed(4)
    start, previous, step = torch.randn(3, d, generator=generator)
    weights, path, columns = torch.rand(m, generator=generator), tmp_path / "models", 0
    path.write_bytes(models.numpy().tobytes())
    mapped = mapped_files.map_tensor(path, torch.float32, (m, d))
    matrix, mean = gram_of_models(start, previous, step, mapped), weighted_models(weights, mapped, start)
    read = mapped_files.read_columns

    def counted(models, part, block):
        nonlocal columns
        columns += part.stop - part.start
        read(models, part, block)

    monkeypatch.setattr(mapped_files, "read_columns", counted)
    once = gram_and_mean_update(start, previous, step, mapped, weights)
    assert columns == d
    assert torch.equal(once[0], matrix) and torch.equal(once[1], mean)
    model = weighted_models(weights, mapped)
    expected = gram_and_mean_update(start, previous, model - start, mapped, weights)
    columns = 0
    found, sums = mean_and_sums(start, previous, mapped, weights)
    assert columns == d
    assert torch.equal(found, model) and all(torch.equal(*pair) for pair in zip(sums, expected, strict=True))
    whole = gram_and_mean_update(start, previous, step, models, weights)
    assert torch.equal(whole[0], matrix)
    torch.testing.assert_close(whole[1], mean)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_updates_by_blocks_are_those_of_the_whole(models, scale, monkeypatch):
    m, d = models.shape
    generator = torch.Generator().manual_seed(3)
    start, vector = torch.randn(2, d, generator=generator)
    active = torch.arange(m) != 1
    weights = torch.rand(m - 1, generator=generator)
    whole = Updates(models, start, active, scale)
    total, products = whole.add_weighted(weights, torch.empty(d)), whole.products(vector)
    monkeypatch.setattr("drift.store.column_blocks.LARGE", 0)
    blocks = Updates(models, start, active, scale)
    assert torch.equal(blocks.add_weighted(weights, torch.empty(d)), total)
    torch.testing.assert_close(blocks.products(vector), products.double(), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("system", ["has preadv", "lacks preadv"])
def test_columns_of_a_mapped_file_are_read_into_a_block(tmp_path, monkeypatch, system):
    if system == "lacks preadv":
        monkeypatch.delattr("os.preadv")
    path, values = tmp_path / "models", torch.arange(12.0).view(3, 4)
    path.write_bytes(bytes(64) + values.numpy().tobytes())
    block = torch.zeros(3, 2)
    mapped_files.read_columns(mapped_files.map_tensor(path, torch.float32, (3, 4), 64), slice(1, 3), block)
    assert torch.equal(block, values[:, 1:3])


def test_a_mapped_file_is_read_again_after_its_release(tmp_path):
    path = tmp_path / "models"
    values = torch.arange(12.0).view(3, 4)
    path.write_bytes(bytes(64) + values.numpy().tobytes())
    models = mapped_files.map_tensor(path, torch.float32, (3, 4), 64)
    assert list(column_blocks(models, 3)) == [slice(0, 3), slice(3, 4)]
    for row, model in enumerate(Rows(models)):
        assert torch.equal(model, values[row])
    mapped_files.release(models.data_ptr())
    assert torch.equal(models, values)


def test_a_file_that_is_not_completed_goes_with_its_tensor(tmp_path):
    path = tmp_path / ".models.part"
    path.write_bytes(torch.ones(6).numpy().tobytes())
    models = mapped_files.map_tensor(path, torch.float32, (2, 3), temporary=True)
    assert mapped_files.incomplete_file(models) == (path, 0)
    assert mapped_files.incomplete_file(models[1]) == (path, 12)
    assert mapped_files.incomplete_file(torch.ones(2)) is None
    del models
    assert not path.exists()
