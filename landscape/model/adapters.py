"""Settings of adapters of peft: the same weights with other settings are another model."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

SETTINGS = (
    *("peft_type", "r", "lora_alpha", "use_rslora", "use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern"),
    *("alpha", "scaling", "random_loc_seed", "n_frequency", "feedforward_modules", "coft", "projection_prng_key"),
)
"""Settings that a model computes with, beside the weights of its adapter."""


class Factors(NamedTuple):
    """Names of an adapted layer, of the parameters A and B, and of the adapter; "" where names do not state it."""

    layer: str
    a: str
    b: str
    adapter: str


def factor_names(names: Iterable[str]) -> list[Factors]:
    """The pairs of low-rank factors among names of parameters, in their order; a factor alone is left out."""
    present = list(names)
    pairs = ((name, _FACTOR.fullmatch(name)) for name in present)
    split = [(name, *match.groups(default="")) for name, match in pairs if match]
    named = [
        Factors(layer, a, f"{layer}.lora_{kind}B{adapter}{end}", adapter[1:]) for a, layer, kind, adapter, end in split
    ]
    return [factors for factors in named if factors.b in present]


_FACTOR = re.compile(r"(.+)\.lora_(embedding_)?A(\.(?!weight$)[^.]+)?(\.weight)?")


def adapter_settings(model: nn.Module) -> dict[str, Any]:
    """Settings of the active adapter of a model, and whether it is on; empty without adapters."""
    modules = [module for module in model.modules() if isinstance(getattr(module, "peft_config", None), Mapping)]
    if not modules:
        return {}
    configs: Any = modules[0].peft_config
    layers: Any = [module for module in model.modules() if hasattr(module, "adapter_layer_names")]
    active = layers[0].active_adapters if layers else [getattr(modules[0], "active_adapter", next(iter(configs)))]
    settings: dict[str, Any] = {"active adapter": ", ".join(active)}
    for config in (configs[name] for name in active if name in configs):
        settings |= {key: getattr(config, key) for key in SETTINGS if hasattr(config, key)}
    settings["disabled"] = any(layer.disable_adapters for layer in layers)
    for number, layer in enumerate(layers):
        scales = getattr(layer, "scaling", {})
        settings[f"scaling of layer {number}"] = [scales.get(name) for name in layer.active_adapters]
    return settings


def settings_beside(file: Path) -> dict[str, Any]:
    """Settings that the folder of a file states, `adapter_config.json`; empty if it states none.

    Raises:
        ValueError: If they cannot be read.
    """
    path = file.parent / "adapter_config.json"
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as reason:
        raise ValueError(f"{path} cannot be read ({reason}); save the adapter again.") from reason


def require_same_adapter(name: str | Path, stated: Mapping[str, Any], model: nn.Module) -> None:
    """Raise ValueError where a model, called `name`, has an adapter of other settings than the task's model."""
    settings = adapter_settings(model)
    if stated and not settings:
        raise ValueError(
            f"{name} is an adapter, and the task's model has none. {_RECIPE} Or merge it (merge_and_unload())."
        )
    for key, ours in settings.items():
        value = stated.get(key, ours)
        if value != ours and not (isinstance(ours, set) and ours == set(value)):
            raise ValueError(
                f"{name} has {key} = {value!r}, the adapter of the task's model {ours!r}; the same weights are another "
                f"model then. {_RECIPE}"
            )


_RECIPE = "Make the task of PeftModel.from_pretrained(base, FOLDER, is_trainable=True)."
