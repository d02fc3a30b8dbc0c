"""Pictures of runs in a paper's own setting: from the runs to small files of numbers, from these to pictures.

    python docs/_ext/showcase.py                       draws every picture from figures/pictures/stored
    python docs/_ext/showcase.py --runs RUNS fmnist    computes the numbers of a setting before, from a campaign's runs
    python -m benchmarks.adapters train decoder        computes those of `product-gap`

The other runs are those of the items `ima-table1-fmnist-shards2` (fmnist) and `fedlaw-table3-cifar10-dir01` (cifar10)
of `fedscape reproduce`: curves show every seed that both methods have to the last round, landscapes seed 0. Numbers are
those that `fedscape figures draw` writes, each in one file; `fedscape figures draw NAME FILE.nc` draws them in
any look.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from matplotlib.figure import Figure  # noqa: E402 - the path comes first

from figures.axes.relief import spaced_levels  # noqa: E402
from figures.films.lit_surface import lit_surface, scale_bar  # noqa: E402
from figures.gallery._stack import panels  # noqa: E402
from figures.looks import style  # noqa: E402
from figures.pictures.draw_files import draw  # noqa: E402
from landscape.results import netcdf_files  # noqa: E402

NUMBERS, IMAGES = ROOT / "figures" / "pictures" / "stored", ROOT / "docs" / "images" / "showcase"


@dataclass(frozen=True)
class Shown:
    """A picture: its figure, the setting and methods of its runs, whether it shows all seeds, its options."""

    figure: str
    methods: Sequence[str]
    setting: str = "fmnist"
    all_seeds: bool = False
    options: dict[str, Any] = field(default_factory=dict)


RUNS = {"fmnist": "*-fashion-mnist-shards-s*", "cifar10": "*-cifar10-dirichlet-s*"}
"""Folders of a setting's runs."""

IMA, LAW = ("fedavg", "ima"), ("fedavg", "fedlaw")

PICTURES = {
    "planes-clients": Shown("planes-clients", ("fedavg",), options={"rounds": [25, 150, 299]}),
    "lines-globals": Shown("lines-globals", ("fedavg",)),
    "lines-fma-ima": Shown("lines-fma-ima", IMA),
    "planes-cifar10": Shown("planes-clients", ("fedavg",), "cifar10", options={"rounds": [0, 20, 59]}),
    "weights-cifar10": Shown("weights-learned", ("fedlaw",), "cifar10", all_seeds=True),
    "product-gap": Shown("product-gap", ("fedlora",), "adapters", all_seeds=True),
    "coherence-cifar10": Shown("coherence-rounds", LAW, "cifar10", all_seeds=True),
}


def compute(folder: Path, setting: str) -> None:
    """Numbers of the pictures of a setting from the runs in a folder."""
    from drift.runs.run import open as open_run

    runs = [open_run(path.parent) for path in sorted(folder.glob(f"{RUNS[setting]}/run.json"))]
    whole = [run for run in runs if run.committed == run.experiment.rounds]
    methods = {seed: {run.method.name() for run in whole if run.seed == seed} for seed in {run.seed for run in whole}}
    for name, shown in PICTURES.items():
        if shown.setting != setting:
            continue
        seeds = [seed for seed, both in methods.items() if both >= set(shown.methods)] if shown.all_seeds else [0]
        own = [run for run in whole if run.method.name() in shown.methods and run.seed in seeds]
        with TemporaryDirectory() as scratch:
            paths = draw(shown.figure, own, scratch, formats=("png",), **shown.options)
            (numbers,) = (path for path in paths if path.suffix == ".nc")
            shutil.copyfile(numbers, NUMBERS / f"{name}.nc")


def surface(path: Path) -> None:
    """The first plane of `planes-clients` as a lit surface, 1,920 pixels wide."""
    plane = panels(netcdf_files.load(NUMBERS / "planes-clients.nc"))[0]
    with style.context():
        figure = Figure(figsize=(7.68, 5.0))
        ax = figure.add_axes((0, 0, 0.92, 1), projection="3d")
        levels = spaced_levels([plane.loss], log=True)
        lit_surface(plane, ax=ax, levels=levels, ground="dark", fine=320)
        scale_bar(figure, plane.loss, levels, "dark", (0.9, 0.25, 0.012, 0.5))
        figure.set_facecolor(ax.get_facecolor())
        figure.savefig(path, dpi=250, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute if told to, then draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", nargs=2, metavar=("RUNS", "SETTING"), help="folder of a campaign's runs; " + " or ".join(RUNS)
    )
    options = parser.parse_args(arguments)
    if options.runs is not None:
        folder, setting = options.runs
        if setting not in RUNS:
            parser.error(f"there is no setting {setting!r}; give {' or '.join(RUNS)}.")
        compute(Path(folder), setting)
    for name, shown in PICTURES.items():
        with TemporaryDirectory() as scratch:
            picture, *_ = draw(shown.figure, NUMBERS / f"{name}.nc", scratch, formats=("png",))
            (IMAGES / f"{name}.png").write_bytes(picture.read_bytes())
    surface(IMAGES.parent / "surface.png")


if __name__ == "__main__":
    main()
