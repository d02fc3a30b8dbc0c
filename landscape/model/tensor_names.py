"""Names of tensors: what wrappers and adapters put into them, and which are near to one; without numpy and torch."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

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
    return ".".join(word for word in name.split(".") if word not in WRAPPERS)


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


def adapters_of(module: Any) -> set[str]:
    """Names of the adapters of peft in a module, of which its files know nothing."""
    configs = (getattr(module, "peft_config", None) for module in module.modules())
    return {str(name) for config in configs if isinstance(config, Mapping) for name in config}


def adapters_in(names: Iterable[str]) -> set[str]:
    """Names of adapters that names of tensors contain, as in `lora_A.default.weight`."""
    adapters = (match[1] for name in names for match in _ADAPTED.finditer(name))
    return {name for name in adapters if name not in ("weight", "bias")}


_ADAPTED = re.compile(r"(?:^|\.)(?:lora_\w+|modules_to_save)\.(\w+)")


def spellings(names: Iterable[str], adapters: Collection[str]) -> dict[str, str]:
    """Names by what checkpoints may call them: without wrappers and adapters; what could be two of them is left out."""
    plain = plain_names(names)
    short: dict[str, set[str]] = {}
    for name, spelling in plain.items():
        for shorter in _without_adapter(spelling, adapters) if adapters else ():
            short.setdefault(shorter, set()).add(name)
    single = {spelling: names.pop() for spelling, names in short.items() if len(names) == 1}
    return single | {spelling: name for name, spelling in plain.items()} | {name: name for name in plain}


def _without_adapter(name: str, adapters: Collection[str]) -> Iterator[str]:
    """What files of peft call a tensor: without the adapter's name, DoRA's magnitude also without `weight`.

    Those of prompt and prefix tuning have one tensor, `prompt_embeddings`.
    """
    words = name.split(".")
    for index in range(1, len(words)):
        if words[index] in adapters:
            above = words[: index - (words[index - 1] == "modules_to_save")]
            yield ".".join((*above, *words[index + 1 :]))
            if words[index - 1] == "lora_magnitude_vector":
                yield ".".join(above)
            if words[index - 1] == "prompt_encoder" and words[index + 1 :] == ["embedding", "weight"]:
                yield "prompt_embeddings"


def matched_names(stated: Iterable[str], wanted: Collection[str], adapters: Collection[str] = ()) -> dict[str, str]:
    """For each name that is wanted and given, possibly with or without wrappers and adapters: the given name."""
    present = set(stated)
    if not set(wanted) - present:
        return {name: name for name in wanted}
    known = spellings(wanted, adapters)
    spelled = {known[plain]: name for name, plain in plain_names(present).items() if plain in known}
    return {name: name if name in present else spelled[name] for name in wanted if name in present or name in spelled}


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that is most alike, in quotes; the first one if none is, "none" of none."""
    candidates = list(names)
    plain: Mapping[str, str] = {plain_name(other): other for other in candidates}
    close = get_close_matches(plain_name(name), plain, n=1, cutoff=0.3)
    return repr(plain[close[0]] if close else candidates[0]) if candidates else "none"
