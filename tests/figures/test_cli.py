"""The command line: what it writes where, and what a mistake gets."""

import json
import os
import sys
from pathlib import Path

import pytest
import tiny
from mistakes import mistake

from figures import cli
from figures.commands.opening import RunSource
from figures.commands.options import arguments

ROOT = Path(__file__).resolve().parents[2]
VERBS = [
    "demo",
    "train",
    "compare",
    "pretrain",
    "runs",
    "show",
    "verify",
    "import",
    "analyse",
    "diagnose",
    "explore",
    "figures",
    "publish",
    "list",
    "doctor",
]


def test_help_names_every_verb_in_order(fedscape):
    code, out, _ = fedscape("--help")
    places = [out.index(f"│ {verb} ") for verb in VERBS]
    assert (code, places) == (0, sorted(places))


@pytest.mark.parametrize("verb", [*VERBS, "figures draw"])
def test_every_verb_has_help_without_a_gap(fedscape, verb):
    code, out, _ = fedscape(*verb.split(), "--help")
    assert code == 0
    assert out.startswith(f"Usage: fedscape {verb}")


def test_training_writes_the_folder_to_stdout_and_rounds_to_stderr(fedscape, file):
    code, out, err = fedscape(
        "train", file, "--runs", "r", "--set", "seed=7", "method.name=fedeve", "--set", "rounds=2"
    )
    assert code == 0
    assert Path(out.strip()).name.startswith("fedeve-blobs-dirichlet-s7-")
    assert Path(out.strip(), "run.json").exists()
    assert "round 1 (2 of 2)  accuracy" in err
    assert "fedscape show" in err
    again = fedscape("train", file, "--runs", "r", "--set", "seed=7", "method.name=fedeve", "rounds=2")
    assert again[1] == out
    assert "all on disk" in again[2]


def test_listing_commands_write_json(fedscape, file):
    _, out, _ = fedscape("train", file, "--json")
    name = json.loads(out)["run"]
    assert [row["name"] for row in json.loads(fedscape("runs", "--json")[1])] == [name]
    assert json.loads(fedscape("show", name, "--json")[1])["experiment"]["seed"] == 5
    assert json.loads(fedscape("verify", name, "--json")[1]) == []
    table = fedscape("compare", file, "--methods", "fedavg", "--seeds", "5", "6", "--json")[1]
    assert json.loads(table)[0]["seeds"] == [5, 6]
    assert {row["name"] for row in json.loads(fedscape("list", "methods", "--json")[1])} >= {"fedavg", "ima"}
    assert {row["name"] for row in json.loads(fedscape("figures", "list", "--json")[1])} >= {"accuracy-rounds"}
    assert json.loads(fedscape("doctor", "--json")[1])[0]["name"] == "fedscape"
    values = json.loads(fedscape("analyse", "coherence", name, "--json")[1])["data_vars"]["coherence"]["data"]
    assert len(values) == 3


def test_tables_hold_the_rows(fedscape, file):
    assert "no runs in runs" in fedscape("runs")[2]
    name = Path(fedscape("train", file)[1].strip()).name
    assert name in fedscape("runs")[1]
    assert "3/3" in fedscape("runs")[1]
    assert "clients.partition.concentration" in fedscape("show", name[:12])[1]
    assert "fashion_mnist" in fedscape("list", "datasets")[1]
    assert "demo" in fedscape("list", "experiments")[1]
    assert "round_plane" in fedscape("list", "analyses")[1]


def test_lists_say_what_each_thing_is_and_where_it_comes_from(fedscape):
    for kind in ("methods", "models", "datasets", "partitions", "experiments"):
        for row in json.loads(fedscape("list", kind, "--json")[1]):
            assert 5 < len(row["source"]) <= 320, row
            assert row["source"].endswith("."), row
            assert 10 < len(row["description"]) <= 200, row
            assert "Source" not in row["description"], row
            assert not row["description"].endswith(("Fig.", "Figs.")), row
    rows = {row["name"]: row for row in json.loads(fedscape("list", "methods", "--json")[1])}
    assert rows["fedprox"]["source"] == "Li et al. 2020, algorithm 2."
    rows = json.loads(fedscape("list", "experiments", "--json")[1])
    told, sources = ({row["name"]: row[key] for row in rows} for key in ("description", "source"))
    assert sources["ima-cifar10-shards2-quick"] == "IMA paper, Table I."  # that of the preset it is the quick form of
    assert sources["demo"] == "this project."
    (mnist,) = (row for row in json.loads(fedscape("list", "datasets", "--json")[1]) if row["name"] == "mnist")
    assert mnist["description"] == "MNIST, 60,000 + 10,000 handwritten digits, 28x28 grey."
    assert mnist["source"] == "LeCun et al. 1998."
    assert told["digits-shards2"] == (
        "A first run in seconds: 8x8 digits, 20 clients with two label shards each, 5 a round."
    )


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "FILE", "--sett", "a=1"], "Did you mean '--set'"),
        (["train", "FILE", "extra"], "unexpected argument 'extra'; train takes only EXPERIMENT"),
        (["train"], "EXPERIMENT"),
        (["train", "demoo"], "Did you mean 'demo'"),
        (["train", "FILE", "--set", "local.lrr=1"], "Did you mean 'lr'"),
        (["train", "FILE", "--set", "local.lr"], "write KEY=VALUE"),
        (["train", "FILE", "--set", "method=fedav"], "Did you mean 'fedavg'"),
        (["train", "FILE", "--set", "task.dataset=blops"], "Did you mean 'blobs'"),
        (["train", "FILE", "--set", "task.model=liner"], "Did you mean 'linear'"),
        (["train", "FILE", "--set", "rounds=0"], "rounds is 0"),
        (["compare", "FILE", "--methods", "imma", "--seeds", "1"], "Did you mean 'ima'"),
        (["compare", "FILE", "--methods", "--seeds", "1"], "--methods of compare is given without a value"),
        (["train", "FILE", "--runs", "FILE"], "Not a directory. Write elsewhere (--runs DIR"),
        (["list", "methodes"], "Did you mean 'methods'"),
        (["show", "nothing"], "has no runs"),
        (["figures", "drw"], "Did you mean 'draw'"),
    ],
)
def test_a_mistake_gets_one_line_and_leaves_nothing(fedscape, file, tokens, message):
    told = fedscape(*[file if token == "FILE" else token for token in tokens])
    assert message in mistake(told)
    assert not list(Path("runs").glob("*/run.json"))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["analyse", "coherense", "RUN"], "Did you mean 'coherence'"),
        (["analyse", "coherence", "RUN", "--set", "smoth=2"], "Did you mean 'smooth'"),
        (["figures", "draw", "acuracy-rounds", "RUN"], "Did you mean 'accuracy-rounds'"),
        (["figures", "draw", "coherence-rounds", "RUN", "--set", "smoth=2"], "Did you mean 'smooth'"),
        (
            ["figures", "draw", "planes-clients", "RUN", "--set", "points=many"],
            "points is 'many'; figure planes-clients takes a whole number",
        ),
        (["figures", "draw", "accuracy-rounds", "RUM"], "no run named 'RUM'"),
    ],
)
def test_a_misspelt_name_beside_a_run_is_met_with_the_nearest(fedscape, file, tokens, message):
    name = Path(fedscape("train", file)[1].strip()).name
    assert message in mistake(fedscape(*[name if token == "RUN" else token for token in tokens]))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_is_no_error(fedscape, file, monkeypatch, stream):
    monkeypatch.setattr(sys, stream, None)
    assert fedscape("train", file)[0] == 0
    assert fedscape("runs")[0] == 0


def test_debug_shows_the_traceback(fedscape, monkeypatch):
    with pytest.raises(LookupError):
        cli.main(["show", "nothing", "--debug"])


@pytest.mark.parametrize("error", [KeyError("x"), IndexError("x"), RuntimeError("x"), TypeError("x")])
def test_a_mistake_in_the_code_keeps_its_traceback(monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(type(error)):
        cli.main([])


def test_a_figure_is_drawn_with_its_numbers(fedscape, file):
    pytest.importorskip("figures.gallery.accuracy_rounds")
    name = Path(fedscape("train", file)[1].strip()).name
    code, out, _ = fedscape("figures", "draw", "accuracy-rounds", name, "-o", "pictures")
    assert code == 0
    written = [Path(line) for line in out.splitlines()]
    kinds = ("pdf", "png", "svg", "nc", "csv", "tex", "txt", "alt.txt")
    assert [path.name for path in written] == [f"accuracy-rounds.{kind}" for kind in kinds]
    assert all(path.exists() for path in written)


def test_a_folder_of_runs_stands_for_all(tmp_path):
    names = {tiny.trained(tmp_path, f"seed={seed}").name for seed in (1, 2)}
    assert {run.name for run in RunSource().open_all([str(tmp_path)])} == names
    one = sorted(names)[0]
    assert len(RunSource(tmp_path).open_all([str(tmp_path), one])) == 2


def test_options_are_read_as_toml_else_as_text():
    given = ["round=-1", "rounds=[0, 5]", "split=train", "margin=0.5"]
    assert arguments(given) == {"round": -1, "rounds": [0, 5], "split": "train", "margin": 0.5}
    with pytest.raises(ValueError, match="write KEY=VALUE"):
        arguments(["round"])


def test_checkpoints_are_imported(fedscape, tmp_path, bars):
    import torch

    run = tiny.trained(tmp_path / "source")
    for index in (0, 1):
        place = tmp_path / "theirs" / f"round_{index:03d}"
        place.mkdir(parents=True)
        torch.save(
            {key: value.clone() for key, value in run.task.layout.named(run.round(index).end).items()},
            place / "global.pt",
        )
    code, out, err = fedscape("import", "theirs", "--model", "linear", "--dataset", "blobs")
    assert {total for _, _, total in bars} == {2}
    assert code == 0
    assert Path(out.strip()).name.startswith("imported-theirs-")
    assert "Not known: method" in err
    assert "named 'liner'" in mistake(fedscape("import", "theirs", "--model", "liner", "--dataset", "blobs"))


def test_a_report_is_written(fedscape, runs):
    code, out, _ = fedscape("publish", runs[0].folder, "-o", "page.html")
    assert (code, out.strip()) == (0, "page.html")
    assert Path("page.html").read_text().lstrip().lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("given", "rest"),
    [
        ("runs --set metrics.accuracy=a --runs=out", "runs --runs=out"),
        ("runs --set=metrics.accuracy=a --runs out", "runs --runs out"),
        ("show --set metrics.accuracy=a RUN", "show RUN"),
        ("train x.toml --set metrics.accuracy=a metrics.loss=b seed=3", "train x.toml --set seed=3"),
        ("train x.toml --set seed=3 metrics.accuracy=a rounds=2", "train x.toml --set seed=3 rounds=2"),
        ("train x.toml --set wrong --set metrics.accuracy=a", "train x.toml --set wrong"),
    ],
)
def test_names_of_numbers_leave_the_other_words_as_they_are(given, rest, monkeypatch):
    monkeypatch.setenv("FEDSCAPE_METRICS", "")
    assert cli._without_names(given.split()) == rest.split()
    assert os.environ["FEDSCAPE_METRICS"].startswith("accuracy=a")
