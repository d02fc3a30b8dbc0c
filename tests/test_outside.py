"""Plug-ins from outside the package are like those inside: every kind, by every way of naming, from training on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

import drift
from drift.config.load import read
from drift.plugins import trust
from drift.runs.run import Run
from drift.simulation.run_index import index
from landscape.results import zarr_files

CODE = {
    "method": '''
from drift.config.method import Method
from drift.config.method_values import Combined

class Halved(Method):
    """Half of the mean update."""

    factor: float = 0.5

    def combine(self, setting, state, cohort):
        return Combined(cohort.start + self.factor * (cohort.fma - cohort.start), cohort.weights)
''',
    "partition": '''
import numpy as np
from drift.partitions import Partitioner

class Strided(Partitioner):
    """Every K-th sample."""

    first: int = 0

    def split(self, labels, clients, rng):
        return [np.arange(client, len(labels), clients) for client in range(clients)]
''',
    "dataset": '''
from landscape.results import zarr_files
from landscape.datasets import open_dataset
from landscape.datasets.blobs import load

def Points(folder=None, *, samples=60):
    """Blobs by another name."""
    return load(folder, samples=samples)
''',
    "model": '''
from torch import nn

def Net(shape, classes):
    """A line by another name."""
    return nn.Sequential(nn.Flatten(), nn.Linear(8, classes))
''',
    "figure": '''
import xarray as xr
from matplotlib.figure import Figure

class Lengths:
    """Numbers of rounds."""

    NEEDS, COST = "any runs", "seconds"

    def data(self, runs):
        lengths, names = [len(run.rounds()) for run in runs], [run.name for run in runs]
        return xr.Dataset({"rounds": ("run", lengths)}, attrs={"runs": ", ".join(names)})

    def draw(self, ds):
        figure = Figure(layout="constrained")
        figure.add_subplot().plot(ds.rounds)
        return figure
''',
}
CODE["analysis"] = """
import xarray as xr

def longest(run, *, metric="loss"):
    return xr.Dataset({"longest": ((), max(len(text) for text in run.round(-1).metrics)), "metric": ((), metric)})
"""
NAMES = {
    "method": "Halved",
    "partition": "Strided",
    "dataset": "Points",
    "model": "Net",
    "figure": "Lengths",
    "analysis": "longest",
}
SETTINGS = {
    "method": "method",
    "partition": "clients.partition.name",
    "dataset": "task.dataset",
    "model": "task.model",
}
PLURAL = {"analysis": "analyses"}
WAYS = ("file", "module", "entry point")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of plug-ins, which leaves `ran` behind when one is imported, as files, modules and entry points."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(trust.TRUSTED, "")
    monkeypatch.syspath_prepend(tmp_path)
    for kind, code in CODE.items():
        (tmp_path / f"my_{kind}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').close()\n{code}")
    about = tmp_path / "mine-1.0.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    lines = [
        f"[fedscape.{PLURAL.get(kind, f'{kind}s')}]\nmy-{kind} = my_{kind}:{name}\n" for kind, name in NAMES.items()
    ]
    about.joinpath("entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "tiny.toml").write_text(tiny.TOML)
    yield tmp_path
    for kind in CODE:
        sys.modules.pop(f"my_{kind}", None)


def called(kind: str, way: str) -> str:
    """The text by which a plug-in is named."""
    return {"file": f"my_{kind}.py:", "module": f"my_{kind}:"}.get(way, "") + (
        f"my-{kind}" if way == "entry point" else NAMES[kind]
    )


def recorded(folder: Path, kind: str, way: str) -> str:
    """The text by which it is recorded."""
    return f"{folder}/my_{kind}.py:{NAMES[kind]}" if way == "file" else f"my_{kind}:{NAMES[kind]}"


@pytest.fixture
def fedscape(elsewhere, capsys, monkeypatch):
    """The command as a fresh process runs it: nothing trusted, nothing imported. Exit code, stdout, stderr."""
    from figures import cli

    monkeypatch.setattr("warnings.showwarning", None)

    def call(*tokens):
        monkeypatch.setenv(trust.TRUSTED, "")
        for kind in CODE:
            forgotten(kind)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main([str(token) for token in tokens])
        told = capsys.readouterr()
        return stop.value.code, told.out, told.err

    return call


def forgotten(kind: str) -> None:
    """As in a process that has not imported it."""
    for name in [name for name in sys.modules if f"my_{kind}" in name]:
        del sys.modules[name]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SETTINGS)
def test_trained_recorded_opened_again_and_refused_where_nobody_trusts_it(elsewhere, monkeypatch, kind, way):
    run = tiny.trained(Path("runs"), f"{SETTINGS[kind]}={called(kind, way)}", *OTHER.get(kind, ()))
    about, text = json.loads((run.folder / "run.json").read_text()), recorded(elsewhere, kind, way)
    assert text in json.dumps(about["experiment"])
    assert (
        list(about["sources"]) == [text.removeprefix(f"{elsewhere}/")]
        and len(next(iter(about["sources"].values()))) == 16
    )
    assert all(part.isalnum() for part in run.name.split("-")), run.name
    if kind in ("method", "partition", "dataset"):
        assert NAMES[kind] in run.name
    assert run.rounds() == [0, 1, 2] and run.task.layout.size > 0
    monkeypatch.setenv(trust.TRUSTED, "")
    forgotten(kind)
    (elsewhere / "ran").unlink()
    with pytest.raises(ValueError, match=f"code that is no part of fedscape.*--trust {text}"):
        _ = drift.open(run.folder).task
    assert not (elsewhere / "ran").exists()
    found = drift.open(run.folder, trust=text)
    assert found.task.layout.size == run.task.layout.size and (elsewhere / "ran").exists()
    assert found.experiment.hash == run.experiment.hash and found.experiment.slug == run.name
    assert index("runs")[0]["problem"] is None


OTHER = {"dataset": ("task.dataset_options={samples=50}",)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SETTINGS)
def test_the_command_line_trains_shows_draws_and_refuses(elsewhere, fedscape, kind, way):
    text = recorded(elsewhere, kind, way)
    code, out, err = fedscape("train", "tiny.toml", "--set", f"{SETTINGS[kind]}={called(kind, way)}")
    assert code == 0 and f"--trust {text}" in err
    folder = out.strip()
    code, out, err = fedscape("runs", "--json", "--trust", text)
    assert code == 0 and json.loads(out)[0]["problem"] is None
    code, out, _ = fedscape("show", folder, "--trust", text)
    assert code == 0 and NAMES[kind] in out
    draw = ("figures", "draw", "planes-random", folder, "--set", "points=3")
    (elsewhere / "ran").unlink()
    code, _, err = fedscape(*draw)
    last = err.strip().splitlines()[-1]
    assert code == 2 and f"--trust {text}" in last and not (elsewhere / "ran").exists(), err
    assert fedscape(*draw, "--trust", text)[0] == 0


@pytest.mark.slow
def test_a_fresh_process_opens_and_reports_them_all(elsewhere):
    texts = []
    for kind, way in zip(SETTINGS, ("file", "module") * 2, strict=True):  # an entry point is recorded as what it names
        tiny.trained(Path("runs"), f"{SETTINGS[kind]}={called(kind, way)}", "rounds=1")
        texts += ["--trust", recorded(elsewhere, kind, way)]
    known = {"PYTHONPATH": f"{ROOT}{os.pathsep}{elsewhere}", trust.TRUSTED: "", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "figures.cli", "report", "runs", *texts]
    done = subprocess.run(command, env=os.environ | known, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    page = Path("report.html").read_text()
    assert all(folder.name in page for folder in Path("runs").glob("*-*"))


@pytest.mark.parametrize("way", WAYS)
def test_a_figure_is_drawn_by_its_name_and_its_file_says_whose_it_is(elsewhere, fedscape, way):
    from figures.gallery import load

    run = tiny.trained(Path("runs"))
    with pytest.raises(ValueError, match="code that is no part of fedscape"):
        load(called("figure", way))
    assert not (elsewhere / "ran").exists()
    code, _, err = fedscape("figures", "draw", called("figure", way), run.folder)
    assert code == 0, err
    stem = "my-figure" if way == "entry point" else "Lengths"
    ds = zarr_files.load(Path(f"out/figures/{stem}.zarr"))
    assert ds.attrs["figure"] == recorded(elsewhere, "figure", way).removeprefix(f"{elsewhere}/")
    assert len(ds.attrs["source_digest"]) == 16


@pytest.mark.parametrize("way", WAYS)
def test_an_analysis_is_computed_and_stored_by_its_name(elsewhere, fedscape, way):
    run = tiny.trained(Path("runs"))
    code, out, err = fedscape("analyse", called("analysis", way), run.folder, "--set", "metric=mine", "--json")
    assert code == 0, err
    assert json.loads(out)["data_vars"]["metric"]["data"] == "mine"
    assert [path.name.partition("-")[0] for path in (run.folder / "results").glob("*.zarr")] == ["longest"]
    code, _, err = fedscape("analyse", called("analysis", way), run.folder, "--set", "metrik=mine")
    assert code == 2 and "metric" in err


def test_entry_points_of_every_kind_are_listed_and_imported_by_none(elsewhere, fedscape):
    for kind in SETTINGS | {"analysis": ""}:
        code, out, _ = fedscape("list", PLURAL.get(kind, f"{kind}s"), "--json")
        assert code == 0 and f"my-{kind}" in [row["name"] for row in json.loads(out)]
    assert "my-figure" in fedscape("figures", "list", "--json")[1]
    assert not (elsewhere / "ran").exists()
    code, _, err = fedscape("analyse", "my-analysys", "RUN")
    assert code == 2 and "Did you mean 'my-analysis'?" in err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_file_of_settings_names_no_code_that_is_run_unasked(elsewhere, fedscape, kind, way):
    table = {"method": "method", "partition": "clients", "dataset": "task", "model": "task"}[kind]
    inner = f'name = "{called(kind, way)}"' if kind == "method" else f'{kind} = "{called(kind, way)}"'
    Path("theirs.toml").write_text(f'extends = "tiny.toml"\n[{table}]\n{inner}\n')
    code, _, err = fedscape("train", "theirs.toml")
    assert code == 2 and len(err.strip().splitlines()) == 1, err
    assert f"--trust {recorded(elsewhere, kind, way)}" in err
    assert not (elsewhere / "ran").exists() and not Path("runs").exists()
    code, _, err = fedscape("train", "theirs.toml", "--trust", recorded(elsewhere, kind, way))
    assert code == 0, err


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_changed_source_is_told_when_opened_and_refused_when_gone_on_with(elsewhere, kind):
    setting = f"{SETTINGS[kind]}=my_{kind}.py:{NAMES[kind]}"
    run = tiny.trained(Path("runs"), setting)
    path = elsewhere / f"my_{kind}.py"
    path.write_text(path.read_text() + "\n# other\n")
    with pytest.warns(UserWarning, match=f"my_{kind}.py:{NAMES[kind]} has changed since run {run.name} was started"):
        _ = Run(run.folder).task
    (run.folder / "state.safetensors").unlink()
    for record in (run.folder / "rounds").iterdir():
        record.unlink()
    with pytest.raises(ValueError, match=f"my_{kind}.py:{NAMES[kind]} has changed since .* restore it, or train into"):
        tiny.trained(Path("runs"), setting)


@pytest.mark.parametrize("kind", ["method", "partition"])
def test_an_object_from_a_script_is_found_again(elsewhere, kind):
    given = {"method": "method=Halved()", "partition": "clients__partition=Strided()"}[kind]
    script = f"{CODE[kind]}\nif __name__ == '__main__':\n    import drift\n    drift.simulate('tiny.toml', {given})\n"
    (elsewhere / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT), trust.TRUSTED: ""}
    subprocess.run([sys.executable, "script.py"], cwd=elsewhere, env=environment, check=True)
    (folder,) = Path("runs").glob("*/run.json")
    assert "--" not in folder.parent.name
    found = drift.open(folder.parent, trust=f"script.py:{NAMES[kind]}")
    assert found.experiment.slug == folder.parent.name
    moved = elsewhere / "moved"
    moved.mkdir()
    (elsewhere / "script.py").rename(moved / "script.py")
    again = drift.open(folder.parent, trust=f"moved/script.py:{NAMES[kind]}")
    assert again.experiment.hash == found.experiment.hash


def test_a_class_that_nothing_could_find_again_is_refused_before_anything_is_written(elsewhere):
    from drift.config.method import Method

    class Hidden(Method):
        pass

    with pytest.raises(ValueError, match="Hidden stands inside a function or in a session"):
        drift.simulate("tiny.toml", method=Hidden())
    assert not Path("runs").exists()
    lines = "import drift\nfrom drift.config.method import Method\nclass Mine(Method): pass\n"
    code = f"{lines}drift.simulate('tiny.toml', method=Mine())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Mine stands inside a function or in a session" in told.stderr.splitlines()[-1]


BROKEN = {
    "syntax": "class Halved(",
    "name": "absent",
    "import": "import package_that_is_not_there",
    "exit": "raise SystemError('no')",
    "other class": "Halved = 3",
    "nothing": "",
}


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
def test_one_run_that_cannot_be_read_blocks_no_folder(elsewhere, fedscape, code):
    good, bad = tiny.trained(Path("runs")), tiny.trained(Path("runs"), "method=my_method.py:Halved")
    (elsewhere / "my_method.py").write_text(code)
    text = f"{elsewhere}/my_method.py:Halved"
    for verb in (
        ("runs",),
        ("figures", "draw", "norms-rounds", "runs"),
        ("figures", "draw", "labels-partition", "runs"),
    ):
        status, _, err = fedscape(*verb, "--trust", text)
        assert status == 0 and bad.name in err and "Traceback" not in err, (verb, err)
        assert len([line for line in err.splitlines() if bad.name in line]) == 1
    status, _, err = fedscape("figures", "draw", "norms-rounds", good.folder, bad.folder, "--trust", text)
    assert status == 2, "one that is named itself is not left out"


DAMAGED = {
    "no JSON": b"{",
    "no experiment": b"{}",
    "other keys": b'{"experiment": {"nothing": 1}}',
    "untrusted": b'{"experiment": {"rounds": 1, "method": {"name": "/tmp/absent.py:X"}}}',
    "of an older version": b'{"experiment": {"rounds": 1, "method": {"name": "--main--"}}}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_verbs_over_a_folder_name_what_they_cannot_read_and_go_on(elsewhere, fedscape, content):
    tiny.trained(Path("runs"))
    (elsewhere / "runs/foreign").mkdir()
    (elsewhere / "runs/foreign/run.json").write_bytes(content)
    for verb in (("runs",), ("report", "runs"), ("figures", "draw", "norms-rounds", "runs"), ("claims", "ima", "runs")):
        status, _, err = fedscape(*verb)
        assert "foreign" in err and "Traceback" not in err, (verb, err)
        assert status == 0 or verb[0] == "claims", (verb, err)


def test_slugs_and_hashes_of_what_is_built_in_are_what_they_were():
    assert read("digits-shards2").slug == "fedavg-digits-shards-s8-87a1437b"
    assert {name: read("digits-shards2", method=name).hash for name in PINNED} == PINNED
    assert read("digits-shards2", "task.model=mine:net").slug == "fedavg-digits-shards-s8-8486244d"


PINNED = {"fedavg": "87a1437b", "ima": "a31ca58d", "fedeve": "03624169", "lss": "15c664fc", "scaffold": "9eb81673"}


def test_a_damaged_round_leaves_its_run_out_of_a_figure_over_a_folder_and_no_other(elsewhere, fedscape):

    good, bad = tiny.trained(Path("runs")), tiny.trained(Path("runs"), "method=fedprox")
    record = sorted((bad.folder / "rounds").iterdir())[1]
    record.write_bytes(record.read_bytes()[:-3])
    for verb in (("draw", "norms-rounds", "runs"), ("draw", "accuracy-rounds", "runs")):
        status, _, err = fedscape("figures", *verb)
        lines = [line for line in err.splitlines() if f"{bad.name}: left out, it cannot be read: " in line]
        assert status == 0 and lines and record.name in lines[0], (verb, err)
        ds = zarr_files.load(Path(f"out/figures/{verb[1]}.zarr"))
        assert ds.attrs["runs"] == good.name and bad.name in ds.attrs["left_out_brief"]
    status, _, err = fedscape("figures", "draw", "norms-rounds", good.folder, bad.folder)
    assert status == 2 and record.name in err.strip().splitlines()[-1], "one that is named itself is not left out"
