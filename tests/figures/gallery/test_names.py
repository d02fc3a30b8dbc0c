"""A mistyped name is told before torch or matplotlib is loaded; and completion, which offers names, loads neither."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import tiny

SCRIPT = """
import sys
from figures.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = sorted({"torch", "matplotlib", "plotly", "xarray"} & set(sys.modules))
print(code, *heavy, file=sys.stderr)
"""


def fresh(folder, *words):
    """stdout, stderr but its last line, and the exit code and heavy modules of a command in a new process."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=folder, capture_output=True, text=True)
    *said, last = done.stderr.splitlines()
    return done.stdout, "\n".join(said), last


MISTYPED = {
    "figures draw planes-client RUN": "figure named 'planes-client'. Did you mean 'planes-clients'",
    "figures draw planes-clients --paper imma": "paper named 'imma'. Did you mean 'ima'",
    "train digit-shards2": "Did you mean 'digits-shards2'",
    "train digits-shards2 --set method=fedvag": "method named 'fedvag'. Did you mean 'fedavg'",
    "train digits-shards2 --set method.name='fedvag'": "method named 'fedvag'",
    "train digits-shards2 --set method=ima method.base=fedvag": "method named 'fedvag'",
    "train digits-shards2 --set clients.partition=dirichlett": "partition named 'dirichlett'",
    "train digits-shards2 --set task.dataset=digit": "dataset named 'digit'",
    "train digits-shards2 --set task.model=mpl": "model named 'mpl'",
    "compare digits-shards2 --methods fedavg fedvag --seeds 8": "method named 'fedvag'",
    "compare digit-shards2 --methods fedavg --seeds 8": "Did you mean 'digits-shards2'",
    "sweep digits-shards2 --grid method=fedavg,fedvag": "method named 'fedvag'",
    "sweep digit-shards2 --grid seed=1": "Did you mean 'digits-shards2'",
    "partition digit-shards2": "Did you mean 'digits-shards2'",
    "pretrain digit-shards2": "Did you mean 'digits-shards2'",
    "pretrain digits-shards2 --dataset digit": "dataset named 'digit'",
    "import . --model mpl --dataset digits": "model named 'mpl'",
    "import . --model mlp --dataset digit": "dataset named 'digit'",
    "analyse plan RUN": "analysis named 'plan'. Did you mean 'plane'",
    "trian digits-shards2": "Did you mean 'train'",
    "figures drwa planes-clients": "Did you mean 'draw'",
    "list method": "Did you mean 'methods'",
    "train digits-shards2 --sett a=1": "Did you mean '--set'",
    **{
        f"{verb} nosuch": "no run named 'nosuch'"
        for verb in (
            "show",
            "verify",
            "report",
            "claims",
            "diagnose",
            "export --out a.pt",
            "analyse plane",
            "figures draw planes-clients",
            "figures gallery",
        )
    },
}
"""What is said of a command."""


@pytest.mark.parametrize("command", MISTYPED)
def test_a_mistyped_name_is_told_before_anything_heavy_is_loaded(command, tmp_path):
    out, err, last = fresh(tmp_path, *command.split())
    assert MISTYPED[command] in err and last == "2", err + last
    assert out == "" and len(err.splitlines()) == 1


def test_a_right_name_goes_on_to_torch(tmp_path):
    _, err, last = fresh(tmp_path, "train", str(tiny.written(tmp_path)), "--set", "method=fedavg", "rounds=1")
    assert last.startswith("0 ") and "torch" in last, err


HOSTILE = [
    "a b",
    "$(touch x)",
    "`id`",
    "-rf",
    "a;b",
    "a'b",
    'a"b',
    "a\nb",
    "a\tb",
    "\x1b[2J",
    "a\\b",
    "a&b",
    "*",
    "é\u202e",
]


@pytest.fixture
def home(tmp_path):
    """A folder with two good runs and others whose names would steer a shell or a terminal."""
    for place in ("runs", "others"):
        for name in ["fedavg-blobs-s1-0123abcd", f"{place}-x", *HOSTILE]:
            (tmp_path / place / name).mkdir(parents=True)
            (tmp_path / place / name / "run.json").write_text("\x1b no JSON")
    (tmp_path / "runs" / "no-run").mkdir()
    return tmp_path


RUNS = ["fedavg-blobs-s1-0123abcd", "runs-x"]
OFFERED = {
    "figures draw ": "planes-clients",
    "compare digits-shards2 --methods ": "fedavg",
    "compare digits-shards2 --methods ima ": "fedavg",
    "analyse ": "round_plane",
    **{f"{verb} ": "digits-shards2" for verb in ("train", "compare", "sweep", "partition", "pretrain")},
}
RUN_PLACES = ["show", "verify", "report", "claims", "diagnose", "export", "analyse plane", "figures gallery"]
RUN_PLACES += [
    "figures draw planes-clients",
    "figures draw --paper ima",
    "report runs-x",
    "figures draw lines-fma-ima x",
]


def offered(folder, words):
    out, err, last = fresh(folder, "__complete", *words.split(" "))
    assert (err, last) == ("", "0"), err + last
    found = [line for line in out.split("\n") if line not in ("", "\x1fbegin")]
    assert all(re.fullmatch(r"[\w.+@%,-]+", line, re.ASCII) for line in found)
    return found


@pytest.mark.parametrize("words", OFFERED)
def test_names_are_offered(words, home):
    found = offered(home, words)
    assert OFFERED[words] in found and "runs-x" not in found


@pytest.mark.parametrize("verb", RUN_PLACES)
def test_runs_are_offered_that_a_shell_takes_as_they_stand(verb, home):
    assert offered(home, f"{verb} ") == RUNS


def test_runs_of_another_folder_are_offered_where_it_is_named(home):
    assert offered(home, "show --runs others ") == ["fedavg-blobs-s1-0123abcd", "others-x"]
    assert offered(home, "show --runs nowhere ") == []
