"""A run whose plug-in or files cannot be read blocks no command over its folder."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import tiny

from landscape.results import netcdf_files


def some(table, *names):
    """Cases by name; but the named ones are slow."""
    return [
        pytest.param(value, id=name, marks=() if name in names else pytest.mark.slow) for name, value in table.items()
    ]


BROKEN = {
    "syntax": "class Halved(",
    "name": "absent",
    "import": "import package_that_is_not_there",
    "exit": "raise SystemError('no')",
    "other class": "Halved = 3",
    "nothing": "",
}


@pytest.mark.parametrize("code", some(BROKEN, "other class"))
def test_one_run_that_cannot_be_read_blocks_no_folder(elsewhere, fedscape, code):
    good, bad = tiny.trained(Path("runs")), tiny.trained(Path("runs"), "method=my_method.py:Halved")
    (elsewhere / "my_method.py").write_text(code)
    text = f"{elsewhere}/my_method.py:Halved"
    for verb in (
        ("runs",),
        ("figures", "draw", "norms-rounds", "runs", "--format", "png"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # as in a process of its own: each warning once
            status, _, err = fedscape(*verb, "--trust", text)
        assert status == 0 and bad.name in err and "Traceback" not in err, (verb, err)
        assert len([line for line in err.splitlines() if "without its code" in line]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        words = ("figures", "draw", "norms-rounds", good.folder, bad.folder, "--format", "png")
        status, _, err = fedscape(*words, "--trust", text, "--json")
    assert status == 0 and bad.name in err and "without its code" in err, "it is drawn from its record"


DAMAGED = {
    "no JSON": b"{",
    "no experiment": b"{}",
    "other keys": b'{"experiment": {"nothing": 1}}',
    "untrusted": b'{"experiment": {"rounds": 1, "method": {"name": "/tmp/absent.py:X"}}}',
    "of an older version": b'{"experiment": {"rounds": 1, "method": {"name": "--main--"}}}',
}


@pytest.mark.parametrize("content", some(DAMAGED, "no JSON"))
def test_verbs_over_a_folder_name_what_they_cannot_read_and_go_on(elsewhere, fedscape, content):
    tiny.trained(Path("runs"))
    (elsewhere / "runs/foreign").mkdir()
    (elsewhere / "runs/foreign/run.json").write_bytes(content)
    for verb in (
        ("runs",),
        ("publish", "runs", "--samples", "30"),
        ("figures", "draw", "norms-rounds", "runs", "--format", "png"),
        ("claims", "ima", "runs"),
    ):
        status, _, err = fedscape(*verb)
        assert "foreign" in err and "Traceback" not in err, (verb, err)
        assert status == 0 or verb[0] == "claims", (verb, err)


def test_a_damaged_round_leaves_its_run_out_of_a_figure_over_a_folder_and_no_other(elsewhere, fedscape):

    good, bad = tiny.trained(Path("runs")), tiny.trained(Path("runs"), "method=fedprox")
    record = sorted((bad.folder / "rounds").iterdir())[1]
    record.write_bytes(record.read_bytes()[:-3])
    status, _, err = fedscape("figures", "draw", "norms-rounds", "runs", "--format", "png")
    lines = [line for line in err.splitlines() if f"{bad.name}: left out, it cannot be read: " in line]
    assert status == 0 and lines and record.name in lines[0], err
    ds = netcdf_files.load(Path("out/figures/norms-rounds.nc"))
    assert ds.attrs["runs"] == good.name and bad.name in ds.attrs["left_out_brief"]
    status, _, err = fedscape("figures", "draw", "norms-rounds", good.folder, bad.folder)
    assert status == 2 and record.name in err.strip().splitlines()[-1], "one that is named itself is not left out"
