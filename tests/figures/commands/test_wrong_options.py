"""What a newcomer reads: the help page of every command, and the line that answers a wrong one."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from drift.config.shipped import presets
from figures.cli import app
from figures.commands import wrong_options
from landscape.plugins import unknown_names

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = wrong_options.commands(app)
"""Every command of the app by its words, in the order of the help page."""


def one_line(text):
    return " ".join(text.split())


def usage(chain):
    return [one.name for one in arguments(chain)]


def words(chain):
    return " ".join(chain)


@cache
def arguments(chain):
    collection = COMMANDS[chain].assemble_argument_collection(parse_docstring=True)
    return [one for one in collection if one.name != "*"]  # the name of a group, whose options follow


def filled(chain, *, without=""):
    """A command line with something for everything that the command needs, but for one."""
    line = list(chain)
    for one in arguments(chain):
        if one.required and one.name != without:
            kinds = "method" if chain == ("new",) else "methods"
            value = {"KIND": kinds, "SHELL": "bash"}.get(one.name, "1")
            line += [one.name, value] if one.field_info.is_keyword else [value]
    return line


def refused(told):
    """The one line of stderr of a command line that is refused."""
    code, out, err = told
    assert (code, out) == (2, ""), told
    assert err.startswith("fedscape: ") and err.count("\n") == 1, err
    assert "Traceback" not in err
    return err.strip()


def test_the_commands_of_the_app_are_seen():
    assert {("train",), ("figures", "draw"), ("publish",)} <= set(COMMANDS)
    assert {chain[0] for chain in COMMANDS} == {name for name in app if not name.startswith("-")}


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_an_option_that_there_is_not_is_named_with_those_that_there_are(chain, fedscape):
    own = [name for one in arguments(chain) for name in one.names if name.startswith("-")]
    for place in (len(chain), len(filled(chain))):
        line = filled(chain)
        told = refused(fedscape(*line[:place], "--nosuch", *line[place:]))
        assert f"no option of {words(chain)} named '--nosuch'" in told
        assert f"fedscape {words(chain)} --help" in told
        if len(own) + len(wrong_options.ANYWHERE) <= unknown_names.FEW:
            assert f"Known: {', '.join([*own, *wrong_options.ANYWHERE])}." in told


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_a_misspelt_option_is_met_with_the_nearest(chain, fedscape):
    options = [one for one in arguments(chain) if one.field_info.is_keyword]
    for one in {one.name: one for one in (*options[:2], *options[-1:])}.values():
        told = refused(fedscape(*filled(chain), f"{one.name}x"))
        assert f"Did you mean {one.name!r}?" in told


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_what_is_missing_is_named_with_what_is_accepted_and_an_example(chain, fedscape):
    needed = [one for one in arguments(chain) if one.required]
    places = [one for one in needed if not one.field_info.is_keyword]
    for missing in [*places[-1:], *(one for one in needed if one.field_info.is_keyword)]:
        told = refused(fedscape(*filled(chain, without=missing.name)))
        assert f"{words(chain)} needs {missing.name}. {missing.name}: {one_line(missing.parameter.help)}" in told
        assert f"Example: {wrong_options.example(COMMANDS[chain].default_command)}." in told


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_an_option_without_its_value_or_with_one_of_another_type_is_refused(chain, fedscape):
    for one in arguments(chain):
        if not one.field_info.is_keyword:
            continue
        if one.hint is bool:
            assert "takes no value" in refused(fedscape(*filled(chain), f"{one.name}=perhaps"))
            continue
        told = refused(fedscape(*filled(chain, without=one.name), one.name))
        assert f"{one.name} of {words(chain)} is given without a value" in told and one_line(one.parameter.help) in told
        if int in (one.hint, *get_args(one.hint)):
            for value in ("two", "2.5"):
                told = refused(fedscape(*filled(chain, without=one.name), one.name, value))
                assert f"{one.name} of {words(chain)} takes a whole number and is given '{value}'" in told


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_numbers_of_processes_and_passes_begin_at_one(chain, fedscape):
    for name in {"--workers", "--epochs"} & set(usage(chain)):
        told = refused(fedscape(*filled(chain), name, "0"))
        assert f"{name} of {words(chain)} is '0'; it takes 1 or more." in told


@pytest.mark.parametrize("chain", [chain for chain in COMMANDS if "--data" in usage(chain)], ids=words)
def test_a_data_folder_that_there_is_not_is_refused(chain, fedscape):
    told = refused(fedscape(*filled(chain), "--data", "nowhere"))
    assert f"--data of {words(chain)} is 'nowhere'; there is no such folder." in told


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_every_argument_has_a_sentence_and_every_option_a_default(chain):
    for one in arguments(chain):
        told = one.parameter.help or ""
        assert told.endswith(".") and len(told.split()) > 2, one.name
        default = one.field_info.default
        if one.field_info.is_keyword and not one.required and default is None:
            assert "default" in told, f"{words(chain)} {one.name}"


@pytest.mark.parametrize("chain", COMMANDS, ids=words)
def test_every_command_has_an_example_that_it_accepts(chain, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    example = wrong_options.example(COMMANDS[chain].default_command).split()
    assert tuple(example[1 : len(chain) + 1]) == chain
    function, bound, _ = app.parse_args(example[1:], exit_on_error=False, print_error=False)
    assert function is COMMANDS[chain].default_command
    if "experiment" in bound.arguments:
        assert bound.arguments["experiment"] in presets()


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("trian", ["no command named 'trian'", "Did you mean 'train'", "fedscape --help"]),
        ("figures film", ["no command of figures named 'film'; it is: fedscape film."]),
        ("figures train", ["no command of figures named 'train'; it is: fedscape train."]),
        ("figures drwa", ["no command of figures named 'drwa'", "Did you mean 'draw'", "list, draw, gallery"]),
        ("--nosuch", ["option --nosuch stands where a command is expected", "fedscape --help"]),
        ("--runs x train", ["option --runs stands where a command is expected"]),
        ("figures --nosuch", ["a command of figures (list, draw, gallery)", "fedscape figures --help"]),
        ("train x --workers 1 --workers 2", ["train is given --workers more than once"]),
        ("train x extra", ["unexpected argument 'extra'; train takes only EXPERIMENT", "fedscape train --help"]),
        ("doctor extra", ["doctor takes no argument"]),
        ("list figures", ["no kind named 'figures'", "Figures are listed by: fedscape figures list."]),
        ("list method", ["no kind named 'method'", "Did you mean 'methods'", "experiments"]),
        ("reproduce --device gpu", ["no device named 'gpu'", "auto, cpu, cuda"]),
        ("runs --runs nowhere", ["there is no folder nowhere"]),
        ("import nowhere", ["there is no folder nowhere"]),
        ("import empty", ["empty has no checkpoints that fit", "round_000/global.pt"]),
        ("import empty --pattern flwr", ["no pattern named 'flwr'", "Did you mean 'flower'", "pfllib"]),
        ("train empty", ["folder empty is not a run", "fedscape list experiments"]),
        ("train absent.toml", ["there is no file absent.toml", "fedscape list experiments"]),
        ("train --set rounds=2 digits-shards2", ["train needs EXPERIMENT", "--set takes all words that follow it"]),
        (
            "figures draw --paper ima --format eps empty",
            ["last: fedscape figures draw --paper ima empty --format eps."],
        ),
        (
            "figures draw --item fig99 empty --paper ima",
            ["last: fedscape figures draw empty --paper ima --item fig99."],
        ),
        (
            "figures draw norms-rounds --format eps empty",
            ["before options of several words", "norms-rounds RUN --form"],
        ),
        ("train x --cluster here", ["--cluster of train is 'here'", "tcp://HOST:8786"]),
        ("list", ["list needs KIND", "one of methods, models, datasets"]),
        ("show empty", ["empty is not a run", "Give the folder of a run"]),
        ("show nothing", ["no run named 'nothing'", "--runs DIR"]),
        ("publish empty", ["empty is not a run", "Give the folder of a run"]),
        ("export empty --out a.csv", ["empty is not a run", "Give the folder of a run"]),
        ("pretrain digits-shards2 --dataset-options size", ["cannot read 'size'", "as in size=32"]),
    ],
)
def test_other_wrong_lines(line, parts, fedscape):
    Path("empty").mkdir()
    told = refused(fedscape(*line.split()))
    assert [part for part in parts if part not in told] == []


PAPER = ["claims runs --paper", "reproduce --paper", "figures list --paper", "figures draw runs --paper"]


@pytest.mark.parametrize("line", PAPER)
def test_a_paper_that_there_is_not_is_refused_in_the_same_words(line, fedscape):
    told = refused(fedscape(*line.split(), "iam"))
    assert told.startswith("fedscape: no paper named 'iam'. Did you mean 'ima'? ")
    if line.startswith("reproduce"):  # its plan asks questions across the papers too
        assert told.endswith("Known: cross, fedeve, fedlaw, ima, lss. To list them: fedscape reproduce --list.")
    else:
        assert told.endswith("Known: fedeve, fedlaw, ima, lss. To list them: fedscape list papers.")


QUICK = [f"{line} iam" for line in PAPER] + [
    "train",
    "train nosuch",
    "sweep digits-shards2 --grid method=nosuch",
    "analyse nosuch runs",
    "figures draw nosuch runs",
    "show nosuch",
    "diagnose nosuch",
    "reproduce --budget 2",
    "import nosuch",
]


def test_what_can_be_known_from_the_line_is_refused_before_torch_is_imported(tmp_path):
    code = f"""
import sys
from figures.cli import main
for line in {QUICK!r}:
    try:
        main(line.split())
    except SystemExit as stop:
        assert stop.code == 2, line
    assert 'torch' not in sys.modules, line
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stderr.count("\n") == len(QUICK)
