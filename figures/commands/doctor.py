"""Properties of this machine, and what to do about each problem."""

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedscape import packages as ours
from landscape.plugins.public_names import version

EXTRAS = {"data": "huggingface_hub", "parquet": "pyarrow", "explore": "tornado", "notebook": "jupyterlab", "hf": "peft"}
EXTRAS |= {
    "flwr": "flwr_datasets",
    "cluster": "distributed",
    "topology": "gudhi",
    "film": "imageio_ffmpeg",
    "mcp": "mcp",
}
EXTRAS |= {"curvlinops": "curvlinops", "trackers": "mlflow", "docs": "sphinx", "test": "pytest", "dev": "ruff"}
"""A module of each optional part, whose presence stands for it."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
NEEDED = ("numpy", "scipy", "xarray", "h5netcdf", "safetensors", "matplotlib", "plotly", "pydantic")


@dataclass(frozen=True)
class Check:
    """One property of the machine.

    Args:
        name, value: The property, and its value here.
        advice: What to do; empty where nothing is wrong.
        broken: Whether fedscape cannot work without it.
    """

    name: str
    value: str
    advice: str = ""
    broken: bool = False


def examine(data: Path | None = None) -> list[Check]:
    """The properties of this machine, in reading order."""
    torch = _imported("torch")
    looks: list[Callable[[], Check]] = [
        lambda: Check("fedscape", version("fedscape") or "not installed"),
        packages,
        python,
        libraries,
        lambda: pytorch(torch),
        torchvision,
        lambda: gpu(torch),
        lambda: cores(torch),
        memory,
        disk,
        lambda: data_folder(data),
        cache_folder,
        extras,
        browser,
    ]
    return [look() for look in looks]


def packages() -> Check:
    """Whether the names `landscape`, `drift` and `figures` are fedscape's alone."""
    hidden, shared = ours.foreign(), ours.sharers()
    if not hidden and not shared:
        return Check("packages", f"{', '.join(ours.NAMES)} are fedscape's own")
    clashes = [f"{name} is {path}" for name, path in hidden.items()]
    clashes += [f"{name} is also installed by {', '.join(others)}" for name, others in shared.items()]
    advice = "; ".join(ours.advice(name, path, shared) for name, path in hidden.items()) or ours.reinstall(shared)
    return Check("packages", "; ".join(clashes), f"{advice}.", broken=bool(hidden))


def python() -> Check:
    """The interpreter's version."""
    ok = (3, 11) <= sys.version_info[:2] <= (3, 14)
    advice = "" if ok else "fedscape needs 3.11 to 3.14; make a virtual environment with one of these."
    return Check("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", advice)


def libraries() -> Check:
    """Versions of the core dependencies."""
    versions = {name: version(name) for name in NEEDED}
    absent = [name for name, value in versions.items() if not value]
    advice = f"install what is absent: pip install {' '.join(absent)}" if absent else ""
    text = ", ".join(f"{name} {value}" for name, value in versions.items() if value)
    return Check("libraries", text, advice, broken=bool(absent))


def pytorch(torch: Any) -> Check:
    """torch's build; a CUDA build without a GPU, or the reverse, wastes space or time."""
    if isinstance(torch, str):
        return Check("torch", "cannot be imported", f"{torch}. Do this: pip install --force-reinstall torch.", True)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    advice, driver = "", shutil.which("nvidia-smi")
    if torch.version.cuda and not torch.cuda.is_available():
        advice = (
            "torch cannot use the driver that is there; update it, or install a torch built for its CUDA version."
            if driver
            else "a CUDA build on a machine without GPU works, but takes several GB; the CPU build is installed from "
            "the CPU wheel index named on PyTorch's installation page (make demo TORCH_INDEX=ADDRESS)."
        )
    if not torch.version.cuda and driver:
        advice = "there is an NVIDIA driver but torch is a CPU build; install a CUDA build to use the GPU."
    return Check("torch", f"{torch.__version__} ({build} build)", advice)


def torchvision() -> Check:
    """torchvision is not used; one that does not fit torch breaks packages that import it."""
    if find_spec("torchvision") is None:
        return Check("torchvision", "not installed (not needed)")
    command = [sys.executable, "-c", "import torchvision"]
    try:
        outcome = subprocess.run(command, capture_output=True, timeout=60, check=False)
        installed = outcome.returncode == 0
    except subprocess.TimeoutExpired:
        installed = False
    advice = (
        ""
        if installed
        else "it was built for another torch and breaks packages that import it (datasets, transformers): "
        "pip uninstall torchvision; fedscape does not need it."
    )
    return Check("torchvision", version("torchvision") or "present", advice)


def gpu(torch: Any) -> Check:
    """GPUs that torch can use."""
    if isinstance(torch, str) or not torch.cuda.is_available():
        return Check("gpu", "none (not needed)")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Check("gpu", ", ".join(names))


def cores(torch: Any) -> Check:
    """Cores this process may use, and torch's threads."""
    usable = available_cores()
    threads = 0 if isinstance(torch, str) else torch.get_num_threads()
    set_by = os.environ.get("OMP_NUM_THREADS")
    text = f"{usable} usable of {os.cpu_count()}; torch threads {threads}"
    advice = ""
    if threads > usable:
        advice = f"more threads than cores slow torch down; set OMP_NUM_THREADS={usable}."
    return Check("cores", f"{text} (OMP_NUM_THREADS={set_by})" if set_by else text, advice)


def memory() -> Check:
    """Memory that is free."""
    import psutil

    facts = psutil.virtual_memory()
    advice = "" if facts.available > 2e9 else "less than 2 GB are free; close programs or use --workers 1."
    return Check("memory", f"{facts.available / 1e9:.1f} GB free of {facts.total / 1e9:.1f} GB", advice)


def disk() -> Check:
    """Space where runs would be written."""
    free = shutil.disk_usage(Path.cwd()).free
    writable = os.access(Path.cwd(), os.W_OK)
    advice = "" if free > 2e9 else "less than 2 GB are free; write runs elsewhere (--runs DIR) or keep fewer rounds."
    if not writable:
        advice = "this folder cannot be written; name another for runs (--runs DIR) and pictures (--out DIR)."
    return Check("disk", f"{free / 1e9:.1f} GB free in {Path.cwd()}", advice)


def data_folder(data: Path | None) -> Check:
    """Which datasets lie in the data folder."""
    from landscape.datasets import names

    folder = data or (Path(os.environ["FEDSCAPE_DATA"]) if os.environ.get("FEDSCAPE_DATA") else None)
    if folder is None:
        return Check("data folder", "none given: digits and blobs are built in, others come from the Hugging Face hub")
    if not folder.is_dir():
        return Check("data folder", f"{folder} is not a folder", "give --data DIR or FEDSCAPE_DATA=DIR that exists.")
    there = [path.name for path in sorted(folder.iterdir()) if path.is_dir() and any(path.rglob("*.parquet"))]
    usable = [name for name in there if name in names()]
    advice = "" if usable else f"it has no sub-folder with Parquet files of {', '.join(names())}."
    return Check("data folder", f"{folder}: {', '.join(usable) or 'nothing known'}", advice)


def cache_folder() -> Check:
    """Where decoded images are kept."""
    from landscape.results import user_folder

    folder = user_folder.cache_folder()
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    existing = next(parent for parent in [folder, *folder.parents] if parent.exists())
    advice = "" if os.access(existing, os.W_OK) else "it cannot be written; set FEDSCAPE_CACHE to a folder that can."
    return Check("cache folder", f"{folder}: {', '.join(files) or 'empty'}", advice)


def extras() -> Check:
    """Which optional parts are installed."""
    there = [name for name, package in EXTRAS.items() if find_spec(package) is not None]
    advice = "" if "data" in there else "MNIST, CIFAR-10 and others need the extra data: pip install 'fedscape[data]'."
    return Check("extras", ", ".join(there) or "none", advice)


def browser() -> Check:
    """A browser for the test of the report."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return Check("chromium", path or "not found (only the test of the report page uses it; without it, it is skipped)")


def available_cores() -> int:
    """Cores this process may use: affinity and, in a container, its quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.exists():
        limit, period = quota.read_text(encoding="ascii").split()
        if limit != "max":
            count = min(count, max(1, round(int(limit) / int(period))))
    return count


def _imported(name: str) -> Any:
    """A module, or the reason why it cannot be imported."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as reason:  # a missing library of its own is an OSError
        return " ".join(str(reason).split()) or type(reason).__name__
