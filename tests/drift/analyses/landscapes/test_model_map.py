"""Maps of models: planted groups, aligned copies, models without a loss, and means judged on samples of their own."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import tiny
import torch

import drift
from benchmarks.model_map import STORED, adjusted_rand, planted_table, table
from drift.analyses.landscapes import map_means
from drift.analyses.landscapes import model_map as module
from drift.analyses.landscapes.named_models import named_models
from landscape.geometry.alignment import layer_stack, permute

KEEP = ("keep.clients=all", "keep.globals=all")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Runs of three seeds, whose models start at different places."""
    folder = tmp_path_factory.mktemp("seeds")
    overrides = (*KEEP, "task.model=mlp", "task.dataset_options.samples=200", "local.epochs=5", "rounds=4")
    return [tiny.trained(folder, *overrides, f"seed={seed}") for seed in (1, 2, 3)]


def with_models(monkeypatch, change):
    """Maps take models that are changed once they are read."""

    def changed(run, round, names):
        named = named_models(run, round, names)
        return type(named)(named.names, change(named.models))

    monkeypatch.setattr(module, "named_models", changed)


def test_an_index_of_partitions_by_hand():
    assert adjusted_rand([1, 1, 2, 2], ["b", "b", "a", "a"]) == 1
    assert adjusted_rand([1, 1, 2, 2], [1, 2, 1, 2]) == pytest.approx(-0.5)


def test_planted_groups_are_recovered(seeds):
    ds = drift.model_map(seeds[0], others=[run.name for run in seeds[1:]])
    owners = [name.rpartition(": ")[0] for name in ds.mark.values.tolist()]
    assert len(set(owners)) == 3
    assert adjusted_rand(owners, ds.mark_basin.values.tolist()) > 0.9
    assert (ds.basin_barrier.values[np.triu_indices(3, 1)] > ds.attrs["margin"]).all()


def test_reordered_copies_are_one_basin_once_they_are_aligned(seeds, monkeypatch):
    run, source = seeds[0], np.random.default_rng(0)
    layers = layer_stack(run.task)

    def shuffled(models):
        orders = [[source.permutation(layer.out) for layer in layers[:-1]] for _ in models]
        return torch.stack([models[0], *map(permute, [layers] * (len(models) - 1), models[1:], orders[1:])])

    with_models(monkeypatch, shuffled)
    apart, together = (drift.model_map(run, rounds=[3], aligned=aligned) for aligned in (False, True))
    assert apart.mark_basin.max() > 1
    assert together.mark_basin.max() == 1
    np.testing.assert_allclose(together.mark_loss, apart.mark_loss, rtol=1e-5)
    plain = drift.model_map(run, rounds=[3])
    assert float(together.distance.max()) < float(plain.distance.max())


def test_the_places_are_those_of_the_distances(seeds):
    names = ["client 0 of round 3", "round 2", "round 3"]
    names[0] = next(name for name in drift.model_map(seeds[0]).mark.values.tolist() if name.endswith("round 3"))
    ds = drift.model_map(seeds[0], models=names)
    places = np.stack([ds.mark_alpha, ds.mark_beta], 1)  # three models lie in a plane
    away = np.linalg.norm(places[:, None] - places, axis=2)
    np.testing.assert_allclose(away, ds.distance, rtol=1e-6)
    assert ds.attrs["explained_alpha"] + ds.attrs["explained_beta"] == pytest.approx(1)


def test_a_diverged_model_is_named_and_equal_ones_are_not_joined_at_a_cost(seeds):
    huge = "1e30 * round 2 + 1e30 * round 3"
    names = ["round 3", huge, "1.0 * round 3", "round 2"]
    ds = drift.model_map(seeds[0], models=names)
    assert ds.mark.values.tolist() == names
    assert ds.attrs["diverged"] == huge
    for name in ("mark_loss", "mark_alpha", "mark_basin", "mark_chosen"):
        assert ds[name].isnull().values.tolist() == [False, True, False, False], name
    assert ds.barrier.sel(mark=huge).isnull().all() and ds.cka.sel(mark=huge).isnull().all()
    twin = ds.sel(mark="round 3", mark_other="1.0 * round 3")
    assert (float(twin.distance), float(twin.barrier), float(twin.points)) == (0, 0, 0)
    assert float(twin.cka) == pytest.approx(1)
    with pytest.raises(ValueError, match="none of the 1 models has a finite loss"):
        drift.model_map(seeds[0], models=[huge])


@pytest.mark.parametrize("judged", [[np.nan, 2.0, 2.0, 2.0], [2.0, 2.0, np.nan, 2.0], [np.nan] * 4])
def test_no_mean_is_chosen_that_is_judged_by_nan(seeds, monkeypatch, judged):
    measured = map_means.judged_means

    def told(*arguments):
        values = measured(*arguments)
        losses = np.array([*[1.0, 3.0, 1.0, 4.0], *values["candidate_loss"][4:]])
        return values | {"candidate_loss": losses, "judged_loss": np.array([*judged, *values["judged_loss"][4:]])}

    monkeypatch.setattr(map_means, "judged_means", told)
    if np.isnan(judged).all():
        with pytest.raises(ValueError, match="no mean of models has a finite loss on all samples of test"):
            drift.model_map(seeds[0], rounds=[3], samples=1)
        return
    ds = drift.model_map(seeds[0], rounds=[3], samples=1)
    assert ds.attrs["chosen"] == ds.candidate.values[2 if np.isnan(judged[0]) else 0]


def test_a_basin_whose_mean_has_no_loss_is_not_the_best(monkeypatch):
    monkeypatch.setattr(map_means, "evaluation_of", lambda *_, **__: MagicMock())
    monkeypatch.setattr(map_means, "evaluate", lambda *_, **__: {"loss": torch.tensor([torch.nan, 2.0, 1.0])})
    monkeypatch.setattr(map_means, "model_soup", lambda *_, **__: [0])
    run = SimpleNamespace(task=None)
    means = map_means.candidate_means(run, torch.eye(3), {1: [0], 2: [1], 3: [2]}, np.ones(3), None)
    assert next(iter(means)) == "basin 3"


def test_a_map_of_one_model_and_of_models_that_are_all_equal(seeds):
    one = drift.model_map(seeds[0], models=["round 3"])
    assert one.mark_basin.values.tolist() == [1] and one.mark_chosen.values.tolist() == [1]
    assert one.judged_loss.sel(candidate="best model") == pytest.approx(float(one.judged_loss[-1]))
    same = drift.model_map(seeds[0], models=["round 3", "1.0 * round 3"])
    assert not same.distance.any() and not same.mark_alpha.any() and same.mark_basin.max() == 1


def test_the_chosen_mean_is_judged_on_samples_that_no_choice_has_seen(seeds):
    run = seeds[0]
    ds = drift.model_map(run)
    choosing, judging = module.halves(run, "test", 1000)
    rows = torch.cat([choosing.inputs, judging.inputs])
    assert len(torch.unique(rows, dim=0)) == len(torch.unique(run.task.split("test").inputs, dim=0))
    assert len(choosing) + len(judging) == len(run.task.split("test")) == len(rows)
    members = ds.mark.values[ds.mark_chosen.values == 1].tolist()
    mean = torch.stack([model.double() for model in named_models(run, -1, members).models]).mean(0)
    task = run.task
    outputs = task.outputs(mean.float(), judging)
    expected = float(torch.nn.functional.cross_entropy(outputs, judging.targets))
    assert float(ds.judged_loss.sel(candidate=ds.attrs["chosen"])) == pytest.approx(expected, rel=1e-5)
    assert ds.candidate_loss.sel(candidate=ds.attrs["chosen"]) == ds.candidate_loss[:4].min()


def test_names_reach_other_rounds_and_other_runs(seeds):
    run, other = seeds[0], seeds[1]
    record = other.round(2)
    client = int(record.ids[0])
    names = [f"{other.name}: client {client} of round 2", f"{other.name}: aggregate of round 2", "start of round 1"]
    models = named_models(run, -1, names).models
    assert torch.equal(models[0], record.clients[0])
    weights = other.experiment.cohort_weights(record.sizes)
    torch.testing.assert_close(models[1].double(), weights @ record.clients.double(), rtol=1e-5, atol=1e-7)
    assert torch.equal(models[2], run.round(1).start)
    for wrong in ("client 0 of round x", f"{other.name}: end", "client 0 of "):
        with pytest.raises(ValueError, match="no model named"):
            named_models(run, -1, [wrong])


def test_runs_of_another_model_or_other_data_are_refused(seeds, tmp_path):
    run = tiny.trained(tmp_path, *KEEP)
    tiny.trained(tmp_path, *KEEP, "task.model=mlp")
    tiny.trained(tmp_path, *KEEP, "task.dataset_options.samples=80")
    others = {path.name: drift.open(path) for path in tmp_path.iterdir() if path.name != run.folder.name}
    for name, other in others.items():
        text = "has another model" if other.experiment.task.model == "mlp" else "has other data"
        with pytest.raises(ValueError, match=text):
            drift.model_map(run, others=[name])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"models": ["round 3", "round 3"]}, "round 3 is named twice"),
        ({"models": []}, "models is empty"),
        ({"models": ["round 3"], "rounds": [2]}, "give either"),
        ({"margin": -1.0}, "margin is -1"),
        ({"samples": 0}, "samples is 0"),
    ],
)
def test_unknown_options_are_refused(seeds, options, text):
    with pytest.raises(ValueError, match=text):
        drift.model_map(seeds[0], **options)


def test_a_run_without_models_says_how_to_train_one(tmp_path):
    run = tiny.trained(tmp_path, "keep.clients=none", "keep.globals=none")
    with pytest.raises(LookupError, match="kept no models; train it with"):
        drift.model_map(run)


def test_the_estimate_grows_with_the_pairs(seeds):
    few, many = (module.model_map_effort(seeds[0], rounds=rounds) for rounds in ([3], [1, 2, 3]))
    assert 3 < many.forwards / few.forwards < 12


def test_the_tables_of_the_page_are_those_of_the_stored_numbers():
    import json
    from pathlib import Path

    page = (Path(__file__).resolve().parents[4] / "docs" / "model-map.md").read_text()
    content = json.loads(STORED.read_text())
    assert planted_table(content) in page
    assert table(content) in (Path(__file__).resolve().parents[4] / "docs" / "findings.md").read_text()


def test_the_run_itself_is_no_other_run_and_a_model_has_one_name(seeds):
    run = seeds[0]
    with pytest.raises(ValueError, match="is the run of the map itself"):
        drift.model_map(run, others=[run.folder.name])
    with pytest.raises(ValueError, match="named twice"):
        drift.model_map(run, models=["round 3", f"{run.folder.name}: round 3"])
    with pytest.raises(ValueError, match="rounds is empty"):
        drift.model_map(run, rounds=[])
