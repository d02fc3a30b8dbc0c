"""The how-tos work as they stand, in an empty folder."""

import re

import blocks
import pytest
from kinds import one_of_each

DOCS = blocks.ROOT / "docs"
NAMES = sorted(path.name for path in DOCS.glob("howto-*.md"))
MADE = {
    "howto-checkpoints.md": ["figures/planes-clients.png", "report.html"],
    "howto-transformers.md": ["figures/planes-clients.png", "report.html", "plane.png", "curvature.png"],
    "howto-adapters.md": ["figures/product-gap.png", "base/model.safetensors"],
    "howto-training.md": ["trajectory.png", "curvature.png", "curve.png", "figures/trajectory-plane.png"],
    "howto-method.md": ["out/figures/accuracy-rounds.png", "out/figures/Spread.png"],
    "howto-paper.md": [
        *("figures/accuracy-rounds.png", "wide/accuracy-rounds.pdf", "slides/accuracy-rounds.png"),
        *("figures/accuracy-table.png", "film.gif", "figures/accuracy-rounds.pdf", "two-figures.pdf"),
    ],
    "howto-figure.md": ["out/figures/planes-clients.png", "out/figures/lines-fma-ima.png"],
}
NEEDED = dict.fromkeys(("howto-transformers.md", "howto-adapters.md"), ("transformers", "peft"))


QUICK = ("howto-checkpoints.md", "howto-method.md")
"""Pages that show what the others show as well: a task and code of one's own, imports, training, figures, a report."""


@pytest.mark.parametrize("name", NAMES)
def test_a_howto_calls_what_there_is(name, tmp_path, monkeypatch):
    blocks.read(DOCS / name, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", one_of_each(NAMES, QUICK))
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft asks transformers for it
def test_a_howto_runs_as_it_stands(name, tmp_path, monkeypatch):
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package, reason="the extra hf is not installed")
    blocks.run(DOCS / name, tmp_path, monkeypatch)
    assert all((tmp_path / made).stat().st_size > 1000 for made in MADE.get(name, []))


def test_the_flower_app_has_a_node_for_each_part_and_three_clients_in_a_round(tmp_path, monkeypatch):
    """So that the figure that the page draws next has a round with a plane."""
    tutorial = (DOCS / "tutorial-federated.md").read_text()
    text = tutorial + (DOCS / "howto-flower.md").read_text()
    (task,) = re.findall(r"```python\n# task\.py\n(.*?)```", tutorial, re.DOTALL)
    names: dict = {}
    exec(task, names)
    parts = len(names["parts"])
    assert int(re.search(r"min_train_nodes=(\d+)", tutorial)[1]) >= 3
    assert {int(count) for count in re.findall(r"num[-_](?:supernodes|partitions)=(\d+)", text)} == {parts}
    assert " ".join(map(str, range(parts))) in re.search(r"for part in ([\d ]+);", text)[1]
    assert all("num-supernodes" in line or "loopback" in line for line in re.findall(r"^flwr run .*", text, re.M))


@pytest.mark.parametrize("name", ["tutorial-checkpoints.md", "howto-checkpoints.md"])
def test_the_task_of_a_howto_has_about_fifteen_lines(name):
    (body,) = re.findall(r"```python\n# (?:my_code|mine)\.py\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
