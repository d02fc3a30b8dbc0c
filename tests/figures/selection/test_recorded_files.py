"""Figures from the files of a campaign: the numbers are those of the files, and what a file lacks is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import figures
from drift.analyses.landscapes.model_quality import noise_robustness
from figures import gallery
from figures.cli import main
from figures.selection.open_runs import open_run
from landscape.results import netcdf_files

FILES = Path(__file__).resolve().parents[3] / "docs" / "results" / "data"


def runs(pattern):
    return [open_run(path) for path in sorted(FILES.glob(pattern))]


def drifts():
    """Runs of FedEve's Fig. 3b at one learning rate."""
    return [run for run in runs("fedavg-mnist-drift-*.json") if run.experiment.local.lr == 0.05]


def code(*tokens):
    with pytest.raises(SystemExit) as stop:
        main([str(token) for token in tokens])
    return stop.value.code


def stored(run, number):
    """A number over its rounds, read from the file by json alone."""
    content = json.loads(run.path.read_text())
    group = next(group for group in content["measured"] if number in group)
    rounds = [index for first, last, step in group["round"] for index in range(first, last + 1, step)]
    return np.array(rounds), np.array([np.nan if value is None else value for value in group[number]], dtype=float)


def test_the_drift_settings_are_drawn_with_the_numbers_of_the_files():
    shown = drifts()
    ds = gallery.load("settings-rounds").data(shown)
    assert ds.sizes["seed"] == 3 and ds.sizes["setting"] == 4
    for run in shown:
        rounds, values = stored(run, "accuracy")
        line = (
            ds.accuracy.sel(setting=run.experiment.clients.partition.setting, seed=run.seed).squeeze().dropna("round")
        )
        np.testing.assert_array_equal(line.values, values[np.isin(rounds, line["round"].values)])
        assert line["round"].values[-1] == rounds[-1] and line.size == len(rounds)


def test_tables_have_the_mean_of_the_last_ten_rounds():
    shown = runs("*cifar10-dirichlet*.json")
    over = "method.candidates,method.gamma"
    with pytest.raises(ValueError, match=f"name them in over, as in --set over={over}"):
        gallery.load("accuracy-table").data(gallery.AnyOf(shown))
    selected = gallery.load("accuracy-table").data(gallery.AnyOf(shown), over=over)
    values = selected.measured.values
    expected = []
    for run in shown:
        rounds, measured = stored(run, "accuracy")
        expected.append(measured[rounds > run.content["rounds"] - 11].mean())
    np.testing.assert_allclose(np.sort(values[np.isfinite(values)]), np.sort(expected), atol=1e-12)


def test_what_few_measured_rounds_stand_for_is_said():
    shown = [run for run in drifts() if run.experiment.clients.partition.setting == "both"]
    assert gallery.load("accuracy-table").data(shown).rounds == "mean of the last 10 evaluated rounds"
    assert gallery.load("rounds-target").data(shown).caption == "accuracy measured every 5 rounds at least"
    every = runs("*fashion-mnist-shards-s0-83f5b2c6.json")
    assert gallery.load("accuracy-table").data(every).rounds == "mean of the last 10 rounds"
    assert "caption" not in gallery.load("rounds-target").data(every).attrs


def test_numbers_of_rounds_are_drawn_and_no_cohorts_are_invented():
    shown = runs("fedavg-fashion-mnist-shards-s*.json")
    figure = gallery.load("numbers-rounds")
    ds = figure.data(shown, number="gain")
    assert ds.sizes["run"] == len(shown)
    pair = runs("fedavg-fashion-mnist-dirichlet-s0-*.json") + runs("ima-fashion-mnist-dirichlet-s0-*.json")
    with pytest.raises(LookupError, match="no cohorts to compare; leave out the reference"):
        figure.data(pair, reference="fedavg")


def test_means_of_blocks_are_stated_and_are_no_gains_of_rounds():
    shown = drifts()
    shown = [run for run in shown if run.experiment.clients.partition.setting == "both"]
    ds = gallery.load("variance-rounds").data(shown)
    assert ds.attrs["identity_rounds"] == "1500 rounds, means over 5 successive ones"
    for run in shown:
        blocks = np.array(json.loads(run.path.read_text())["blocks"]["gain"], dtype=float)
        np.testing.assert_array_equal(ds.gain.sel(seed=run.seed).squeeze(), blocks)
        np.testing.assert_array_equal(ds["round"], 5 * np.arange(len(blocks)))
    with pytest.raises(LookupError, match="means over several rounds"):
        gallery.load("gain-alpha").data(
            [run for run in runs("fedeve-mnist-dirichlet-*.json") if run.content["block"] > 1]
        )


@pytest.mark.parametrize(
    ("name", "options", "refusal"),
    [
        ("coherence-rounds", {"smooth": 5}, "holds no coherence with these options"),
        ("samples-round", {}, "holds no |not its models and data"),
        ("planes-clients", {}, "not its models and data|holds no"),
        ("labels-partition", {}, "not its models and data"),
    ],
)
def test_what_a_file_lacks_is_named(name, options, refusal):
    with pytest.raises(LookupError, match=refusal):
        gallery.load(name).data(runs("fedavg-fashion-mnist-shards-s[01]-*.json")[:1], **options)


def test_the_command_line_takes_files_and_folders_of_them(tmp_path, capsys):
    files = [run.path for run in drifts()]
    assert code("figures", "draw", "settings-rounds", *files, "--out", tmp_path, "--format", "png") == 0
    assert (tmp_path / "settings-rounds.png").stat().st_size > 10_000
    assert code("figures", "draw", "variance-rounds", FILES, "--out", tmp_path, "--format", "png") == 0
    for text, why in (("{}", "it states no format"), ("{1", "it cannot be read as a table in JSON")):
        (tmp_path / "other.json").write_text(text)
        assert code("figures", "draw", "settings-rounds", tmp_path / "other.json") == 2
        assert f"is not a campaign file ({why})" in capsys.readouterr().err
    assert code("figures", "draw", "settings-rounds", tmp_path / "none.json") == 2
    assert f"there is no file {tmp_path / 'none.json'}." in capsys.readouterr().err
    assert code("figures", "draw", "settings-rounds", files[0]) == 2
    assert "these runs have fewer than two of the four drift settings" in capsys.readouterr().err


def test_a_rate_is_stated_where_runs_of_another_one_are_left_out(tmp_path, capsys):
    files = sorted(FILES.glob("fedavg-mnist-drift-*.json"))
    assert code("figures", "draw", "settings-rounds", *files, "--out", tmp_path, "--format", "png") == 0
    ds = netcdf_files.load(tmp_path / "settings-rounds.nc")
    rates = {open_run(path).experiment.local.lr for path in files}
    assert rates == {0.01, 0.05} and ds.attrs["identity"].endswith("local rate 0.01")
    last = ds.accuracy.sel(setting="both").dropna("round").isel(round=slice(-10, None))
    assert float(last.mean()) == pytest.approx(0.8113, abs=1e-4), "by the files, in NumPy"


def test_files_by_hand_are_as_free_as_their_folder_and_the_rest_is_counted_in_one_line(tmp_path, capsys):
    others = [FILES / "fedadam-fashion-mnist-shards-s0-60f18f25.json", *sorted(FILES.glob("lss-cifar10-*.json"))[:3]]
    files = [run.path for run in drifts()]
    assert code("figures", "draw", "settings-rounds", *others, *files, "--out", tmp_path, "--format", "png") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert line.startswith(f"settings-rounds: 4 of {len(files) + 4} runs left out, differing in ") and "method" in line
    brief = netcdf_files.load(tmp_path / "settings-rounds.nc").attrs["left_out_brief"]
    assert len(brief) < 150 and "method (4)" in brief, "one line of the picture"


def test_nothing_is_announced_that_is_not_drawn_and_no_run_is_trained_among_the_files(tmp_path, capsys):
    assert code("figures", "draw", "--paper", "fedlaw", FILES, "--item", "figs1517", "-o", tmp_path) == 2
    assert "Figs. 15-17 are left out: no runs" in capsys.readouterr().err
    asked = ("--item", "fig1", "fig5c", "--format", "png", "-o", tmp_path)
    assert code("figures", "draw", "--paper", "ima", FILES, *asked) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("Fig. 1")] == [
        line for line in said if "Fig. 1 is left out" in line
    ]
    commands = [line for line in said if "fedscape sweep" in line]
    assert commands and all(line.endswith("--runs runs") for line in commands)


def test_a_file_and_a_folder_are_opened_by_one_function(tmp_path):
    run = open_run(next(FILES.glob("fedavg-*.json")))
    assert run.require_round(-1) == run.rounds()[-1]
    with pytest.raises(LookupError, match="it has 0 to"):
        run.require_round(10**6)
    assert figures.draw("accuracy-rounds", [run], tmp_path, formats=["png"])


def test_a_table_of_a_paper_is_drawn_from_files_beside_the_printed_numbers(tmp_path, capsys):
    """Table I of IMA, whose other cells have no runs yet, and whose quick variant would have fewer cells."""
    assert code("figures", "draw", "--paper", "ima", FILES, "--item", "tablei", "--format", "png", "-o", tmp_path) == 0
    assert "Table I is drawn in part: 10 of 92 cells have runs" in capsys.readouterr().err
    ds = netcdf_files.load(tmp_path / "ima-tablei-accuracy-table.nc").sel(column="FMNIST CNN #C=2")
    files = sorted(FILES.glob("fedprox-fashion-mnist-shards-s*.json"))
    means = []
    for run in map(open_run, files):
        means.append(stored(run, "accuracy")[1][-10:].mean())
    np.testing.assert_allclose(ds.measured.sel(row="fedprox").dropna("seed"), means, atol=1e-4)
    assert float(ds.printed.sel(row="fedprox")) == pytest.approx(0.7978)


def test_a_table_on_other_data_has_the_numbers_of_the_files_and_states_the_data(tmp_path, capsys):
    """FedEve's Table 1 on MNIST, and the printed numbers of FEMNIST."""
    asked = ("--item", "table1femnist", "--format", "png", "-o", tmp_path)
    assert code("figures", "draw", "--paper", "fedeve", FILES, *asked) == 0
    assert "not in the paper's: mnist in place of femnist" in capsys.readouterr().err
    ds = netcdf_files.load(tmp_path / "fedeve-table1femnist-accuracy-table.nc")
    assert "mnist in place of femnist" in ds.attrs["reservation"]
    assert ds.row.values.tolist() == ["fedavg", "fedavgm", "scaffold", "fedeve"]
    assert float(ds.printed.sel(row="fedeve", column="0.01")) == pytest.approx(0.7599)
    for run in runs("scaffold-mnist-dirichlet-*.json"):
        _, values = stored(run, "accuracy")
        cell = {"row": "scaffold", "column": f"{run.experiment.clients.partition.concentration:g}", "seed": run.seed}
        assert float(ds.measured.sel(cell)) == pytest.approx(values[-10:].mean(), abs=1e-6)


def test_printed_numbers_stand_beside_one_setting_of_several(tmp_path, capsys):
    for item, column, row, printed in (
        ("table1", "SimpleCNN, 1", "0.95", 0.6866),
        ("table3", "CIFAR-10 CNN, 0.1", "fedlaw", 0.6246),
    ):
        asked = ("--item", item, "--format", "png", "-o", tmp_path)
        assert code("figures", "draw", "--paper", "fedlaw", FILES, *asked) == 0
        assert "cells have runs; 60 rounds in place of 200" in capsys.readouterr().err
        ds = netcdf_files.load(tmp_path / f"fedlaw-{item}-accuracy-table.nc")
        assert float(ds.printed.sel(row=row, column=column)) == pytest.approx(printed)


def test_a_result_of_the_last_round_is_that_of_round_minus_one_where_its_models_were_kept():
    run = next(
        run for run in runs("lss-cifar10-*.json") if any("noise_robustness" in key for key in run.content["results"])
    )
    levels = [4 / 255, 8 / 255]
    last = run.cached(noise_robustness, round=-1, levels=levels, draws=3)
    assert run.cached(noise_robustness, round=2, levels=levels, draws=3).equals(last)
    with pytest.raises(LookupError, match="holds no noise_robustness with these options"):
        run.cached(noise_robustness, round=1, levels=levels, draws=3)
