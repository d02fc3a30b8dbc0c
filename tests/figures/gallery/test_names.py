"""A mistyped name is told before torch or matplotlib is loaded; and completion, which offers names, loads neither."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import tiny

SCRIPT = """
import json, os, sys, tempfile
from figures.cli import main

told, streams = [], [(number, os.dup(number)) for number in (1, 2)]
for folder, words in json.load(sys.stdin):
    os.chdir(folder)
    files = [tempfile.TemporaryFile("w+") for _ in streams]
    for (number, _), file in zip(streams, files):
        os.dup2(file.fileno(), number)
    code = None
    try:
        main(words)
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number, stream in streams:
        os.dup2(stream, number)
    for file in files:
        file.seek(0)
    heavy = sorted({"torch", "matplotlib", "plotly", "xarray"} & set(sys.modules))
    told.append([*(file.read() for file in files), [code, *heavy]])
print(json.dumps(told))
"""


def fresh(folder, lines):
    """stdout, stderr, and the exit code with the heavy modules that are loaded, of each command in one new process."""
    lines = [line if isinstance(line, list) else line.split(" ") for line in lines]
    asked = json.dumps([[str(folder), line] for line in lines])
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=asked, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


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
            "publish",
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


@pytest.fixture(scope="module")
def mistyped(tmp_path_factory):
    return dict(zip(MISTYPED, fresh(tmp_path_factory.mktemp("empty"), MISTYPED), strict=True))


@pytest.mark.parametrize("command", MISTYPED)
def test_a_mistyped_name_is_told_before_anything_heavy_is_loaded(command, mistyped):
    out, err, last = mistyped[command]
    assert MISTYPED[command] in err and last == [2], (err, last)
    assert out == "" and len(err.splitlines()) == 1


def test_a_right_name_goes_on_to_torch(tmp_path):
    words = ["train", str(tiny.written(tmp_path)), "--set", "method=fedavg", "rounds=1"]
    ((_, err, last),) = fresh(tmp_path, [words])
    assert last[0] == 0 and "torch" in last, err


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


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with two good runs and others whose names would steer a shell or a terminal."""
    folder = tmp_path_factory.mktemp("home")
    for place in ("runs", "others"):
        for name in ["fedavg-blobs-s1-0123abcd", f"{place}-x", *HOSTILE]:
            (folder / place / name).mkdir(parents=True)
            (folder / place / name / "run.json").write_text("\x1b no JSON")
    (folder / "runs" / "no-run").mkdir()
    return folder


RUNS = ["fedavg-blobs-s1-0123abcd", "runs-x"]
OFFERED = {
    "figures draw ": "planes-clients",
    "compare digits-shards2 --methods ": "fedavg",
    "compare digits-shards2 --methods ima ": "fedavg",
    "analyse ": "round_plane",
    **{f"{verb} ": "digits-shards2" for verb in ("train", "compare", "sweep", "partition", "pretrain")},
}
RUN_PLACES = ["show", "verify", "publish", "claims", "diagnose", "export", "analyse plane", "figures gallery"]
RUN_PLACES += [
    "figures draw planes-clients",
    "figures draw --paper ima",
    "publish runs-x",
    "figures draw lines-fma-ima x",
]


OTHERS = {"show --runs others ": ["fedavg-blobs-s1-0123abcd", "others-x"], "show --runs nowhere ": []}


@pytest.fixture(scope="module")
def offered(home):
    """Names that are offered after each of these words."""
    words = [*OFFERED, *(f"{verb} " for verb in RUN_PLACES), *OTHERS]
    found = {}
    for line, (out, err, last) in zip(words, fresh(home, [f"__complete {line}" for line in words]), strict=True):
        assert (err, last) == ("", [0]), (line, err, last)
        found[line] = [name for name in out.split("\n") if name not in ("", "\x1fbegin")]
        assert all(re.fullmatch(r"[\w.+@%,-]+", name, re.ASCII) for name in found[line])
    return found


@pytest.mark.parametrize("words", OFFERED)
def test_names_are_offered(words, offered):
    assert OFFERED[words] in offered[words] and "runs-x" not in offered[words]


@pytest.mark.parametrize("verb", RUN_PLACES)
def test_runs_are_offered_that_a_shell_takes_as_they_stand(verb, offered):
    assert offered[f"{verb} "] == RUNS


@pytest.mark.parametrize("words", OTHERS)
def test_runs_of_another_folder_are_offered_where_it_is_named(words, offered):
    assert offered[words] == OTHERS[words]
