"""How long a person waits for a start: `import fedscape`, `fedscape --help`, a first round, and the demo.

    python -m benchmarks.start [--times 7] [--no-demo]

Every command is a new process. Seconds are those of the clock, and of all processors; medians, the commands in turns.
The demo is run once. Results go to benchmarks/results/start.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks.training import TINY
from landscape.sweep.processor import processor

RESULTS = Path(__file__).resolve().parent / "results" / "start.json"

COMMANDS = {
    "python, alone": ["-c", "pass"],
    "`import fedscape`": ["-c", "import fedscape"],
    "`fedscape --help`": ["-m", "fedscape", "--help"],
    "a first round of a tiny model": ["-c", TINY, "FOLDER"],
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--no-demo", action="store_true")
    chosen = parser.parse_args()
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(chosen.times):
        for name, command in COMMANDS.items():
            spent[name].append(seconds_of(command))
    if not chosen.no_demo:
        spent["`fedscape demo`"] = [seconds_of(["-m", "fedscape", "demo", "--out", "FOLDER"])]
    rows = []
    for name, times in spent.items():
        wall, cpu = (statistics.median(values) for values in zip(*times, strict=True))
        rows.append({"work": name, "seconds": wall, "cpu": cpu})
        print(f"{name:32}{wall:8.3f} s {cpu:8.3f} s of processors", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"processor": processor(), "rows": rows}, indent=1) + "\n")


def seconds_of(command: list[str]) -> tuple[float, float]:
    """Of the clock and of processors, of a process in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        before, begun = _used(), time.perf_counter()
        words = [sys.executable, *(folder if word == "FOLDER" else word for word in command)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        return time.perf_counter() - begun, _used() - before


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
