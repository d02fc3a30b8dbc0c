"""Named figures in the report: each as a picture with its caption, its text for readers who cannot see it, its data."""

import base64
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drift.runs.run import Run
from figures import gallery
from figures.page.pictures import or_why
from figures.page.remembered_runs import Failed
from figures.page.sampled import Samples, subset_words
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


OF_EACH = ("lines-fma-ima", "eigen-rounds")
"""Figures of the page that evaluate models of every run."""

FIGURES = {
    "landscape": ("lines-fma-ima",),
    "drift": ("labels-scatter", "locality-rounds"),
    "weights": ("weights-learned", "simplex-weights"),
    "curvature": ("eigen-rounds",),
}
"""Figures of the page, by its section."""


def page_figures(
    asked: Sequence[str], runs: Sequence[Run], samples: Samples, failed: Failed
) -> dict[str, list[DrawnFigure]]:
    """The figures of each section, and below "named" those that were asked for and are in no other.

    A figure of the page that evaluates models takes all test samples: it is left out, with this reason, where the page
    takes fewer and it was not asked for.

    Args:
        asked: Names of figures that are shown as well.
        runs: A figure is drawn from those that it needs.
        samples: Of the page at most.
        failed: Collects the figures that could not be drawn.
    """
    usual = {name for names in FIGURES.values() for name in names}
    wanted = {name.replace("_", "-") for name in asked}
    sections = {**FIGURES, "named": [name for name in asked if name.replace("_", "-") not in usual]}
    with tempfile.TemporaryDirectory() as folder:

        def shown(name: str) -> DrawnFigure:
            if name not in usual:
                return _draw(name, runs, Path(folder, gallery.file_stem(name)), failed, asked=True)
            if name not in wanted and (why := too_long(name, runs, samples)):
                return DrawnFigure(name, absent=why)
            able = [run for run in runs if not run.without_data] if _evaluates(name) else runs
            return _draw(name, able or runs, Path(folder, name), failed, asked=name in wanted)

        return {section: [shown(name) for name in names] for section, names in sections.items()}


def compute_figures(run: Run, samples: Samples, *, full: bool) -> None:
    """Compute and store what the figures of the page show of a run: all, or only those of every run.

    What a run does not allow, and what the page leaves out, is passed over.
    """
    for name in (name for names in FIGURES.values() for name in names) if full else OF_EACH:
        if not too_long(name, [run], samples):
            with suppress(LookupError):
                gallery.load(name).data([run])


def too_long(name: str, runs: Sequence[Run], samples: Samples) -> str:
    """Why a figure of the page is left out, as it would take more samples than the page does; "" if it is not."""
    some = subset_words(runs, "test", samples)
    if not some or not _evaluates(name):
        return ""
    return f"it evaluates all test samples, this page {some}. --figures {name} adds it, and so does --samples all."


def _evaluates(name: str) -> bool:
    """Whether a figure evaluates models; others show recorded numbers, or a few clients."""
    return gallery.constant(name, "COST") != "seconds"


def _draw(name: str, runs: Sequence[Run], folder: Path, failed: Failed, *, asked: bool) -> DrawnFigure:
    called, refused = gallery.file_stem(name), LookupError if asked else ValueError  # of runs that it does not suit
    paths = or_why(lambda: draw(name, gallery.AnyOf(runs), folder, formats=("png",)), called, failed, refused)
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
