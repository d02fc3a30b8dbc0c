"""Named figures in the report: each as a picture with its caption, its text for readers who cannot see it, its data."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drift.runs.run import Run
from figures import gallery
from figures.page.pictures import or_why
from figures.page.remembered_runs import Failed
from figures.pictures.draw_files import draw


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the gallery as the page shows it, or why it could not be drawn.

    Args:
        name: Of the figure.
        picture, data: PNG and CSV as addresses that contain them.
        caption, alt: As written beside the picture of `fedscape figures draw`.
        absent: Reason; empty if it was drawn.
    """

    name: str
    picture: str = ""
    data: str = ""
    caption: str = ""
    alt: str = ""
    absent: str = ""


def named_figures(names: Sequence[str], runs: Sequence[Run], failed: Failed) -> list[DrawnFigure]:
    """The figures, drawn from those of the runs that they need; one that fails is collected in `failed`."""
    with tempfile.TemporaryDirectory() as folder:
        return [_draw(name, runs, Path(folder) / str(index), failed) for index, name in enumerate(names)]


def _draw(name: str, runs: Sequence[Run], folder: Path, failed: Failed) -> DrawnFigure:
    called = gallery.file_stem(name)
    paths = or_why(lambda: draw(name, gallery.AnyOf(runs), folder, formats=("png",)), called, failed)
    if isinstance(paths, str):
        return DrawnFigure(called, absent=" ".join(paths.split()))
    text = {kind: (folder / f"{called}.{kind}").read_text(encoding="utf-8").strip() for kind in ("txt", "alt.txt")}
    return DrawnFigure(
        called,
        picture=_address(folder / f"{called}.png", "image/png"),
        data=_address(folder / f"{called}.csv", "text/csv"),
        caption=text["txt"],
        alt=text["alt.txt"],
    )


def _address(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
