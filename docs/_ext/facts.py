"""What the gallery page says of each figure, read from `fedscape figures list`, and its order; nothing of Sphinx."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from figures.commands.pictures import list_
from figures.gallery._questions import QUESTIONS as QUESTIONS

_WRITTEN = {"ima": "IMA", "fedlaw": "FedLAW", "lss": "LSS", "fedeve": "FedEve"}

IMAGES = Path(__file__).parents[1] / "images" / "gallery"
RECORD = IMAGES.parent / "pictures.json"
"""What the pictures of the gallery were drawn from, and what is seen on them."""


def described() -> list[dict[str, Any]]:
    """What `fedscape figures list` says of every figure: name, description, papers, needs, cost."""
    with redirect_stdout(io.StringIO()) as told:
        list_(json=True)
    return json.loads(told.getvalue())


def split(description: str) -> tuple[str, str]:
    """What a figure shows, and where papers have it, which its description ends with in brackets."""
    found = re.fullmatch(r"(.*?)(?: \(([^()]*(?:\([^()]*\)[^()]*)*)\))?\.?", description)
    return (found[1], found[2] or "") if found else (description, "")


def items_of(papers: list[str]) -> str:
    """Items of papers in words, parts of a table as one: "IMA Fig. 6a, Fig. 6b; LSS Table 4"."""
    found: dict[str, dict[str, None]] = {}
    for paper, _, item in (one.partition(" ") for one in papers):
        found.setdefault(_WRITTEN[paper], {})[re.split(r",| \(", item)[0]] = None
    return "; ".join(f"{paper} {', '.join(items)}" for paper, items in found.items())


def seen(name: str) -> str:
    """What is seen on the picture of a figure, in words; of one without a picture, nothing."""
    return _seen().get(name, "")


@cache
def _seen() -> dict[str, str]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["seen"] if RECORD.exists() else {}


def finding(name: str) -> str:
    """What a picture shows of its runs: the second sentence of what is seen, unless it lists panels or rows."""
    second = re.split(r"(?<! al)\. (?=[A-Z0-9])", seen(name))[1:2]
    return f"{second[0].rstrip('.')}." if second and not re.match(r"Panel|\d+ (more )?(panel|row)", second[0]) else ""


def is_whole(name: str) -> bool:
    """Whether a card shows a whole picture: a panel or table that is not flat; of others it shows the first panels."""
    with Image.open(IMAGES / f"{name}.webp") as picture:
        flat = picture.height < 0.6 * picture.width
    return not flat and not re.search(r"Panel 1|panels|\(round \d+\) and", seen(name))


NOT_DRAWN = {
    "ranking-table": "needs runs on MovieLens-1M",
    "gamma-table": "factors of the runs on this page are 1 within their spread; regularisation-rounds shows them",
    "robustness-table": "noise costs the runs on this page less than chance does",
    "product-gap": "needs runs with low-rank adapters; such runs are shown above",
}
"""Why a figure has no picture, by name."""
