"""Colour and written name of each method, the same in every figure; imports no drawing library."""

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

GROUNDS = {"light": ("white", "#222222"), "dark": ("#0e1116", "#f2f2f2")}
"""Background, and what is written and drawn on it, by name."""

CLASSES = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#BBBBBB")
"""Colours of ten classes, which differ for colour-blind readers too (Tol's muted colours)."""

TERMS = {
    "full": ("full participation", "#333333"),
    "sampling": ("sampling drift", "#D55E00"),
    "client": ("client drift", "#0072B2"),
    "server": ("server", "#CC79A7"),
    "gradient": ("gradients, all clients", "#444444"),
    "gradient_sampling": ("gradients, cohort minus all", "#C08400"),
    "local": ("local steps", "#009E73"),
}
"""Label and colour of the parts of a global step."""

SEQUENTIAL = "viridis"
"""Usual colour map of one-sided data."""

SIGNED = "RdBu_r"
"""Colour map of signed data, in both drawing libraries: red is positive, blue negative."""

METHODS = {
    "fedavg": ("FedAvg", "#004B87", 0),
    "ima": ("IMA", "#9F4007", 1),
    "fedlaw": ("FedLAW", "#0C834E", 2),
    "fedlaw-gws": ("FedLAW (GWS)", "#541539", 4),
    "fedeve": ("FedEve", "#C85F9B", 3),
    "lss": ("LSS", "#B68E02", 5),
}
"""Written name, colour and line style of methods, in the order of legends: hues of Okabe and Ito, lightness in steps.

CIE lightness 19 to 61, six or more apart, so that they differ in grey print too; contrast with white 3 or more.
"""

_SHARED = (
    "fedprox fedlora fedlora-fedit",
    "fedasam moon feddyn fedavgm fedlora-ffa",
    "fedfa scaffold feddf fedbn fedlora-rolora",
    "fednova fedbe fedfomo fedlora-fedex",
    "swad",
    "fedadam fedrep",
    "fedyogi server_ft fedbabu",
    "fedgma shrink swa",
    "fedsam soups",
    "fedadagrad fedlora-flora diwa",
)
"""Methods that share a colour, in the order of `_OTHERS`; methods of one paper's tables have different ones."""

_INDEX_OF = {name: index for index, names in enumerate(_SHARED) for name in names.split()}

_OTHERS = ("#0E8FCC", "#979732", "#332288", "#661100", "#6296CB", "#117733", "#AA4499", "#3A9C8D", "#B07A3C", "#CC6677")


_KINDS = (2, 1, 4, 5, 3, 5, 1, 2, 4, 3)
"""Line styles at these places: the six methods of FedEve's Table 1 have different ones."""


def base(name: str) -> str:
    """The method that another one averages, as fedadam of fedadam+ima; empty of any other name."""
    return "" if ", " in name else name.rpartition("+")[0]


def colour(name: str) -> str:
    """Colour of a method, the same in every figure; that of any other name follows from the name.

    A method that averages another one has a darker shade of that one's colour, or a paler one where it is dark.
    """
    if averaged := base(name):
        return _other_shade(colour(averaged))
    if name in METHODS:
        return METHODS[name][1]
    if name in _INDEX_OF:
        return _OTHERS[_INDEX_OF[name]]
    number = zlib.crc32(name.encode())
    red, green, blue = colorsys.hls_to_rgb(number % 360 / 360, (0.35, 0.45, 0.55)[number // 360 % 3], 0.6)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _other_shade(colour: str) -> str:
    channels = red, green, blue = [int(colour[first : first + 2], 16) for first in (1, 3, 5)]
    towards, share = (255, 0.4) if 2 * red + 7 * green + blue < DARK else (0, 0.45)
    return "#" + "".join(f"{round(channel + share * (towards - channel)):02x}" for channel in channels)


DARK = 700
"""Brightness of a colour, of 2,550, below which its other shade is a paler one."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (3.4, 1.8)),
    (0, (1.2, 1.1)),
    (0, (5, 1.2, 1.2, 1.2)),
    (0, (7, 1.6)),
    (0, (2.4, 1.2)),
    (0, (6, 1.3, 1.1, 1.3, 1.1, 1.3)),
)
"""Line styles, so that lines differ without colour and one below another shows through.

The last one is that of methods that average another one.
"""

MARKERS, AVERAGED = "osD^vP", "phd><X"
"""Markers, and those of methods that average one with the marker at that place; the latter are hollow on lines."""


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
    return AVERAGED[_kind(averaged)] if (averaged := base(name)) else MARKERS[_kind(name)]


def _kind(name: str) -> int:
    """Place of a method among the line styles: solid for FedAvg alone, of the main methods."""
    if base(name):
        return len(DASHES) - 1
    if name in METHODS:
        return METHODS[name][2]
    return _KINDS[_INDEX_OF[name] if name in _INDEX_OF else zlib.crc32(name.encode()) // 7 % len(_KINDS)]


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
