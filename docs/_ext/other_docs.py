"""Inventories of other projects for intersphinx, written before each build, so that no build needs a network.

They have the types that signatures here name, also by the names of private modules from which some are imported.
"""

from __future__ import annotations

import zlib
from pathlib import Path

PROJECTS = {
    "python": (
        "https://docs.python.org/3/",
        {
            **{
                f"collections.abc.{name}": f"library/collections.abc.html#collections.abc.{name}"
                for name in ("Callable", "Collection", "Iterable", "Iterator", "Mapping", "Sequence")
            },
            **dict.fromkeys(("pathlib.Path", "Path"), "library/pathlib.html#pathlib.Path"),
        },
    ),
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        {
            **dict.fromkeys(("torch.Tensor", "Tensor"), "tensors.html#torch.Tensor"),
            **dict.fromkeys(
                ("torch.nn.Module", "nn.Module", "torch.nn.modules.module.Module", "nn.modules.module.Module"),
                "generated/torch.nn.Module.html#torch.nn.Module",
            ),
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        dict.fromkeys(("numpy.ndarray", "np.ndarray"), "reference/generated/numpy.ndarray.html#numpy.ndarray"),
    ),
    "xarray": (
        "https://docs.xarray.dev/en/stable/",
        dict.fromkeys(
            ("xarray.Dataset", "xr.Dataset", "xarray.core.dataset.Dataset"),
            "generated/xarray.Dataset.html#xarray.Dataset",
        ),
    ),
}
"""Project -> its address, and the page of each name below it."""


def written(folder: Path) -> dict[str, tuple[str, str]]:
    """The value of `intersphinx_mapping`: each project with its address and its inventory in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (address, pages) in PROJECTS.items():
        path = folder / f"{project}.inv"
        path.write_bytes(inventory(project, pages))
        mapping[project] = (address, str(path))
    return mapping


def inventory(project: str, pages: dict[str, str]) -> bytes:
    """Sphinx's format of inventories, version 2."""
    lines = "".join(f"{name} py:class 1 {page} -\n" for name, page in pages.items())
    head = (
        f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    return head.encode() + zlib.compress(lines.encode())
