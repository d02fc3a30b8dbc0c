"""The caption of a picture: what it shows, and methods, data, partition, seeds, rounds and samples behind it."""

import re

import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from figures.axes.curves import band
from figures.selection.identity import IDENTITY
from figures.texts import latex
from figures.texts.finding import finding


def caption(headline: str, ds: xr.Dataset, figure: Figure | None = None) -> str:
    """The caption of a figure's data as plain text, in sentences.

    The finding and the attribute `caption` of the data, where a figure has something to add, follow the headline; the
    attribute `band` replaces the sentence on its bands.

    Args:
        headline: What the figure shows, as the first line of its file says it; what it cites in brackets is left out.
        ds: As the figure's data() returns it.
        figure: Drawn from it; states whether there are bands.
    """
    attrs = {name: str(text) for name, text in ds.attrs.items()}
    texts = {name: attrs.get(f"identity_{name}", "") for name in IDENTITY}
    shown = f"{'Methods' if ', ' in texts['methods'] else 'Method'}: {texts['methods']}" if texts["methods"] else ""
    seeds = f"seed{'s' * bool(re.search(', | to ', texts['seeds']))} {texts['seeds']}" if texts["seeds"] else ""
    where = f"{'. ' if ': ' in texts['partition'] else '; partition: '}{texts['partition']}"  # several say so
    where = f"Data: {texts['data']}{where}" if texts["data"] else ""
    extent = "; ".join(filter(None, (seeds, texts["rounds"], texts["samples"])))
    sentences = [
        shown_in(headline, ds),
        finding(ds, figure),
        attrs.get("caption", ""),
        shown,
        where,
        extent[:1].upper() + extent[1:],
        attrs.get("band") or _band(ds, figure),
        attrs.get("remarks", ""),
        attrs.get("left_out_brief", ""),
    ]
    return " ".join(_sentence(text) for text in sentences if text)


def caption_latex(text: str, name: str, *, kind: str = "fig") -> str:
    """The caption as \\caption and \\label, to be read by \\input inside a figure or table.

    Args:
        text: As `caption` returns it.
        name: Of the files; it is the label after `kind` and a colon.
        kind: "fig" or "tab".
    """
    return f"\\caption{{{latex.escape(text)}}}\n\\label{{{kind}:{latex.label(name)}}}\n"


def shown_in(text: str, ds: xr.Dataset) -> str:
    """The first line of a figure's file without the items of papers in brackets; no printed numbers where none are."""
    plain = re.sub(r"\s*\([^()]*(paper|Fig|Table|equation|Eq\.|papers)[^()]*\)", "", text)
    return plain if "printed" in ds or any("_printed" in str(name) for name in ds) else _PRINTED.sub("", plain)


_PRINTED = re.compile(r", (with )?the paper's own( numbers beside)?")


def _band(ds: xr.Dataset, figure: Figure | None) -> str:
    """What the bands or whiskers of a picture are; empty where it has none."""
    if figure is None or (meaning := band(ds)) is None:
        return ""
    axs = [ax for ax in figure.get_axes() if ax.get_label() != "<colorbar>"]
    filled = [artist for ax in axs for artist in ax.collections if isinstance(artist, PolyCollection)]
    if any((artist.get_alpha() or 1) < 1 for artist in filled):
        return f"Lines and bands: {meaning}"
    if any(isinstance(artist, ErrorbarContainer) and artist.has_yerr for ax in axs for artist in ax.containers):
        return f"Bars and whiskers: {meaning}"
    return ""


def _sentence(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:1].upper() + plain[1:] + ("" if plain.endswith((".", "!", "?")) else ".")
