"""The processor of this machine: its name and the instructions that it has."""

import os
import platform
from functools import cache
from pathlib import Path

import torch

SHOWN = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "asimd", "sve", "bf16")
"""Flags that decide how fast a model runs."""


@cache
def processor() -> dict[str, str]:
    """Name and flags of the processor, and what torch uses of them; "" where the system does not say."""
    entries = _cpuinfo()
    name = entries.get("model name") or entries.get("cpu model") or platform.processor() or platform.machine()
    numbers = "-".join(entries.get(key, "") for key in ("cpu family", "model", "stepping")).strip("-")
    flags = entries.get("flags", entries.get("features", "")).split()
    return {
        "name": name,
        "number": numbers,
        "flags": " ".join(flag for flag in SHOWN if flag in flags),
        "cache": entries.get("cache size", ""),
        "torch": f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}",
    }


def processor_line(*, gpu: bool = False) -> str:
    """Name, number and flags of the processor, and the cores of this machine, in one line; its GPU's name if asked."""
    about = processor()
    flags = about["flags"] and f"({about['flags']})"
    line = f"{' '.join(filter(None, (about['name'], about['number'], flags)))}, {os.cpu_count()} cores"
    return f"{line}, {torch.cuda.get_device_name()}" if gpu and torch.cuda.is_available() else line


def _cpuinfo() -> dict[str, str]:
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}
