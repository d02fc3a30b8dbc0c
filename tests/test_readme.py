"""What the README shows runs as it stands there."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_ten_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert {"alpha", "beta"} <= set(names["ds"].loss.dims)
    assert names["run"].rounds()[-1] == names["last"].index


def test_commands_in_the_readme_exist(capsys):
    from figures.cli import main

    shown = re.findall(r"^fedscape (\w+)", README.read_text(), re.MULTILINE)
    assert len(shown) > 5
    for name in set(shown):
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert not left.value.code, name
    assert "Usage" in capsys.readouterr().out
