"""Every picture of README and docs from one set of runs, and a check that says when they are stale.

    make pictures                                     (python docs/_ext/remake.py)
    python docs/_ext/remake.py --out out/pictures     again, from runs that are there

trains the runs of `_ext/plan.py`, draws every figure of the gallery from them or from recorded runs, and writes
docs/images/gallery/NAME.webp and docs/images/pictures.json. That record holds, per picture, what is seen in
words, and a digest of its runs, of its options and of its sources; `stale` compares it with what stands here.
Sources are the figure's file and the files that it imports itself, without docstrings. A change further down, which
would touch nearly every picture, is not seen: draw again after one that changes numbers or looks.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from PIL import Image  # noqa: E402 - after the path is set

from _ext.facts import IMAGES, NOT_DRAWN, RECORD  # noqa: E402
from _ext.plan import GROUPS, OPTIONS, RECORDED, planned, recorded  # noqa: E402
from _ext.web_pictures import web_picture  # noqa: E402
from drift.config.experiment import Experiment  # noqa: E402
from figures import gallery  # noqa: E402

MEASURED = (
    *("findings-averaging", "findings-fedeve", "findings-start", "findings-loss", "findings-exact"),
    *("explore-plane", "explore-samples", "explore-drift"),
    *("report-landscape", "surface"),
)
"""Pictures of docs/findings.md (docs/_ext/evidence.py), and of
the explorer and the report (docs/_ext/page_pictures.py); those in showcase/ and the surface are made by
docs/_ext/showcase.py."""

DATA = ROOT / "docs" / "results" / "data"


@dataclass(frozen=True)
class Picture:
    """What a figure is drawn from: experiments of its runs, or files of recorded ones; options of its data()."""

    experiments: tuple[Experiment, ...]
    files: tuple[Path, ...]
    options: Mapping[str, Any]


def plan() -> dict[str, Picture]:
    """Of every figure that the pages show, what it is drawn from."""
    known = planned()
    drawn = [name for name in gallery.names() if name not in NOT_DRAWN]
    return {
        name: Picture(
            tuple(one for group in GROUPS.get(name, ("methods",)) for one in known[group] if name not in RECORDED),
            tuple(path for item in RECORDED.get(name, ()) for path in recorded(DATA)[item]),
            OPTIONS.get(name, {}),
        )
        for name in drawn
    }


def digests() -> dict[str, str]:
    """Of every picture, by its file: a digest of its runs, options and sources as they stand here."""
    found = {}
    for name, picture in plan().items():
        about = {
            "runs": sorted(one.slug for one in picture.experiments),
            "files": {path.name: _digest(path.read_bytes()) for path in picture.files},
            "options": dict(picture.options),
            "sources": {str(path.relative_to(ROOT)): _digest(_code(path)) for path in sources(name)},
        }
        found[f"{name}.webp"] = _digest(json.dumps(about, sort_keys=True).encode())
    return found


def _code(path: Path) -> bytes:
    """Lines of a module without docstrings, which no picture shows."""
    source = path.read_text(encoding="utf-8")
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    spans = [
        (node.lineno, node.end_lineno)
        for node in texts
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    lines = enumerate(source.splitlines(), start=1)
    return "\n".join(line for at, line in lines if not any(low <= at <= (high or low) for low, high in spans)).encode()


def sources(name: str) -> list[Path]:
    """The file of a figure, and what it imports by name: how it is drawn, and how its numbers are computed."""
    path = ROOT / "figures" / "gallery" / f"{name.replace('-', '_')}.py"
    modules = {
        module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for module in (node.module, *(f"{node.module}.{one.name}" for one in node.names))
    } - {"drift.runs.run"}  # how runs are stored: no picture changes with it
    files = (ROOT / f"{module.replace('.', '/')}.py" for module in modules)
    return sorted({path, *(file for file in files if file.exists())})


def stale() -> list[str]:
    """Pictures that are not those of the settings, options and sources here, or are absent, or are of no figure."""
    stated = json.loads(RECORD.read_text(encoding="utf-8"))["pictures"] if RECORD.exists() else {}
    now, there = digests(), {path.name for path in IMAGES.glob("*.webp")}
    new = now.keys() - {*stated, *there}  # figures that were never drawn; the page says so
    return sorted(
        name for name in {*now, *there} - new if name not in now or stated.get(name) != now[name] or name not in there
    )


def make(out: Path, workers: int) -> list[str]:
    """Train, draw and write every picture and the record; figures that could not be drawn, with the reason."""
    from drift.simulation.compare import train_all
    from figures.commands._draw_files import draw_all
    from figures.selection.open_runs import open_run

    runs, pictures = out / "runs", plan()
    train_all([one for picture in pictures.values() for one in picture.experiments], runs=runs, workers=workers)
    jobs = {
        name: (
            [open_run(path) for path in (*(runs / one.slug for one in picture.experiments), *picture.files)],
            picture.options,
        )
        for name, picture in pictures.items()
    }
    outcomes = draw_all(jobs, out / "figures", workers=workers)
    left = [f"{name}: {reason}" for name, reason in outcomes.items() if isinstance(reason, str)]
    if not left:
        write(out / "figures")
    return left


def write(figures: Path) -> None:
    """Pictures of the pages and their record, from a folder of drawn figures; other pictures of figures are removed."""
    from drift.simulation.description import versions
    from landscape.sweep.processor import processor

    shutil.rmtree(IMAGES, ignore_errors=True)
    IMAGES.mkdir(parents=True)
    seen = {}
    for name in plan():
        seen[name] = (figures / f"{name}.alt.txt").read_text(encoding="utf-8").strip()
        with Image.open(figures / f"{name}.png") as picture:
            (IMAGES / f"{name}.webp").write_bytes(web_picture(picture))
    made = {"processor": processor()["name"], "versions": versions()}
    about = {"made": made, "pictures": digests(), "seen": seen}
    RECORD.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "pictures", help="folder of the runs and figures")
    parser.add_argument("--workers", type=int, default=2, help="processes that work side by side, one core each")
    parser.add_argument(
        "--check",
        action="store_true",
        help="only name the pictures whose runs, options, figure or its own imports changed",
    )
    given = parser.parse_args()
    if given.check:
        sys.stdout.write("".join(f"{name}\n" for name in stale()))
        return 2 if stale() else 0
    left = make(given.out, given.workers)
    sys.stdout.write(
        "".join(f"not drawn, so nothing is written: {one}\n" for one in left) or f"{len(plan())} pictures\n"
    )
    return 2 if left else 0


if __name__ == "__main__":
    sys.exit(main())
