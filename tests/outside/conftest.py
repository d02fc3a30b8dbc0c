"""A folder of plug-ins outside the package, and the command line as a fresh process runs it."""

from __future__ import annotations

import sys

import pytest
import tiny
from outside_plugins import CODE, NAMES, PLURAL, forgotten

from drift.plugins import trust


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
