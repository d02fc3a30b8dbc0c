"""The command line among other programs: pipes, closed streams, colours, completion, places that cannot be written."""

import json
import os
import pty
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import tiny

from figures import cli

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "figures.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def run(tmp_path):
    return tiny.trained(tmp_path / "runs")


def in_shell(line, cwd):
    """Exit code, stdout and stderr of a line of bash in which $F is the command."""
    environment = {**ENVIRONMENT, "F": " ".join(COMMAND)}
    told = subprocess.run(["bash", "-c", line], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return told.returncode, told.stdout, told.stderr


@pytest.mark.parametrize("words", ["--help", "list analyses", "list analyses --json"])
def test_a_reader_that_leaves_is_no_error(words, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        told = subprocess.run(
            [*COMMAND, *words.split()],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (told.returncode, told.stderr) == (0, b"")


def test_closed_and_full_streams(tmp_path):
    assert in_shell("$F list methods --json >&-", tmp_path) == (0, "", "")
    assert in_shell("$F list methods --json >&- 2>&-", tmp_path) == (0, "", "")
    code, _, err = in_shell("$F list methods --json >/dev/full", tmp_path)
    assert code == 2 and err.startswith("fedscape: No space left on device.") and err.count("\n") == 1


def test_the_first_line_of_a_table_is_its_heading(tmp_path):
    code, out, err = in_shell("$F list methods | head -1", tmp_path)
    assert (code, out.split(), err) == (0, ["name", "description", "unlike", "the", "paper", "source"], "")


def test_training_goes_on_when_the_reader_of_its_messages_leaves(tmp_path):
    file = tiny.written(tmp_path)
    code, out, _ = in_shell(f"set -o pipefail; ($F train {file} 2>&1 >folder) | head -1", tmp_path)
    assert code == 0 and "3 rounds" in out
    folder = tmp_path / (tmp_path / "folder").read_text().strip()
    assert len(list((folder / "rounds").iterdir())) == 3


@pytest.mark.parametrize("asked", [True, False])
def test_no_color_takes_the_colours_from_a_terminal(asked, tmp_path):
    mine, theirs = pty.openpty()
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "NO_COLOR"} | {
        "TERM": "xterm-256color"
    }
    environment |= {"NO_COLOR": "1"} if asked else {}
    done = subprocess.Popen([*COMMAND, "--help"], cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while piece := _read(mine):
        said += piece
    os.close(mine)
    assert done.wait() == 0 and b"diagnose" in said
    assert any(b"\x1b[3%d" % colour in said for colour in range(1, 8)) is not asked


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # its other end is closed
        return b""


def test_pipes_get_no_escapes_whatever_the_terminal(tmp_path):
    code, out, err = in_shell("TERM=xterm-256color $F list methods; TERM=xterm-256color $F --help", tmp_path)
    assert code == 0 and "\x1b" not in out + err


def test_names_do_not_steer_the_terminal(fedscape, tmp_path):
    import torch

    place = tmp_path / "theirs" / "round_000"
    place.mkdir(parents=True)
    torch.save({"w": torch.zeros(2)}, place / "global.pt")
    torch.save({"w": torch.zeros(2)}, place / "client_\x1b]0;gone\x07\x9b2J.pt")
    torch.save({"w": torch.zeros(2)}, place / "\x1b[2Jother.pt")
    for words in (["import", "theirs", "--dry-run"], ["import", "theirs/round_000"], ["show", "a\x1b[2Jb"]):
        _, out, err = fedscape(*words)
        assert not {"\x1b", "\x07", "\x9b"} & set(out + err), words


def test_bash_completes_verbs_and_options(tmp_path):
    line = "source <($F completion bash); COMP_WORDS=(fedscape {words}); COMP_CWORD={at}; _fedscape; "
    line += "echo ${{COMPREPLY[*]}}"
    verbs = in_shell(line.format(words="dia", at=1), tmp_path)
    options = in_shell(line.format(words="train --wor", at=2), tmp_path)
    assert verbs == (0, "diagnose\n", "")
    assert options == (0, "--workers\n", "")


@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef fedscape"), ("fish", "complete -c fedscape")])
def test_other_shells_get_their_script(shell, word, fedscape):
    code, out, err = fedscape("completion", shell)
    assert (code, err) == (0, "") and word in out and "diagnose" in out


def test_help_and_the_page_tell_the_exit_codes(fedscape):
    out = " ".join(fedscape("--help")[1].split())
    page = " ".join((ROOT / "docs" / "command-line.md").read_text().split())
    for code in ("0", "1", "2", "130"):
        assert f"| {code} |" in page
    assert "Exit codes: 0 done; 2 a mistake or a problem" in out and "130 stopped by Ctrl-C" in out


def test_the_page_names_every_verb():
    page = (ROOT / "docs" / "command-line.md").read_text()
    for verb in (name for name in cli.app if not name.startswith("-")):
        assert f"`{verb}`" in page or f"`{verb} " in page, verb


NOWHERE = "taken/deep"
"""Below a file."""


@pytest.mark.parametrize(
    ("words", "work"),
    [
        ("train FILE --runs NOWHERE", "drift.simulation.simulate.simulate"),
        ("compare FILE --methods fedavg --seeds 1 --runs NOWHERE", "drift.simulation.compare.train_all"),
        ("sweep FILE --grid seed=1,2 --runs NOWHERE", "drift.simulation.settings_grid.train_grid"),
        ("demo -o NOWHERE", "figures.commands._demo_steps.demo"),
        ("pretrain FILE -o NOWHERE/a.safetensors", "drift.simulation.pretrain.pretrain"),
        ("partition FILE -o NOWHERE", "drift.training.data.read_data"),
        ("analyse coherence RUN -o NOWHERE/a.csv", "drift.analyses.rounds.coherence.coherence"),
        ("analyse coherence RUN -o taken", "drift.analyses.rounds.coherence.coherence"),
        ("import FOLDER --runs NOWHERE", "drift.importers.bare.record_checkpoints"),
        ("export RUN -o NOWHERE/a.csv", "drift.analyses.rounds.export_table.table"),
        ("export RUN -o .", "drift.runs.export_model.state_dict"),
        ("figures draw accuracy-rounds RUN -o NOWHERE", "figures.commands._draw_files.draw_one"),
        ("figures gallery RUN -o NOWHERE", "figures.commands._draw_files.draw_all"),
        ("publish RUN -o NOWHERE/a.html", "figures.page.report.report"),
        ("publish RUN -o runs", "figures.page.report.report"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_computed(
    words, work, fedscape, run, tmp_path, monkeypatch
):
    Path("taken").write_text("")
    Path("theirs/round_000").mkdir(parents=True)

    def started(*_, **__):
        raise AssertionError(f"{work} began")

    module, _, name = work.rpartition(".")
    monkeypatch.setattr(import_module(module), name, started)
    known = {"FILE": tiny.written(tmp_path), "RUN": run.folder, "FOLDER": "theirs"}
    before = sorted(Path().rglob("*"))
    code, out, err = fedscape(*[str(known.get(word, word)).replace("NOWHERE", NOWHERE) for word in words.split()])
    assert (code, out) == (2, "") and err.startswith("fedscape: ") and err.count("\n") == 1
    assert any(said in err for said in ("Not a directory", "Is a directory", "the suffix says", "name a new folder"))
    assert sorted(Path().rglob("*")) == before


def test_what_is_exported_is_told_as_json(fedscape, run):
    code, out, _ = fedscape("export", run.folder, "-o", "series.csv", "--json")
    assert (code, json.loads(out)) == (0, {"run": run.name, "file": "series.csv"})


def test_trust_is_taken_from_anywhere_in_the_line(fedscape, run, monkeypatch):
    monkeypatch.setenv("FEDSCAPE_TRUST", "")
    assert fedscape("show", "--trust", "mine:net", run.folder)[0] == 0
    assert os.environ["FEDSCAPE_TRUST"] == "mine:net"
    assert fedscape("show", run.folder, "--trust=theirs:net")[0] == 0
    assert os.environ["FEDSCAPE_TRUST"] == "mine:net,theirs:net"
    for words in (["--trust"], ["--trust=x"]):
        code, _, err = fedscape("show", run.folder, *words)
        assert code == 2 and "MODULE:FUNCTION" in err


LISTS = ["list methods", "list experiments", "list analyses", "figures list", "--version"]


def test_lists_start_without_torch():
    code = f"""
import sys
from figures.cli import main
for line in {LISTS!r}:
    try:
        main(line.split())
    except SystemExit as stop:
        assert not stop.code, line
    loaded = {{'torch', 'xarray', 'matplotlib', 'plotly', 'scipy'}} & set(sys.modules)
    assert not loaded, (line, loaded)
"""
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


def test_a_first_training_imports_no_drawing_and_no_tables(tmp_path):
    file = tiny.written(tmp_path)
    code = (
        "import sys\nfrom figures.cli import main\n"
        f"try:\n    main(['train', {str(file)!r}, '--runs', {str(tmp_path / 'r')!r}])\nexcept SystemExit as stop:\n"
        "    assert not stop.code\n"
        "print(sorted({'xarray', 'pandas', 'matplotlib', 'plotly', 'h5py', 'dask'} & set(sys.modules)))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"
