"""Settings of matplotlib while figures are drawn: ours where the user has none, then those of the style asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib import style as sheets
from matplotlib.figure import FigureBase
from matplotlib.text import Text

from figures.looks import look

FOLDER = Path(__file__).parent / "styles"
"""Style sheets of venues."""

SMALL = 7 / 8
"""Size of ticks, legends and notes as a part of that of labels."""

_SIZES = dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize"), 1.0)
_SIZES |= dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize", "legend.title_fontsize"), SMALL)
"""Sizes of texts as parts of the font's."""

# of any type, as newer stubs list every key
_OURS: Any = mpl.rc_params_from_file(Path(__file__).parent / "ours.mplstyle", use_default_template=False)


@contextmanager
def context() -> Iterator[None]:
    """Matplotlib settings for drawing and saving figures; they end with the `with` block.

    Settings that the user changed, in a matplotlibrc, by `rcParams` or by a style sheet, stay; a style that the look
    asks for comes last.
    """
    changed = {name for name, value in mpl.rcParams.items() if value != mpl.rcParamsDefault[name]}
    ours = {name: value for name, value in _OURS.items() if name not in changed}
    size = float(ours.get("font.size", mpl.rcParams["font.size"]))
    ours |= {name: size * factor for name, factor in _SIZES.items() if name not in changed}
    asked: Any = sheet(str(look.current().take("style")))  # newer stubs list every key
    if "grid.color" in asked and "axes.grid" not in asked:
        ours["axes.grid"] = False  # ours is pale; that of a style may not be
    with mpl.rc_context(ours | asked):
        yield


def small() -> float:
    """Size of the texts in panels, points: that of legends."""
    with context():
        size = mpl.rcParams["legend.fontsize"]
        return float(font_manager.FontProperties(size=size).get_size_in_points())


def keep_fonts(figure: FigureBase) -> None:
    """Give texts the fonts of the style that is asked for; generic names are those of the style when it is saved."""
    settings: Any = mpl.rcParams  # newer stubs list every key
    for text in figure.findobj(Text) if look.current().look.style else ():
        text.set(linespacing=1.0, math_fontfamily=settings["mathtext.fontset"])  # serif lines are far from each other
        if (families := text.get_fontfamily()) in (["serif"], ["sans-serif"]):
            text.set_fontfamily(settings[f"font.{families[0]}"])


@lru_cache
def sheet(name: str) -> dict[str, Any]:
    """Settings of a venue, of a style of matplotlib, or of the user's style sheet; none for an empty name.

    Raises:
        ValueError: If there is no such style; names those that there are.
    """
    if not name:
        return {}
    shipped = FOLDER / f"{name}.mplstyle"
    file = shipped if shipped.exists() else Path(name)
    if not file.is_file() and name not in sheets.library:
        venues = ", ".join(look.VENUES)
        raise ValueError(f"there is no style {name!r}; give {venues}, a style of matplotlib, or a file FILE.mplstyle.")
    settings = mpl.rc_params_from_file(file, use_default_template=False) if file.is_file() else sheets.library[name]
    return {key: _installed(value) if key in _FAMILIES else value for key, value in dict(settings).items()}


def substitute(name: str) -> str:
    """A sentence on the font of a style that is not installed, and the one in its place; empty where it is there."""
    file = next((path for path in (FOLDER / f"{name}.mplstyle", Path(name)) if path.is_file()), None)
    if file is None:
        return ""
    settings: Any = mpl.rc_params_from_file(file, use_default_template=False)
    families = settings.get("font.family", ["sans-serif"])
    families = settings.get(f"font.{families[0]}", families)
    there = _installed(families)[0]
    other = there != families[0]
    return f"font {families[0]} of style {name} is not installed; {there} is in its place." * other


_FAMILIES = ("font.family", "font.serif", "font.sans-serif", "font.monospace")


def _installed(families: list[str]) -> list[str]:
    """The families that are there, and kinds of families: matplotlib warns of every other one, in each text."""
    there = {*font_manager.get_font_names(), *(name.removeprefix("font.") for name in _FAMILIES[1:])}
    return [name for name in families if name in there] or ["DejaVu Sans"]  # matplotlib has it
