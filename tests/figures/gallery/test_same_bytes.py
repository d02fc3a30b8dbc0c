"""What leaves a run has the same bytes each time: computed and read again, in fresh processes whose hashes differ."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiny
from gallery_runs import every_kind

from figures import gallery

FEW = ["accuracy-rounds", "planes-random"]
"""Figures of the fast test: curves and maps."""


MODELS = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
MODELS["FEDSCAPE_TRUST"] = "gallery_runs:normalised,adapted:build"
"""What lets a process make the models of the tests."""

REFUSED = {"ranking-table", "lines-aligned", "gws-setting", "simplex-optima", "weights-round", "robustness-table"}
"""Not drawn of these runs: the first takes users and films, the second hidden units, the next two runs of one setting,
the next weights that differ, and the last fewer runs, whose table fits a page."""


def written(runs: Path, names: list[str], seed: int) -> dict[str, str]:
    """Digests of all files that a process of this hash seed writes, by name."""
    out = runs.with_name(f"out{seed}")
    subprocess.run(
        [sys.executable, Path(__file__).with_name("everything.py"), runs, out, *names],
        env={**os.environ, **MODELS, "PYTHONHASHSEED": str(seed)},
        check=True,
    )
    files = [path for path in sorted(out.rglob("*")) if path.is_file()]
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def require_same(first: dict[str, str], second: dict[str, str]) -> None:
    assert [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)] == []


def pictures(files: dict[str, str]) -> set[str]:
    """Names of the figures that were drawn."""
    return {Path(name).stem for name in files if name.endswith(".svg")}


def timed(name: str) -> bool:
    """Whether a file shows how long local training takes, which no two measurements agree on."""
    return name.startswith(("cost-table", "report"))


def test_every_kind_of_file_has_the_same_bytes(tmp_path):
    tiny.trained(tmp_path / "runs", "method=fedlaw", "method.server_epochs=2")
    computed, read = (written(tmp_path / "runs", FEW, seed) for seed in (0, 1))
    require_same(computed, read)
    assert pictures(computed) >= set(FEW)
    assert {Path(name).suffix for name in computed} >= {".csv", ".html", ".parquet", ".pdf", ".png", ".pt", ".svg"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_figure_has_the_same_bytes(tmp_path):
    every_kind(tmp_path / "runs")
    shutil.copytree(tmp_path / "runs", tmp_path / "fresh")
    computed, read = (written(tmp_path / "runs", gallery.names(), seed) for seed in (0, 1))
    require_same(computed, read)
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "fresh").rename(tmp_path / "runs")  # the same place: some results name the folder
    again = written(tmp_path / "runs", gallery.names(), 2)
    require_same(*({name: digest for name, digest in files.items() if not timed(name)} for files in (computed, again)))
    assert pictures(computed) >= set(gallery.names()) - REFUSED
