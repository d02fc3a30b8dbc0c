"""What the README shows runs as it stands there."""

import re

import blocks
import pytest

README = blocks.ROOT / "README.md"


def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch):
    session = blocks.run(README, tmp_path, monkeypatch)
    assert {"alpha", "beta"} <= set(session.names["ds"].loss.dims)
    assert session.names["run"].rounds()[-1] == session.names["last"].index
    assert all((tmp_path / made).stat().st_size > 1000 for made in ("plane.vtk", "model.pt", "report.html"))


@pytest.mark.slow
def test_the_ten_lines_run_in_their_own_setting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = (one for one in blocks.blocks(README) if one.language == "python")
    names: dict[str, object] = {}
    exec(compile(block.text, "README.md", "exec"), names)
    assert names["run"].rounds()[-1] == 29


def test_every_command_has_its_help(capsys):
    from figures.cli import main

    shown = re.findall(r"^fedscape (\w+)", README.read_text(), re.MULTILINE)
    assert len(shown) > 5
    for name in set(shown):
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert not left.value.code, name
    assert "Usage" in capsys.readouterr().out
