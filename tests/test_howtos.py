"""The how-tos work as they stand, in an empty folder."""

import re
from types import SimpleNamespace

import blocks
import numpy as np
import pytest
import torch

import drift

DOCS = blocks.ROOT / "docs"
NAMES = sorted(path.name for path in DOCS.glob("howto-*.md"))
MADE = {
    "howto-own-task.md": ["figures/planes-clients.png", "report.html"],
    "howto-checkpoints.md": ["figures/planes-clients.png", "report.html", "plane.png"],
    "howto-compare-strategies.md": ["out/figures/planes-clients.png", "report.html"],
    "howto-training.md": ["trajectory.png", "curvature.png", "curve.png", "figures/trajectory-plane.png"],
    "howto-method.md": ["out/figures/accuracy-rounds.png", "out/figures/Spread.png"],
    "howto-paper.md": ["figures/accuracy-rounds.pdf", "figures/accuracy-table.pdf", "film.gif", "gain.pdf"],
    "howto-look.md": ["figures/accuracy-rounds.pdf", "two-figures.pdf"],
    "howto-figure.md": ["out/figures/planes-clients.png", "out/figures/lines-fma-ima.pdf", "accuracy.pdf"],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_howto_runs_as_it_stands(name, tmp_path, monkeypatch):
    blocks.run(DOCS / name, tmp_path, monkeypatch)
    assert all((tmp_path / made).stat().st_size > 1000 for made in MADE.get(name, []))


class Numbers(dict):
    """As much of NVFlare's FLModel as is used."""

    def __init__(self, params, **meta):
        self.params, self.meta = params, meta


class Workflow:
    """The calls of NVFlare's FedAvg, in their order."""

    def __init__(self, params):
        self.model = Numbers(params)

    def aggregate(self, results, aggregate_fn=None):
        mean = {name: sum(one.params[name] for one in results) / len(results) for name in self.model.params}
        return Numbers(mean)

    def update_model(self, aggregate):
        self.model.params.update(aggregate.params)

    def run(self, rounds):
        for number in range(rounds):
            steps = {"NUM_STEPS_CURRENT_ROUND": 5.0}
            results = [
                Numbers(
                    {name: value + number + client for name, value in self.model.params.items()},
                    client_name=f"site-{client}",
                    **steps,
                )
                for client in range(3)
            ]
            self.update_model(self.aggregate(results))


class Averaging:
    """The calls of pfl-research's FederatedAveraging, in their order, on a torch module."""

    def train_one_user(self, initial_model_state, model, user_dataset, central_context):
        with torch.no_grad():
            model.pytorch_model.weight += user_dataset.user_id
        return {"weight": model.pytorch_model.weight - initial_model_state["weight"]}, {}

    def process_aggregated_statistics(self, central_context, aggregate_metrics, model, statistics):
        with torch.no_grad():
            model.pytorch_model.weight += statistics
        return model, {}

    def run(self, model, rounds):
        for _ in range(rounds):
            initial = {"weight": model.pytorch_model.weight.detach().clone()}
            updates = []
            for user in (1, 2):
                dataset = User()
                dataset.user_id = user
                updates.append(self.train_one_user(initial, model, dataset, None)[0]["weight"].detach().clone())
                model.pytorch_model.load_state_dict(initial)
            self.process_aggregated_statistics(None, None, model, sum(updates) / 2)


class User(list):
    """A dataset of seven samples."""

    def __len__(self):
        return 7


def test_loops_of_nvflare_and_pfl_are_recorded(tmp_path, monkeypatch):
    """By stand-ins with the frameworks' methods; the recorded rounds are what the loops computed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks.blocks(DOCS / "howto-other-frameworks.md"):
        if block.language == "python":
            exec(block.text, names)
    recorded = type("RecordedFedAvg", (names["Recorded"], Workflow), {})
    recorded({"w": np.zeros(3, np.float32)}).run(2)
    run = drift.open("runs/nvflare")
    assert run.rounds() == [0, 1]
    first, second = run.round(0), run.round(1)
    assert first.clients.tolist() == [[client] * 3 for client in range(3)] and first.end.tolist() == [1, 1, 1]
    assert second.start.tolist() == [1, 1, 1] and second.end.tolist() == [3, 3, 3]
    model = SimpleNamespace(pytorch_model=torch.nn.Linear(2, 1, bias=False))
    before = model.pytorch_model.weight.detach().clone()
    type("RecordedAveraging", (names["Recording"], Averaging), {})().run(model, 2)
    run = drift.open("runs/pfl")
    last = run.round(-1)
    torch.testing.assert_close(last.start, (before + 1.5).flatten())
    torch.testing.assert_close(last.clients[1] - last.start, torch.full((2,), 2.0))
    torch.testing.assert_close(last.end, model.pytorch_model.weight.detach().flatten())
    assert last.sizes.tolist() == [7, 7] and last.ids.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["howto-own-task.md", "howto-checkpoints.md"])
def test_the_task_of_a_howto_has_about_fifteen_lines(name):
    (body,) = re.findall(r"```python\n# (?:my_code|mine)\.py\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
