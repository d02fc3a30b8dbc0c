"""One colour and one written name for each method, the same in every picture; no drawing library is imported here."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterable

GLOBAL = "black"
"""Colour of the global model."""

CLIENT = "#8a8a8a"
"""Colour of a single client."""

METHODS = {
    "fedavg": ("FedAvg", "#0072B2"),
    "ima": ("IMA", "#D55E00"),
    "fedlaw": ("FedLAW", "#009E73"),
    "fedlaw-gws": ("FedLAW (GWS)", "#882255"),
    "fedeve": ("FedEve", "#CC79A7"),
    "lss": ("LSS", "#E69F00"),
}
"""Written name and colour of the methods, in the order of legends (colours of Okabe and Ito, and Tol's wine)."""

_WRITTEN = {
    "fedprox": ("FedProx", 0),
    "fedsam": ("FedSAM", 8),
    "fedasam": ("FedASAM", 1),
    "fedfa": ("FedFA", 2),
    "moon": ("MOON", 1),
    "scaffold": ("SCAFFOLD", 2),
    "feddyn": ("FedDyn", 1),
    "fedavgm": ("FedAvgM", 1),
    "fedadam": ("FedAdam", 5),
    "fedyogi": ("FedYogi", 6),
    "fedadagrad": ("FedAdagrad", 9),
    "fednova": ("FedNova", 3),
    "fedgma": ("FedGMA", 7),
    "shrink": ("shrinking", 7),
    "server_ft": ("Server-FT", 6),
    "feddf": ("FedDF", 2),
    "fedbe": ("FedBE", 3),
    "fedbn": ("FedBN", 2),
    "fedfomo": ("FedFomo", 3),
    "fedrep": ("FedRep", 5),
    "fedbabu": ("FedBABU", 6),
    "swa": ("SWA", 7),
    "swad": ("SWAD", 4),
    "soups": ("Soups", 8),
    "diwa": ("DiWA", 9),
}
"""Written names of the other methods, and the place of their colours; those of one paper's tables differ."""

_OTHERS = ("#56B4E9", "#999933", "#332288", "#661100", "#6699CC", "#117733", "#AA4499", "#44AA99", "#DDCC77", "#CC6677")


def colour(name: str) -> str:
    """Colour of a method, the same in every figure; that of an unknown one follows from its name."""
    if name in METHODS:
        return METHODS[name][1]
    if name in _WRITTEN:
        return _OTHERS[_WRITTEN[name][1]]
    place = zlib.crc32(name.encode())
    red, green, blue = colorsys.hls_to_rgb(place % 360 / 360, (0.35, 0.45, 0.55)[place // 360 % 3], 0.6)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def label(name: str) -> str:
    """A method's name as its paper writes it; a variant stands in brackets, a method averaged by IMA before a plus."""
    if name in METHODS:
        return METHODS[name][0]
    if "+" in name:
        return "+".join(map(label, name.split("+")))
    base, _, variant = name.partition("-")
    if base not in METHODS and base not in _WRITTEN:
        return name  # somebody's own, as they call it
    written = METHODS[base][0] if base in METHODS else _WRITTEN[base][0]
    told = "SWA" if variant == "swa" else variant.replace("_", " ")
    return f"{written} ({told})" if variant else written


def order(names: Iterable[str]) -> list[str]:
    """Methods in the order of legends: the known ones first, then the others by name."""
    known = list(METHODS)
    return sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name))
