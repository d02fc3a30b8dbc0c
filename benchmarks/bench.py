"""What docs/performance.md shows, measured on this machine: `make bench`.

    python -m benchmarks.bench NAME [--load 2] [--only landscape hessian]

Runs the benchmarks below one after the other, in about half an hour, then writes benchmarks/machines/NAME-STATE.json
and the page. With --load, so many other processes multiply matrices meanwhile: the state is "loaded". Other programs
are compared where they are installed: loss-landscapes, PyHessian, curvlinops, hessian-eigenthings, a C++ compiler.
Benchmarks of other pages (scale, diagnosis, methods, noise) have commands there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SETTINGS = {
    "landscape": "--models cnn_fmnist cnn_cifar10 resnet8 resnet20 mlp transformer --points 6 --samples 1000 "
    "--rounds 3 --only ours expert compiled classic loss-landscapes --skip-memory",
    "ablation": "--points 4 --rounds 3",
    "hessian": "",
    "training": "--cases cnn_fmnist cnn_cifar10 mlp_digits --rounds 3",
    "start": "",
    "explore": "--times 3",
}
"""Benchmarks in the order that they run in, and their settings."""

BUSY = "import torch; torch.set_num_threads(1); left = torch.randn(700, 700)\nwhile True: left @ left"


def main() -> None:
    """Run them all, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="short name of this machine, such as epyc-zen4")
    parser.add_argument("--load", type=int, default=0, help="other processes that are busy meanwhile")
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    chosen = parser.parse_args()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", chosen.name):
        parser.error(f"name is {chosen.name!r}; give letters, digits, '.', '_' and '-', as it names a file")
    if chosen.load < 0:
        parser.error(f"load is {chosen.load}; give 0 or more processes")
    ended: dict[bool, list[str]] = {True: [], False: []}
    with busy(chosen.load):
        for name in chosen.only:
            print(f"== {name}", flush=True)
            (ROOT / "benchmarks" / "results" / f"{name}.json").unlink(missing_ok=True)
            command = [sys.executable, "-m", f"benchmarks.{name}", *SETTINGS[name].split()]
            ended[not subprocess.run(command, cwd=ROOT, check=False).returncode].append(name)
    if ended[True]:
        about = ["--machine", chosen.name, "--state", "loaded" if chosen.load else "quiet", "--only", *ended[True]]
        subprocess.run([sys.executable, "-m", "benchmarks.write_tables", *about], cwd=ROOT, check=True)
    if ended[False]:
        sys.exit(f"failed: {', '.join(ended[False])}; the tables have no new results of them")


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that multiply matrices."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()


if __name__ == "__main__":
    main()
