"""How fast `fedscape explore` answers in a real browser, and how much memory its server takes.

    python -m benchmarks.explore [--runs FOLDER] [--large] [--times 5]

Trains small runs into FOLDER once (ten of 300 rounds; the FMNIST CNN of the IMA paper; one of the demo's), starts the
explorer and a headless Chromium, and measures what a person waits for, as 50th and 90th percentiles: ready, from the
command to its address; first view, from the request to the first landscape on the page; next round, to its rough
landscape and to the exact one (15 x 15 models, 1,000 samples), one that was computed ahead, and one that is remembered;
a clicked point to its exact value; a weight to its loss; and the stage of a folder that was shown before, from the
command on. Beside each stands the time of processors that all processes of the explorer took meanwhile, and beside the
landscape of the CNN the ratio to that of one thread that evaluates its models by `landscape.evaluate`: both say more
than the clock where other programs run. With --large also 100 runs of 1,000 rounds, of which none has a landscape: to
the curves. Results go to benchmarks/results/explore.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from drift.analyses.landscapes.models_plane import task_with_classes
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.selected_samples import selected_samples
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from landscape.sweep.evaluate import evaluate
from landscape.sweep.processor import processor, processor_line

RESULTS = Path(__file__).resolve().parent / "results" / "explore.json"
ARGUMENTS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
TARGETS = {
    "ready": 3000,
    "first view": 1500,
    "next round, rough": 500,
    "next round, computed ahead": 500,
    "remembered round": 100,
    "point": 100,
}
"""Milliseconds that the project aims at with the demo's runs, on two cores."""

POINTS = 15
"""Models per axis of a landscape."""

VIEW = "document.getElementById('stage')?.view"
DRAWN = f"() => {VIEW}?.pictures.some((picture) => picture.shown?.frame)"
IDLE = f"() => {VIEW}?.land.ready({VIEW}.state.round) && [...{VIEW}.asks.entries.values()].every((one) => !one.pending)"
AHEAD = f"""() => {{ const view = {VIEW}, {{ rounds, state, land }} = view;
    return land.ready(state.round) && land.ready(rounds[rounds.indexOf(state.round) + 1]); }}"""
LISTED = f"() => {VIEW}?.runs.length"
WATCH = f"""() => {{
    const until = (test) => new Promise((done) => {{
        const look = () => (test() ? done(performance.now()) : requestAnimationFrame(look));
        look();
    }});
    const landscapes = () => {VIEW}.shown.map((run) => {VIEW}.land.frame(run));
    window.turn = async (step) => {{
        const begun = performance.now();
        {VIEW}.player.step(step);
        const rough = await until(() => landscapes().every((one) => one.frame && !one.stale));
        const exact = await until(() => landscapes().every((one) => one.frame && !one.stale && !one.pending));
        return [rough - begun, exact - begun];
    }};
    window.waits = async (changes, kind) => {{
        const begun = performance.now();
        {VIEW}.set(changes);
        await new Promise(requestAnimationFrame);
        const open = () => [...{VIEW}.asks.entries.values()].some((one) => one.kind === kind && one.pending);
        return await until(() => !open()) - begun;
    }};
}}"""


def runs_of(folder: Path) -> dict[str, Path]:
    """Folders of runs by purpose, trained where they are absent."""
    many, images, demo = folder / "many", folder / "fmnist", folder / "demo"
    tiny: dict[str, Any] = {
        "rounds": 300,
        "task": {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 200}},
        "clients": {"number": 10, "per_round": 5, "partition": {"name": "dirichlet", "concentration": 1.0}},
        "local": {"lr": 0.05, "epochs": 1, "batch": 16},
        "keep": {"clients": "last 3", "globals": "last 10"},
    }
    for seed in range(10):
        simulate(read(validated({**tiny, "seed": seed})), runs=many)
    simulate("ima-fmnist-shards2", "rounds=14", "method=fedavg", "local.epochs=1", "keep.clients=all", runs=images)
    simulate("demo", "rounds=14", "method=fedavg", runs=demo)
    return {"many": many, "fmnist": images, "demo": demo}


def large(folder: Path, runs: int = 100) -> Path:
    """A folder with 100 runs of 1,000 rounds: one is trained, the others are links to its files."""
    out = folder / "large"
    tiny = {
        "rounds": 1000,
        "task": {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 60}},
        "clients": {"number": 10, "per_round": 5, "partition": {"name": "iid"}},
        "keep": {"clients": "none", "globals": "none"},
    }
    run = simulate(read(validated(tiny)), runs=folder / "long")
    for number in range(runs):
        if not (out / f"run-{number:03d}").exists():
            shutil.copytree(run.folder, out / f"run-{number:03d}", copy_function=os.link)
    return out


Waits = list[tuple[float, float]]
"""Milliseconds by the clock, and of processors, of each thing that was waited for."""


@contextmanager
def explorer(folder: Path) -> Iterator[tuple[str, psutil.Process, float]]:
    """A server, its address, and the milliseconds until it wrote it."""
    command = [sys.executable, "-m", "figures.cli", "explore", str(folder), "--no-browser"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    begun = time.perf_counter()
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()  # type: ignore[union-attr]
        yield address, psutil.Process(server.pid), 1e3 * (time.perf_counter() - begun)
    finally:
        server.terminate()
        server.wait(30)


def spent(server: psutil.Process) -> float:
    """Milliseconds of processors that the explorer's processes have taken, ended ones too."""
    total = 0.0
    for process in [server, *server.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return 1e3 * total


def timed(server: psutil.Process, act: Callable[[], float]) -> tuple[float, float]:
    """The milliseconds that an act returns, and those of processors meanwhile."""
    before = spent(server)
    return act(), spent(server) - before


def opened(browser: Any, address: str, condition: str = DRAWN, hash_: str = "") -> tuple[Any, float]:
    """A page on which a condition holds, and the milliseconds from its request to that."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(600_000)
    begun = time.perf_counter()
    page.goto(address + hash_)
    page.wait_for_function(condition)
    wait = 1e3 * (time.perf_counter() - begun)
    page.evaluate(WATCH)
    return page, wait


def first_views(browser: Any, address: str, server: psutil.Process, times: int, condition: str = DRAWN) -> Waits:
    """Waits for the first view of pages that are opened one after the other."""

    def view() -> float:
        page, wait = opened(browser, address, condition)
        page.close()
        return wait

    return [timed(server, view) for _ in range(times)]


def rounds(browser: Any, address: str, server: psutil.Process, times: int) -> dict[str, Waits]:
    """Waits for the next round once it was computed ahead, for rounds that were not, and for these once more."""
    page, _ = opened(browser, address, hash_="#round=1")
    rough: list[float] = []

    def step(by: int) -> float:
        first, exact = page.evaluate(f"turn({by})")
        rough.append(first)
        return float(exact)

    def ahead() -> tuple[float, float]:
        page.wait_for_function(AHEAD)
        return timed(server, lambda: step(1))

    first = ahead()
    rough.clear()
    new = [timed(server, lambda: step(2)) for _ in range(times)]
    firsts = [(wait, cpu) for wait, (_, cpu) in zip(rough, new, strict=True)]
    again = [timed(server, lambda: step(-2)) for _ in range(times)]
    values = {"next round, rough": firsts, "next round": new, "next round, computed ahead": [first, ahead()]}
    page.close()
    return {**values, "remembered round": again}


def answers(browser: Any, address: str, server: psutil.Process, times: int) -> dict[str, Waits]:
    """Waits for the exact value of a point, and for the loss at other weights."""
    page, _ = opened(browser, address, hash_="#round=3")
    page.wait_for_function(IDLE)
    mix = f"""(share) => {{ const at = {VIEW}.land.frame({VIEW}.looked);
        const weights = Object.fromEntries(at.frame.cohort.map(({{ id }}, i) => [id, i ? 1 : share]));
        return waits({{ mix: {{ run: {VIEW}.state.look, round: at.round, gamma: 1, weights }} }}, "weights"); }}"""
    places = np.linspace(-0.1, 0.1, 4 * times)
    asks = {
        "point": [f"waits({{ point: [{place}, 0.05] }}, 'point')" for place in places],
        "weights": [f"({mix})({1.5 + place})" for place in places],
    }
    waits = {name: [timed(server, partial(page.evaluate, ask)) for ask in all_asks] for name, all_asks in asks.items()}
    page.close()
    return {name: values[2:] for name, values in waits.items()}


def processor_seconds(run: Run, index: int) -> float:
    """Seconds of one thread that evaluates the models of a landscape by `landscape.evaluate`."""
    _, _, sweep = client_sweep(run, index, None, points=POINTS, margin=0.3, box="symmetric")
    samples = selected_samples(run, index, "test", 1000)
    rows = torch.from_numpy(np.concatenate([sweep.mark_coefficients, sweep.coefficients]))
    task = task_with_classes(run, samples)
    begun = time.process_time()
    evaluate(task, sweep.basis, rows, split=samples)
    return time.process_time() - begun


def resident(process: psutil.Process) -> dict[str, float]:
    """MiB of the server, and of its processes that compute; pages that several share are counted once, where known."""

    def size(one: psutil.Process) -> float:
        memory = one.memory_full_info()
        return float(getattr(memory, "pss", memory.rss))

    children = sum(size(child) for child in process.children(recursive=True))
    return {"server": size(process) / 2**20, "computing": children / 2**20}


def percentiles(waits: Waits) -> dict[str, float]:
    """50th and 90th percentile of the clock, the median of the processors, and the number of values."""
    clock, cpu = (list(column) for column in zip(*waits, strict=True))
    p50, p90 = statistics.median(clock), float(np.percentile(clock, 90))
    return {"p50": p50, "p90": p90, "cpu": statistics.median(cpu), "n": len(waits)}


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("out/benchmark-explore"))
    parser.add_argument("--large", action="store_true", help="also 100 runs of 1,000 rounds")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--browser", default="chromium")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folders, times = runs_of(options.runs), options.times
    for name in ("fmnist", "demo"):
        for results in folders[name].glob("*/results"):
            shutil.rmtree(results)
    measured: dict[str, Waits] = {}
    memory: dict[str, dict[str, float]] = {}
    from playwright.sync_api import sync_playwright

    load = os.getloadavg()[0]
    with sync_playwright() as started:
        program = shutil.which(options.browser)
        if program is None:
            parser.error(f"there is no {options.browser} here; give the name of a Chromium, --browser NAME.")
        browser = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        with explorer(folders["many"]) as (address, server, ready):
            measured["ready"] = [(ready, spent(server))]
            measured["first view, a server that has just started"] = first_views(browser, address, server, 1)
            measured["first view"] = first_views(browser, address, server, 4 * times)
            memory["ten runs of 300 rounds"] = resident(server)
        with explorer(folders["fmnist"]) as (address, server, ready):
            measured["ready"].append((ready, spent(server)))
            waited = rounds(browser, address, server, times) | answers(browser, address, server, times)
            measured |= {f"{name}, FMNIST": waits for name, waits in waited.items()}
            memory["FMNIST"] = resident(server)
        with explorer(folders["demo"]) as (address, server, ready):
            measured["ready"].append((ready, spent(server)))
            measured |= rounds(browser, address, server, times) | answers(browser, address, server, times)
        with explorer(folders["demo"]) as (address, server, ready):
            ((wait, cpu),) = first_views(browser, address, server, 1, LISTED)
            measured["stage after the command, of a folder that was shown before"] = [(ready + wait, cpu)]
        if options.large:
            with explorer(large(options.runs)) as (address, server, _):
                waits = first_views(browser, address, server, 1 + times, LISTED)
                measured["first view, 100 runs of 1,000 rounds"] = waits[1:]
                memory["100 runs of 1,000 rounds"] = resident(server)
        browser.close()
    (run,) = [Run(path.parent) for path in folders["fmnist"].glob("*/run.json")]
    seconds = processor_seconds(run, 3)
    table: dict[str, dict[str, Any]] = {
        name: {**percentiles(values), "aim": TARGETS.get(name)} for name, values in measured.items()
    }
    table["next round, FMNIST"]["ratio"] = table["next round, FMNIST"]["p50"] / 1e3 / seconds
    for name, row in table.items():
        aim = f" (aim {row['aim']})" if row["aim"] else ""
        beside = f", {row['ratio']:.2f} x one thread's evaluation" if "ratio" in row else ""
        print(f"{name}: {row['p50']:.0f} ms, 90 % {row['p90']:.0f}{aim}; processors {row['cpu']:.0f} ms{beside}")
    for name, sizes in memory.items():
        print(f"memory, {name}: server {sizes['server']:.0f} MiB, computing {sizes['computing']:.0f} MiB")
    machine = {"processor": processor_line(), "load": load, "torch": torch.__version__, "one_thread_seconds": seconds}
    print(f"{machine['processor']}, load {load:.1f} before; one thread evaluates a landscape in {seconds:.1f} s")
    RESULTS.parent.mkdir(exist_ok=True)
    content = {"processor": processor(), "machine": machine, "milliseconds": table, "memory": memory}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
