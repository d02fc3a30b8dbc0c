"""One colour and one written name for each method, the same in every picture; no drawing library is imported here."""

from __future__ import annotations

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

_OTHERS = ("#56B4E9", "#999933", "#332288", "#661100", "#6699CC", "#117733", "#AA4499", "#44AA99")


def colour(name: str) -> str:
    """Colour of a method, the same in every figure; methods without their own share a cycle, chosen by name."""
    if name in METHODS:
        return METHODS[name][1]
    return _OTHERS[zlib.crc32(name.encode()) % len(_OTHERS)]


def label(name: str) -> str:
    """A method's name as its paper writes it; a variant stands in brackets."""
    if name in METHODS:
        return METHODS[name][0]
    base, _, variant = name.partition("-")
    written = METHODS.get(base, (base, ""))[0]
    return f"{written} ({variant.replace('_', ' ')})" if variant else written


def order(names: Iterable[str]) -> list[str]:
    """Methods in the order of legends: the known ones first, then the others by name."""
    known = list(METHODS)
    return sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name))
