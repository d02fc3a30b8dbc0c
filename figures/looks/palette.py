"""Colour and written name of each method, the same in every figure; imports no drawing library."""

from __future__ import annotations

import colorsys
import re
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from drift.plugins.reserved_names import UNKNOWN
from landscape import plugins

GLOBAL = "black"
"""Colour of the global model."""

CLIENT = "#8a8a8a"
"""Colour of a single client."""

CLASSES = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#BBBBBB")
"""Colours of ten classes, which differ for colour-blind readers too (Tol's muted colours)."""

TERMS = {
    "full": ("full participation", "#333333"),
    "sampling": ("sampling drift", "#D55E00"),
    "client": ("client drift", "#0072B2"),
    "server": ("server", "#CC79A7"),
    "gradient": ("gradients at the start, all clients", "#777777"),
    "gradient_sampling": ("gradients at the start, cohort minus all", "#E69F00"),
    "local": ("local steps", "#009E73"),
}
"""Label and colour of the parts of a global step."""

SEQUENTIAL = "viridis"
"""Usual colour map of one-sided data."""

SIGNED = "RdBu_r"
"""Colour map of signed data, in both drawing libraries: red is positive, blue negative."""

METHODS = {
    "fedavg": ("FedAvg", "#004B87", 0),
    "ima": ("IMA", "#C04E08", 1),
    "fedlaw": ("FedLAW", "#009E73", 2),
    "fedlaw-gws": ("FedLAW (GWS)", "#5E1840", 4),
    "fedeve": ("FedEve", "#DD8FBB", 3),
    "lss": ("LSS", "#F0B323", 5),
}
"""Written name, colour and line style of methods, in the order of legends: hues of Okabe and Ito, lightness in steps.

CIE lightness 20 to 77, seven or more apart, so that they differ in grey print too.
"""

_INDEX_OF = {
    "fedprox": 0,
    "fedsam": 8,
    "fedasam": 1,
    "fedfa": 2,
    "moon": 1,
    "scaffold": 2,
    "feddyn": 1,
    "fedavgm": 1,
    "fedadam": 5,
    "fedyogi": 6,
    "fedadagrad": 9,
    "fednova": 3,
    "fedgma": 7,
    "shrink": 7,
    "server_ft": 6,
    "feddf": 2,
    "fedbe": 3,
    "fedbn": 2,
    "fedfomo": 3,
    "fedrep": 5,
    "fedbabu": 6,
    "fedlora": 0,
    "fedlora-fedit": 0,
    "fedlora-ffa": 1,
    "fedlora-rolora": 2,
    "fedlora-fedex": 3,
    "fedlora-flora": 9,
    "swa": 7,
    "swad": 4,
    "soups": 8,
    "diwa": 9,
}
"""Places of the other methods in `_OTHERS`; methods of one paper's tables have different ones."""

_OTHERS = ("#56B4E9", "#999933", "#332288", "#661100", "#6699CC", "#117733", "#AA4499", "#44AA99", "#DDCC77", "#CC6677")


_KINDS = (2, 1, 4, 5, 3, 5, 1, 2, 4, 3)
"""Line styles at these places: the six methods of FedEve's Table 1 have different ones."""


def colour(name: str) -> str:
    """Colour of a method, the same in every figure; that of any other name follows from the name."""
    if name in METHODS:
        return METHODS[name][1]
    if name in _INDEX_OF:
        return _OTHERS[_INDEX_OF[name]]
    number = zlib.crc32(name.encode())
    red, green, blue = colorsys.hls_to_rgb(number % 360 / 360, (0.35, 0.45, 0.55)[number // 360 % 3], 0.6)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


DASHES: tuple[Any, ...] = (
    "-",
    (0, (3.4, 1.8)),
    (0, (1.2, 1.1)),
    (0, (5, 1.2, 1.2, 1.2)),
    (0, (7, 1.6)),
    (0, (2.4, 1.2)),
)
"""Line styles, so that lines differ without colour and one below another shows through."""

MARKERS = "osD^vP"


def dash(name: str, variant: int = 0) -> Any:
    """Line style of a method, the same in every figure.

    Args:
        variant: Which settings of the method these are, by their number; each has another style.
    """
    return DASHES[(_kind(name) + variant) % len(DASHES)]


def plotly_dash(name: str, variant: int = 0) -> str:
    """The line style of a method as plotly has it."""
    style = dash(name, variant)
    return "solid" if style == "-" else ",".join(f"{2 * length:g}px" for length in style[1])


def marker(name: str) -> str:
    """Marker of a method, the same in every figure."""
    return MARKERS[_kind(name)]


def _kind(name: str) -> int:
    """Place of a method among the line styles: solid for FedAvg alone, of the main methods."""
    if name in METHODS:
        return METHODS[name][2]
    return _KINDS[_INDEX_OF[name] if name in _INDEX_OF else zlib.crc32(name.encode()) % len(_KINDS)]


def label(name: str) -> str:
    """A method's name as its paper writes it; a variant in brackets, a method averaged by IMA before a plus."""
    if name in METHODS:
        return METHODS[name][0]
    if name == UNKNOWN:
        return f"method {UNKNOWN}"
    if "+" in name:
        return "+".join(map(label, name.split("+")))
    base, _, variant = name.partition("-")
    if base not in plugins.names("drift.methods"):
        return name  # a method outside the package
    written = METHODS[base][0] if base in METHODS else _written(base)
    text = "SWA" if variant == "swa" else variant.replace("_", " ")
    return f"{written} ({text})" if variant else written


@lru_cache
def _written(name: str) -> str:
    """The name that begins the docstring of a method's file, up to a comma, colon or " on "."""
    return "shrinking" if name == "shrink" else re.split(r"[,:]| on ", plugins.describe("drift.methods", name))[0]


def order(names: Iterable[str]) -> list[str]:
    """Methods in the order of legends: those of METHODS first, then the others by name; values of options by size."""
    first = list(METHODS)

    def rank(name: str) -> tuple[int, str, list[float], str]:
        method, _, rest = name.partition(", ")
        numbers = [float(number) for number in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", rest)]
        return first.index(method) if method in first else len(first), method, numbers, rest

    return sorted(set(names), key=rank)
