"""Benchmarks give peers the settings that they measure themselves, and join the results of several machines."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

from benchmarks import adapters, gpu, noise, write_tables
from benchmarks._cohorts import LR, MOMENTUM, SETTINGS
from benchmarks._curvature import smoothed
from benchmarks._peer_settings import LR as PEER_LR
from benchmarks._peer_settings import MOMENTUM as PEER_MOMENTUM
from benchmarks._peer_settings import settings
from benchmarks.hessian import _density_errors, _eigenvalue_errors
from benchmarks.write_tables import summary, tables


@pytest.mark.parametrize("name", ["cnn_fmnist", "cnn_cifar10", "mlp_digits", "mlp_digits_batch10"])
def test_peers_train_the_same_cohorts(name):
    assert settings(name) == vars(SETTINGS[name])
    assert (PEER_LR, PEER_MOMENTUM) == (LR, MOMENTUM)


MACHINE = {"name": "Fast", "number": "1-2-3", "flags": "avx2", "torch": "2.13"}


def _results(folder, name, rows, about=MACHINE):
    folder.mkdir(exist_ok=True)
    key = {"landscape": "tables", "hessian": "rows"}[name]
    (folder / f"{name}.json").write_text(json.dumps({"processor": about, key: rows}))
    return folder


def _plane(model, seconds, **ratio):
    return {"model": model, "points": 6, "samples": 9, "seconds": {"ours": seconds}, "ratio": {"ours": 1.0, **ratio}}


def _cells(text, work):
    lines = [line[1:-1] for line in text.splitlines() if line.startswith(f"|{work}")]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.mark.parametrize("only", [[], ["--only", "landscape", "lanscape"]])
def test_a_machine_without_results_is_refused_in_one_line_and_nothing_is_written(only, tmp_path, monkeypatch, capsys):
    for name in ("RESULTS", "MACHINES", "PAGE"):
        monkeypatch.setattr(write_tables, name, tmp_path / name)
    monkeypatch.setattr("sys.argv", ["write_tables", "--machine", "mine", *only])
    with pytest.raises(SystemExit) as ended:
        write_tables.main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "RESULTS has no results of landscape, " in line and line.endswith("make bench.")
    assert not list((tmp_path / "MACHINES").iterdir())


def test_machines_stand_one_below_the_other_for_each_work(tmp_path):
    rows = [_plane("din", [1.0, 3.0, 2.0], expert=1.25, compiled=0.5), _plane("mlp", [4.0], expert=5.0, compiled=8.0)]
    first = summary(_results(tmp_path / "first", "landscape", rows), "quiet", None, {})
    slow = _results(
        tmp_path / "second",
        "landscape",
        [_plane("mlp", [5.0], expert=2.0)],
        {**MACHINE, "name": "Slow", "number": "25-17-1"},
    )
    text = tables([first, summary(slow, "loaded", None, {})])
    assert text.splitlines()[:2] == [
        "1. Fast 1-2-3, torch 2.13, quiet",
        "2. Slow Genoa (Zen 4), torch 2.13, loaded",
    ]
    assert _cells(text, "work") == [["work", "machine", "fedscape", "expert's loop", "compiled", "better of both"]]
    assert _cells(text, "din") == [["din, 6^2, 9", "1", "2 s", "1.25", "0.50", "0.50"]]
    both = [["1", "4 s", "5.00", "8.00", "5.00"], ["2", "5 s", "2.00", "", ""]]
    assert [row[1:] for row in _cells(text, "mlp")] == both
    assert _cells(text, "geometric") == [["geometric mean of 2 models", "1", "", "2.50", "2.00", "1.58"]]


def test_a_geometric_mean_stands_below_the_models_of_every_machine(tmp_path):
    pairs = {"first": ("din", "mlp"), "second": ("resnet8", "lenet5")}
    folders = [
        _results(tmp_path / name, "landscape", [_plane(one, [1.0], expert=2.0) for one in pair])
        for name, pair in pairs.items()
    ]
    text = tables([summary(folder, "quiet", None, {}) for folder in folders])
    works = [line.split("|")[1].partition(",")[0] for line in text.splitlines() if ", 6^2," in line or "mean" in line]
    assert works == ["din", "mlp", "resnet8", "lenet5", *["geometric mean of 2 models"] * 2]


def test_users_read_some_tables_and_the_log_has_others_of_machines_that_are_not_loaded():
    quiet, loaded = ({"processor": MACHINE, "state": state, "parts": {}} for state in ("quiet", "loaded"))
    for machine, seconds in ((quiet, "1 s"), (loaded, "2 s")):
        machine["parts"] = {title: [(title, seconds, {})] for title in write_tables.PARTS}
    page, log = write_tables.pages([loaded, quiet]).values()
    assert "1 s" in page and "1 s" in log and "2 s" not in page + log
    for text, titles in ((page, write_tables.SHOWN), (log, write_tables.LOGGED)):
        assert sorted(re.findall(r"(?m)^## (.*)$", text)) == sorted(titles)
    machines = [json.loads(path.read_text()) for path in sorted(write_tables.MACHINES.glob("*.json"))]
    for path, text in write_tables.pages(machines).items():
        assert f"{write_tables.BEGIN}\n\n{text}\n\n{write_tables.END}" in path.read_text(encoding="utf-8")


def test_a_choice_of_sweeps_has_its_mean_over_the_models_that_it_changes(tmp_path):
    shares = {"mlp": {"products": 0.9}, "din": {"products": 0.755}, "cnn": {"products": 0.5}}
    ratios = {"never": {"mlp": 8.0, "din": 1.0, "cnn": 1.0}, "small": {"din": 0.81, "cnn": 1.0}}
    content = {"processor": MACHINE, "ratios": ratios | {"expert's loop": dict.fromkeys(shares, 3.0)}, "shares": shares}
    (tmp_path / "ablation.json").write_text(json.dumps(content))
    text = tables([summary(tmp_path, "quiet", None, {})])
    assert _cells(text, "work") == [["work", "machine", "fedscape", "never", "small", "in products"]]
    assert _cells(text, "mlp") == [["mlp", "1", "", "8.00", "", "90%"]]
    assert _cells(text, "geometric") == [
        ["geometric mean of 3 models", "1", "", "2.00", "", ""],
        ["geometric mean of 2 models", "1", "", "", "0.90", ""],
    ]


def test_a_card_is_a_machine_of_the_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "gpu.json")
    planes = [{"model": "mlp", "per_second": {"ours": 1500.0, "expert": 20.0, "vmap 4": 3.0, "vmap 16": 4.0}}]
    monkeypatch.setattr(gpu, "planes", lambda device, tiny: planes)
    monkeypatch.setattr("sys.argv", ["gpu", "--device", "cpu", "--parts", "planes"])
    gpu.main()
    text = tables([summary(tmp_path, "quiet", ["gpu"], {})])
    assert text.startswith(f"1. cpu, torch {torch.__version__}, quiet")
    assert _cells(text, "mlp") == [["mlp", "1", "1,500", "20", "4"]]


def test_a_machine_keeps_what_was_not_measured_again_and_takes_nothing_from_another_one(tmp_path):
    folder = _results(tmp_path, "landscape", [_plane("mlp", [4.0], expert=5.0)])
    earlier = summary(folder, "quiet", None, {})
    _results(tmp_path, "landscape", [_plane("mlp", [9.0], expert=5.0)])
    assert summary(folder, "quiet", ["hessian"], earlier) == earlier
    assert summary(folder, "quiet", ["landscape"], earlier)["parts"]["Planes"][0][1] == "9 s"
    _results(tmp_path, "landscape", [_plane("mlp", [9.0])], {**MACHINE, "torch": "2.9"})
    with pytest.raises(ValueError, match="measured on another machine"):
        summary(folder, "quiet", None, earlier)


def test_an_error_that_was_not_reached_is_stated(tmp_path):
    own = {"seconds": [1.0], "ratio": 1.0, "error": 1e-4, "peak_mib": 20, "reached": True}
    programs = {
        "fedscape": own,
        "PyHessian": {**own, "ratio": 3.0, "error": 0.2, "reached": False},
        "curvlinops": {"failed": "no"},
    }
    folder = _results(tmp_path, "hessian", [{"model": "mlp", "job": "top 5", "programs": programs}])
    text = tables([summary(folder, "quiet", None, {})])
    assert _cells(text, "mlp")[0][2:] == ["1 s, 1e-04, 20", "3.00, 20, error 2e-01", "fails"]


def test_equal_error_takes_the_first_setting_that_is_exact_enough():
    values = np.linspace(-1, 3, 400)
    grid = np.linspace(-2, 4, 2001)
    exact = smoothed(grid, values, np.full(400, 1 / 400), 0.05)
    assert abs(np.trapezoid(exact, grid) - 1) < 1e-6
    errors = _density_errors(values)
    assert errors(lambda seed: (grid, exact, 0.05)) < 1e-12
    assert errors(lambda seed: (grid, smoothed(grid, values + 0.1, np.full(400, 1 / 400), 0.05), 0.05)) > 0.02
    assert _eigenvalue_errors(np.array([4.0, -2.0]))(lambda seed: np.array([4.0, -2.02])) == pytest.approx(0.01)


def test_texts_of_adapters_mask_what_the_encoder_predicts():
    ids, source = torch.arange(130).view(2, 65), torch.Generator().manual_seed(1)
    shifted, masked = adapters.task_of(ids, "decoder", source), adapters.task_of(ids, "encoder", source)
    assert torch.equal(shifted.targets, shifted.inputs + 1)
    hidden = masked.inputs == adapters.MASK
    assert 0 < hidden.sum() < 64
    assert torch.equal(masked.targets, ids[:, :-1].where(hidden, torch.tensor(-100)))
    assert torch.equal(masked.inputs[~hidden], ids[:, :-1][~hidden])


def test_frequencies_of_bytes_predict_the_most_frequent_one_where_there_is_a_label():
    found = adapters.frequencies(torch.tensor([[7, 7, 9]]), torch.tensor([7, -100, 9, 8, 7]))
    seen = np.array([3, 2, 1, 3]) / (256 + 3)  # of the labels; every byte counts once more than it is seen
    assert found["accuracy"] == 0.5
    assert found["loss"] == pytest.approx(-np.log(seen).mean(), rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_rotary_positions_are_constants_in_a_model_that_is_read_again(tmp_path, monkeypatch):
    pytest.importorskip("peft", reason="the extra hf is not installed")
    monkeypatch.setattr(adapters, "WIDTH", 16)
    base, ids = adapters.Model((8,), 257, "encoder").eval(), torch.arange(16).view(2, 8)
    base.model.save_pretrained(tmp_path)
    for lora in (0, 2):
        model = adapters.Model((8,), 257, "encoder", str(tmp_path), lora).eval()
        assert torch.equal(model(ids), base(ids))
        assert not [name for name, value in model.named_parameters() if value.requires_grad and "positions" in name]


def test_the_table_of_adapters_pairs_seeds_and_has_student_intervals():
    def runs(variant, losses):
        rows = [{"variant": variant, "seed": seed, "loss": [9.0, loss]} for seed, loss in enumerate(losses)]
        gaps = {} if variant == adapters.FULL else {"relative": [0.1, 0.3], "of_step": [0.5, 0.5]}
        return [row | {"accuracy": [0.1, 0.25], **gaps} for row in rows]

    rows = runs("fedit", [1.0, 2.0, 3.0]) + runs("ffa", [1.5, 2.5, 3.5])
    rows += [row for name in ("rolora", "fedex", "flora", "full") for row in runs(name, [2.0, 2.0, 2.0])]
    about = {"frequencies": {"loss": 5.0, "accuracy": 0.1}, "loss": 4.0, "accuracy": 0.2}
    text = adapters.table({"models": {"decoder": {**about, "runs": rows}}})
    half = 4.302653 / 3**0.5  # Student's quantile of two degrees of freedom
    assert _cells(text, "decoder")[0][1:4] == ["frequencies", "5.000", "10.0"]
    assert _cells(text, "|pre-training")[0][1:4] == ["pre-training", "4.000", "20.0"]
    assert _cells(text, "|FedIT")[0][2:] == [f"2.000±{half:.3f}", "25.0", "", "20.0", "50.0"]
    assert _cells(text, "|FFA-LoRA")[0][4] == "+0.500"
    assert _cells(text, "|all weights")[0][4:] == [f"+0.000±{half:.3f}", "", ""]


def test_shares_of_the_error_of_a_mean_update_are_those_of_its_formula():
    squares = {"signal": [5.0], "drift": [2.0], "sampling": [8.0], "noise": [4.0]}
    shares = noise.error_shares({"mean_square": squares, "cohort": 4, "clients": 8})
    assert {name: value.item() for name, value in shares.items()} == {"drift": 0.5, "sampling": 0.25, "noise": 0.25}
