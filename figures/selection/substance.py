"""Whether a drawn figure shows something: refused where nothing does, a remark where a part does not.

Every figure of the gallery passes through it after drawing and before saving. It reads the panels and the numbers, so
that a new figure needs no code for it.
"""

import textwrap
from collections.abc import Iterable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.looks.layout import PAGE
from figures.selection import sampling_error
from figures.selection.groups import grouped
from figures.selection.panels import equal_panels, panels
from figures.selection.statistics_text import statistics_text


def remarks(figure: Figure, ds: xr.Dataset, *, needs: str, samples: int | None = None) -> list[str]:
    """Which parts of a figure show nothing, or no more than chance, in sentences for its reader.

    Args:
        figure: Drawn from the dataset.
        needs: What runs the figure takes, in words.
        samples: Test samples that its accuracies are measured on.

    Raises:
        LookupError: If no part of it shows anything; with the reason, and the runs that it takes.
    """
    if absent := _without_values(ds):
        raise LookupError(f"nothing to show: these runs have no {absent}. The figure takes {needs}.")
    shown = panels(figure)
    mute = _collected((panel.mute, panel.name) for panel in shown if panel.mute)
    if shown and all(panel.mute for panel in shown):
        what = f"nothing to show of these runs: {'; '.join(mute)}"
        raise LookupError(f"{what}. The figure takes {needs}; give runs that differ in it.")
    if not shown and (equal := _same_rows(ds)):
        mute.append(equal)
    limits = _collected((limit, panel.name) for panel in shown for limit in panel.limits)
    tall = figure.get_figheight()
    same = [f"the {_quoted(names)} show the same" for names in equal_panels(shown)]
    return [
        *mute,
        *limits,
        *same,
        *_statistics(ds),
        *_excluded(ds),
        *(sampling_error.sentences(ds, samples, _labels(figure)) if samples else []),
        *([f"taller than a page, {tall:.0f} inches; wider, or of fewer runs, it is lower"] if tall > PAGE + 1 else []),
    ]


def _statistics(ds: xr.Dataset) -> list[str]:
    """That marks have other statistics of batch normalisation than the points beside them, where they have."""
    kind, marks = (str(ds.attrs.get(name, "")) for name in ("statistics", "mark_statistics"))
    return [statistics_text("points have", kind, "marks their", marks)] if kind and marks not in ("", kind) else []


def _excluded(ds: xr.Dataset) -> list[str]:
    """Which clients have no finite model and are in no mean; the rounds of three, and how many there are."""
    rounds = str(ds.attrs.get("excluded", "")).split("; ")
    more = f" and {len(rounds) - 3} other rounds" if len(rounds) > 3 else ""
    return [f"left out, as their models are not finite: {', '.join(rounds[:3])}{more}"] if rounds[0] else []


def _labels(figure: Figure) -> list[str]:
    """Labels of axes and colour bars, and titles."""
    return [text for ax in figure.get_axes() for text in (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) if text]


def _without_values(ds: xr.Dataset) -> str:
    """What the measured numbers of a figure are, where each of them is missing; empty where there are some."""
    numbers = [values for values in ds.data_vars.values() if values.dtype.kind == "f"]
    if any(values.notnull().any() for values in numbers):
        return ""
    return " and no ".join(dict.fromkeys(str(values.attrs.get("long_name", values.name)) for values in numbers))


def _collected(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Reasons, each once, after the panels that it holds for."""
    by_reason = grouped(pairs, lambda pair: pair[0])
    return [": ".join(filter(None, [_listed([panel for _, panel in same]), why])) for why, same in by_reason.items()]


def _quoted(panels: list[str]) -> str:
    names = [f'"{textwrap.shorten(name, 60, placeholder="..")}"' for name in dict.fromkeys(panels)]
    return f"{len(panels)} " * (len(names) < len(panels)) + f"panels {', '.join(names)}"  # rows may have one title


def _listed(panels: list[str]) -> str:
    names = [textwrap.shorten(name, 48, placeholder="..") for name in dict.fromkeys(filter(None, panels))]
    return "; ".join(names) if len(names) < 5 else f"{len(names)} panels from {names[0]} to {names[-1]}"


def _same_rows(ds: xr.Dataset) -> str:
    """That all rows of a table are equal; empty where they are not, or there is one alone."""
    named: list[str] = []
    for values in ds.data_vars.values():
        groups = sampling_error.comparisons(values)
        if not groups:
            continue
        dim = next(name for name in sampling_error.ALONG if name in values.dims)
        rows = values.dropna(dim, how="all").transpose(dim, *({"seed"} & set(values.dims)), ...).values
        rows = np.sort(rows, axis=1) if "seed" in values.dims else rows  # no table tells which is which
        constant = np.nanmin(rows) == np.nanmax(rows)  # whichever columns a row has
        if not constant and not np.allclose(rows, rows[:1], rtol=1e-12, atol=0, equal_nan=True):
            return ""
        named = max((*map(list, groups), named), key=len)
    return f"{', '.join(named)} have the same numbers" if named else ""
