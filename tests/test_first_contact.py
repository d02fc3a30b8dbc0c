"""What a newcomer does: the wheel in an empty environment, the demo in an empty folder, and four ways to a picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import blocks
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FEDSCAPE", "VIRTUAL"))}


def ran(*command: object, folder: Path, **options: str) -> subprocess.CompletedProcess[str]:
    """A command that succeeds, without this repository or its settings in sight."""
    told = subprocess.run(
        [str(word) for word in command], cwd=folder, env=CLEAN | options, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, f"{command}: {told.stdout[-2000:]} {told.stderr[-3000:]}"
    return told


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The folder of programs of a new environment that has the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("fresh")
    ran(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, blocks.ROOT, folder=folder)
    ran(sys.executable, "-m", "venv", folder / "env", folder=folder)
    (wheel,) = folder.glob("fedscape-*.whl")
    ran(folder / "env" / "bin" / "python", "-m", "pip", "install", "-q", wheel, folder=folder)
    return folder / "env" / "bin"


def test_the_demo_in_an_empty_folder(programs, tmp_path):
    told = ran(programs / "fedscape", "demo", folder=tmp_path, OMP_NUM_THREADS="1")
    first = re.search(r"the first picture is (\S+)", told.stderr)
    assert first is not None and (tmp_path / first[1]).stat().st_size > 10_000
    assert len(list((tmp_path / "out" / "demo" / "figures").glob("*.png"))) == 9
    assert (tmp_path / "out" / "demo" / "report.html").stat().st_size > 1_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def lines(text: str) -> str:
    """A script or commands of at most five lines, without a deep import."""
    assert len([line for line in text.splitlines() if line.strip()]) <= 5, text
    assert not re.search(r"import (?:landscape|drift|figures)\.|from (?:landscape|drift|figures)", text), text
    return text


def test_the_reader_of_the_readme(programs, tmp_path):
    (block,) = [one.text for one in blocks.blocks(blocks.ROOT / "README.md") if "fs.simulate" in one.text]
    code = [line for line in block.splitlines() if line.strip()]
    (tmp_path / "ten.py").write_text(lines("\n".join(code[:5])))
    ran(programs / "python", "ten.py", folder=tmp_path)
    assert (tmp_path / "round.png").stat().st_size > 10_000


MINE = """
import torch
from torch import nn

loss = nn.CrossEntropyLoss()
inputs = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
data = torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))


def net():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def make_task():
    return net(), loss, {"train": data.tensors, "test": data.tensors}


if __name__ == "__main__":
    from pathlib import Path

    for number, name in enumerate("abc"):
        torch.manual_seed(number)
        torch.save(net().state_dict(), f"{name}.pt")
    for number in range(3):
        folder = Path(f"ckpt/round{number}")
        folder.mkdir(parents=True)
        torch.manual_seed(number)
        model = net().state_dict()
        torch.save(model, folder / "global.pth")
        for client in range(3):
            torch.save({name: value + 0.1 * torch.randn_like(value) for name, value in model.items()},
                       folder / f"client{client}.pth")
"""


@pytest.fixture
def mine(programs, tmp_path) -> Path:
    """A reader's own model, three checkpoints, and a folder of rounds."""
    (tmp_path / "mine.py").write_text(MINE)
    ran(programs / "python", "mine.py", folder=tmp_path)
    return tmp_path


def test_three_checkpoints(programs, mine):
    (block,) = [one.text for one in blocks.blocks(blocks.ROOT / "README.md") if "make_task" in one.text]
    (mine / "three.py").write_text(lines(block))
    ran(programs / "python", "three.py", folder=mine)
    assert (mine / "plane.png").stat().st_size > 10_000


def test_a_folder_of_checkpoints(programs, mine):
    commands = lines(
        'fedscape import ckpt --pattern "round{round}/client{client}.pth"\n'
        "fedscape figures draw planes-clients runs --task mine.py:make_task\n"
    )
    for command in commands.splitlines():
        ran("sh", "-c", command, folder=mine, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert (mine / "out" / "figures" / "planes-clients.png").stat().st_size > 10_000
