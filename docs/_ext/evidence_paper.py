"""The numbers of the manuscript within sentences, and the settings of its two data sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from _ext.evidence_runs import CROSS
from _ext.evidence_tables import span, table
from _ext.paper_settings import flat
from drift.claims.campaign.plan import Plan
from drift.claims.claim import Verdict
from drift.methods.ima import IMA

SETTINGS = {
    "task.dataset": "data",
    "task.train_samples": "training images",
    "clients.number": "clients K",
    "clients.per_round": "clients per round m",
    "clients.partition.shards": "label shards per client",
    "task.model": "model",
    "rounds": "rounds",
    "local.lr": "local rate of SGD",
    "local.lr_decay": "factor of the rate per round",
    "local.epochs": "local epochs",
    "local.batch": "batch",
}
"""Setting of an experiment -> its name in the manuscript."""


def inline(answers: Sequence[Verdict], told: Callable[[Verdict], str]) -> dict[str, str]:
    """Each question's answers on both data sets, by its name; the means alone behind "mean-".

    Args:
        answers: Verdicts on questions across the papers.
        told: Writes mean, interval and p.
    """
    blocks = {}
    for name in dict.fromkeys(answer.claim.name for answer in answers):
        own = {answer.setting: answer for answer in answers if answer.claim.name == name and answer.seeds}
        if all(setting in own for setting in CROSS):
            both = [own[setting] for setting in CROSS]
            blocks[name] = " and ".join(told(answer) for answer in both)
            means = [span(answer.interval, 3, answer.claim.unit).partition(" ")[0] for answer in both]
            blocks[f"mean-{name}"] = " and ".join(means)
    return blocks


def settings(campaign: Plan) -> str:
    """A row per setting; both values where those of the two data sets differ."""
    items = [item for item in campaign.items if item.name in CROSS]
    columns = []
    for item in items:
        trained = [item.trained(row) for row in item.rows]
        ima = next(one for one in trained if isinstance(one.method, IMA))
        column = {text: flat(trained[0])[name] for name, text in SETTINGS.items()}
        column["data"] += f" (`{item.name}`)"
        column["IMA averages from round"] = f"{ima.method.first_round(ima.rounds)}"  # type: ignore[attr-defined]
        column["models in IMA's mean, P"] = f"{ima.method.window}"  # type: ignore[attr-defined]
        columns.append(column)
    return table(
        ("setting", "value"), [(name, ", ".join(dict.fromkeys(one[name] for one in columns))) for name in columns[0]]
    )
