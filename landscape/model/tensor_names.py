"""Names of tensors: what wrappers put into them, and which names are near to one; numpy and torch are not needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

WRAPPERS = frozenset(
    ("module", "_module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
)
"""Parts that wrappers put into names: DataParallel, Opacus, torch.compile, FSDP, activation checkpoints, Fabric."""

_FORMS = (
    (re.compile(r"parametrizations\.(\w+)\.original0$"), r"\1_g"),
    (re.compile(r"parametrizations\.(\w+)\.original1$"), r"\1_v"),
    (re.compile(r"parametrizations\.(\w+)\.original$"), r"\1_orig"),
    (re.compile(r"parametrizations\.(\w+)\.0\._([uv])$"), r"\1_\2"),
)
"""Weight and spectral norm: names of torch.nn.utils.parametrizations, and those of before."""


def unwrapped_name(name: str) -> str:
    """A name without the parts of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def plain_name(name: str) -> str:
    """A name without the parts of wrappers, with weight norm in its earlier form (`weight_g`, `weight_v`)."""
    plain = unwrapped_name(name)
    for form, earlier in _FORMS:
        plain = form.sub(earlier, plain)
    return plain


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Plain names of names, where they tell all of them apart; else the names themselves."""
    return _distinct({name: plain_name(name) for name in names})


def unwrapped_names(names: Iterable[str]) -> dict[str, str]:
    """Names without the parts of wrappers, where they tell all of them apart; else the names themselves."""
    return _distinct({name: unwrapped_name(name) for name in names})


def _distinct(shorter: dict[str, str]) -> dict[str, str]:
    distinct = len(set(shorter.values())) == len(shorter) and ("" not in shorter.values() or "" in shorter)
    return shorter if distinct else {name: name for name in shorter}


def matched_names(stated: Iterable[str], wanted: Collection[str]) -> dict[str, str]:
    """For each name that is wanted and given, possibly with or without wrappers: the given name."""
    own = set(stated)
    if not set(wanted) - own:
        return {name: name for name in wanted}
    by_plain = {plain: name for name, plain in plain_names(own).items()}
    plain = plain_names(wanted)
    return {
        name: name if name in own else by_plain[plain[name]]
        for name in wanted
        if name in own or plain[name] in by_plain
    }


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that is most alike, in quotes; the first one if none is, "none" of none."""
    candidates = list(names)
    plain: Mapping[str, str] = {plain_name(other): other for other in candidates}
    close = get_close_matches(plain_name(name), plain, n=1, cutoff=0.3)
    return repr(plain[close[0]] if close else candidates[0]) if candidates else "none"
