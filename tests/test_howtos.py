"""The how-tos work as they stand, in an empty folder."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from figures.cli import main

DOCS = Path(__file__).parents[1] / "docs"
MADE = {
    "howto-own-task.md": ["figures/planes-clients.png", "report.html"],
    "howto-checkpoints.md": ["figures/planes-clients.png", "report.html", "plane.png"],
}


@pytest.mark.parametrize("name", MADE)
def test_a_howto_runs_as_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = (DOCS / name).read_text()
    for file, body in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
        Path(file).write_text(body)
    if Path("make.py").exists():
        runpy.run_path("make.py")
    for line in "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines():
        program, *tokens = shlex.split(line)
        if program == "python":
            runpy.run_path(tokens[0])
        else:
            with pytest.raises(SystemExit) as left:
                main(tokens)
            assert left.value.code == 0, line
    for module in ("my_code", "mine"):
        sys.modules.pop(module, None)
    assert all(Path(made).stat().st_size > 1000 for made in MADE[name])


@pytest.mark.parametrize("name", MADE)
def test_the_task_of_a_howto_has_about_fifteen_lines(name):
    (body,) = re.findall(r"```python\n# (?:my_code|mine)\.py\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
