"""What the README shows runs as it stands there."""

import re
import runpy
import sys

import blocks
import pytest
import torch

import drift
import landscape

README = blocks.ROOT / "README.md"


MINE = """
import torch
from torch import nn

loss, inputs = nn.CrossEntropyLoss(), torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=16)


def net():
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The reader's own model, loss and data, and three checkpoints."""
    (tmp_path / "mine.py").write_text(MINE)
    names = runpy.run_path(str(tmp_path / "mine.py"))
    for seed, name in enumerate("abc"):
        torch.manual_seed(seed)
        torch.save(names["net"]().state_dict(), tmp_path / f"{name}.pt")
    yield tmp_path
    sys.modules.pop("mine", None)


def test_three_checkpoints_take_four_lines_and_no_deep_import(mine, monkeypatch):
    monkeypatch.chdir(mine)
    monkeypatch.syspath_prepend(mine)
    block = next(one for one in blocks.blocks(README) if "make_task" in one.text)
    lines = [line for line in block.text.splitlines() if line]
    assert "figures" not in block.text and not re.search(r"import \w+\.|from (landscape|fedscape)", block.text)
    names: dict[str, object] = {}
    exec("\n".join(lines[:4]), names)
    from matplotlib import pyplot

    assert {"a", "b", "c"} <= {text.get_text() for text in pyplot.gcf().axes[0].texts}
    assert (mine / "plane.png").stat().st_size > 1000
    exec(lines[4], names)
    assert pyplot.gcf().axes[0].get_xlabel() == "rank"
    pyplot.close("all")


def test_the_blocks_of_the_readme_run(tmp_path, mine, monkeypatch):
    session = blocks.run(README, tmp_path, monkeypatch)
    assert {"alpha", "beta"} <= set(session.names["ds"].loss.dims)
    assert session.names["run"].rounds()[-1] == session.names["last"].index
    assert all((tmp_path / made).stat().st_size > 1000 for made in ("plane.vtk", "model.pt"))


@pytest.mark.slow
def test_the_first_lines_run_in_their_own_setting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = next(one for one in blocks.blocks(README) if "fs.simulate" in one.text)
    names: dict[str, object] = {}
    exec(compile(block.text, "README.md", "exec"), names)
    assert names["run"].rounds()[-1] == 29


@pytest.mark.slow
def test_the_caption_of_the_first_picture_has_the_losses_of_its_models(tmp_path):
    """Computed here from the models of the clients, without a plane."""
    (caption,) = re.findall(r"\*The mean \(cross\).*?\*", (README.parent / "docs/index.md").read_text(), re.DOTALL)
    run = drift.simulate("digits-shards2", method="fedavg", runs=tmp_path)
    record, test = run.round(-1), run.task.samples["test"]
    net = landscape.build_model(run.model_name, run.dataset.shape, len(run.dataset.classes), seed=0)
    models = {client: record.clients[record.ids.tolist().index(client)] for client in (2, 3, 5)}
    losses = {}
    for name, theta in (models | {"mean": torch.stack(list(models.values())).mean(0)}).items():
        torch.nn.utils.vector_to_parameters(theta, net.parameters())
        losses[name] = torch.nn.functional.cross_entropy(net(test.inputs), test.targets).item()
    assert f"{losses['mean']:.2f} nats" in caption and f"client 2\n({losses[2]:.2f})" in caption
    assert losses[2] < losses["mean"] < min(losses[3], losses[5]) / 2


def test_every_command_has_its_help(capsys):
    from figures.cli import main

    shown = re.findall(r"^fedscape (\w+)", README.read_text(), re.MULTILINE)
    assert len(shown) > 5
    for name in set(shown):
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert not left.value.code, name
    assert "Usage" in capsys.readouterr().out


def test_no_line_of_a_block_is_cut_on_the_page_of_a_repository():
    lines = [line for block in blocks.blocks(README) for line in block.text.splitlines()]
    assert lines
    assert [line for line in lines if len(line) > 92] == []  # characters of a column of 830 pixels, less its margins
