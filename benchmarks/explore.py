"""How fast `fedscape explore` answers in a real browser, and how much memory its server takes.

    python -m benchmarks.explore [--runs FOLDER] [--large] [--times 5]
    python -m benchmarks.explore --first-view [--browser chromium-headless-shell]

Trains small runs into FOLDER once (ten of 300 rounds; the FMNIST CNN of the IMA paper; digits), starts the explorer and
a headless Chromium, and measures what a person waits for, from the key or the slider to the picture or number on the
page, as 50th and 90th percentiles: first view, in a browser that knows nothing of the explorer (also from a server that
has just started) and in one that opened it twice before and was started again; a round to its first coarse plane, to
21 x 21 points that are interpolated between exact ones, and to all of them exact (1,000 samples, three clients, not
stored); planes that are in memory, and planes that are stored, in a fresh server; a slider to its number (digits;
FMNIST, 2,000 samples). Beside planes stands the ratio to the processor's seconds of one thread that evaluates their
points by `landscape.evaluate`, which says more than seconds where other programs run. With --large also 100 runs of
1,000 rounds. Results go to benchmarks/results/explore.json.

Where there is no GPU, Chromium's own window is drawn by an emulated one, which takes a quarter to a third of the
processor until a page is loaded. chromium-headless-shell is the same browser without a window.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from drift.analyses.landscapes.models_plane import plane_sweep, task_with_classes
from drift.analyses.selected_samples import selected_samples
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from landscape.sweep.evaluate import evaluate
from landscape.sweep.precision import Precision
from landscape.sweep.processor import processor_line

RESULTS = Path(__file__).resolve().parent / "results" / "explore.json"
ARGUMENTS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
TARGETS = {
    "first view": 2000,
    "first coarse plane": 700,
    "21 x 21 plane": 6000,
    "plane in memory": 150,
    "stored plane": 150,
    "slider, digits": 100,
    "slider, FMNIST": 1000,
}
"""Milliseconds that the project aims at, on two cores."""

PRECISIONS: dict[str, Precision] = {
    "first coarse plane": "fast",
    "21 x 21 plane": "exact",
    "21 x 21 plane, exact": "exact",
}
"""What the points of planes are computed in; the others of 21 x 21 are interpolated at first."""

WATCH = """() => {
    window.within = root => [...root.querySelectorAll('*')].flatMap(part => [part,
        ...(part.shadowRoot ? within(part.shadowRoot) : [])]);
    window.drawing = label => within(document).find(part => part.classList.contains('js-plotly-plot')
        && part.getAttribute('aria-label').includes(label));
    window.aggregate = () => within(document).filter(part => part.matches('p.number')).at(-1)?.textContent;
    window.slider = name => within(document).find(part => part.matches('input[type=range]')
        && part.getAttribute('aria-label') === name);
    window.until = (test, soon = requestAnimationFrame) => new Promise(done => {
        const look = () => { const value = test(); value ? done(performance.now()) : soon(look); };
        look();
    });
    window.later = look => setTimeout(look, 50); // looking at the whole page in every frame takes a part of a core
    window.planes = () => {
        const plot = drawing('on the plane'), before = Number(plot.dataset.drawn);
        let begun;
        addEventListener('keydown', () => { begun = performance.now(); }, { capture: true, once: true });
        window.seen = (async () => {
            const first = await until(() => Number(plot.dataset.drawn) > before);
            const whole = await until(() => Number(plot.dataset.drawn) > before && plot._fullData[0].x.length >= 21);
            const exact = await until(() => within(document).some(part => part.matches('p')
                && /shown: 21 x 21 points exact/.test(part.textContent)), later);
            return [first - begun, whole - begun, exact - begun];
        })();
    };
    window.move = async (name, value) => {
        const input = slider(name), before = aggregate(), begun = performance.now();
        input.value = value;
        input.dispatchEvent(new Event('input', { bubbles: true }));
        const seen = await until(() => aggregate() !== before);
        return seen - begun;
    };
}"""

EXACT = """() => within(document).some(part => part.matches('p')
    && /shown: 21 x 21 points exact/.test(part.textContent))"""


def runs_of(folder: Path) -> dict[str, Path]:
    """Folders of runs by purpose, trained where they are absent."""
    many, images, digits = folder / "many", folder / "fmnist", folder / "digits"
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
    simulate("digits-shards2", "rounds=6", "method=fedavg", "keep.clients=all", runs=digits)
    return {"many": many, "fmnist": images, "digits": digits}


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


@contextmanager
def explorer(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A server and its address."""
    command = [sys.executable, "-m", "figures.cli", "explore", str(folder), "--no-browser"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip(), psutil.Process(server.pid)  # type: ignore[union-attr]
    finally:
        server.terminate()
        server.wait(30)


def opened(browser: Any, address: str, query: str) -> Any:
    """A page of the explorer at a selection, ready to be measured."""
    page = browser.new_page(viewport={"width": 1300, "height": 950})
    page.set_default_timeout(600_000)
    page.goto(f"{address}&{query}")
    page.wait_for_selector("html[data-explorer] .view", state="attached")
    page.evaluate(WATCH)
    return page


def first_view(browser: Any, address: str) -> float:
    """Milliseconds from the request to curves on a new page; each page of a browser, not of a context, has no cache."""
    page = browser.new_page()
    page.set_viewport_size({"width": 1300, "height": 950})
    page.set_default_timeout(600_000)
    begun = time.perf_counter()
    page.goto(f"{address}&view=runs")
    page.wait_for_selector("html[data-explorer] .view", state="attached")
    page.wait_for_selector(".js-plotly-plot", state="attached")
    wait = 1e3 * (time.perf_counter() - begun)
    page.close()
    return wait


def later_views(start: Any, address: str, times: int) -> list[float]:
    """Milliseconds of the first pages of browsers that are started with the profile of one that has had two pages."""
    waits = []
    with tempfile.TemporaryDirectory() as profile:
        for _ in range(2 + times):
            context = start(profile)
            waits.append(first_view(context, address))
            context.close()
    return waits[2:]


def planes(browser: Any, address: str, start: int, times: int, key: str) -> list[list[float]]:
    """(first picture, 21 x 21 points interpolated, all exact) in milliseconds, for a round after the other."""
    page = opened(browser, address, f"view=plane&round={start}")
    page.wait_for_function(EXACT)
    page.wait_for_timeout(2000)  # minimum and storing
    waits = []
    for _ in range(times):
        page.evaluate("planes()")
        page.keyboard.press(key)
        waits.append(page.evaluate("() => seen"))
        page.wait_for_timeout(1500)
    page.close()
    return waits


def sliders(browser: Any, address: str, start: int, times: int) -> list[float]:
    """Milliseconds from the move of a slider to the loss at these weights."""
    page = opened(browser, address, f"view=weights&round={start}")
    page.wait_for_function("() => drawing('Loss over the weights')?._fullData && aggregate()")
    page.wait_for_timeout(2000)
    name = page.evaluate("""() => slider('gamma').closest('.sliders').querySelector('input').ariaLabel""")
    waits = []
    for place in range(4 * times):
        waits.append(page.evaluate(f"move('{name}', {0.15 + 0.8 * (place % 7) / 7:.3f})"))
        page.wait_for_timeout(100)
    page.close()
    return waits[2:]


def processor_seconds(run: Run, index: int, precision: Precision) -> float:
    """Seconds of one thread that evaluates the points of a 21 x 21 plane by `landscape.evaluate`, and its marks."""
    names = [f"client {client}" for client in sorted(run.round(index).ids.tolist())[:3]]
    sweep = plane_sweep(run, index, names, points=21, margin=0.3)
    samples = selected_samples(run, index, "test", 1000)
    rows = torch.from_numpy(np.concatenate([sweep.mark_coefficients, sweep.coefficients]))
    task = task_with_classes(run, samples)
    begun = time.process_time()
    evaluate(task, sweep.basis, rows, split=samples, precision=precision)
    return time.process_time() - begun


def resident(process: psutil.Process) -> dict[str, float]:
    """MiB of the server, and of its processes that compute."""
    children = sum(child.memory_info().rss for child in process.children(recursive=True))
    return {"server": process.memory_info().rss / 2**20, "computing": children / 2**20}


def percentiles(values: list[float]) -> dict[str, float]:
    """50th and 90th percentile and number of values."""
    return {"p50": statistics.median(values), "p90": float(np.percentile(values, 90)), "n": len(values)}


def say(
    measured: dict[str, list[float]], memory: dict[str, dict[str, float]], ratios: dict[str, float] | None = None
) -> dict[str, dict[str, Any]]:
    """Print and return percentiles, aims and ratios of what was measured."""
    table: dict[str, dict[str, Any]] = {
        name: {**percentiles(values), "aim": TARGETS.get(name)} for name, values in measured.items()
    }
    for name, ratio in (ratios or {}).items():
        table[name]["ratio"] = ratio
    for name, row in table.items():
        aim = f" (aim {row['aim']})" if row["aim"] else ""
        beside = (
            f", {row['ratio']:.2f} x one thread's {PRECISIONS[name]} evaluation of 21 x 21" if "ratio" in row else ""
        )
        print(f"{name}: {row['p50']:.0f} ms, 90 % {row['p90']:.0f}{aim}{beside}")
    for name, sizes in memory.items():
        print(f"memory, {name}: server {sizes['server']:.0f} MiB, computing {sizes['computing']:.0f} MiB")
    return table


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("out/benchmark-explore"))
    parser.add_argument("--large", action="store_true", help="also 100 runs of 1,000 rounds")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--first-view", action="store_true", help="only this; printed, not written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folders, times = runs_of(options.runs), options.times
    for name in ("fmnist", "digits"):
        for results in folders[name].glob("*/results"):
            shutil.rmtree(results)
    measured: dict[str, list[float]] = {}
    memory: dict[str, dict[str, float]] = {}
    from playwright.sync_api import sync_playwright

    load = os.getloadavg()[0]
    with sync_playwright() as started:
        program = shutil.which(options.browser)
        if program is None:
            parser.error(f"there is no {options.browser} here; give the name of a Chromium, --browser NAME.")
        browser = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        start = partial(started.chromium.launch_persistent_context, executable_path=program, args=ARGUMENTS)
        with explorer(folders["many"]) as (address, server):
            measured["first view, a server that has just started"] = [first_view(browser, address)]
            measured["first view"] = [first_view(browser, address) for _ in range(4 * times)]
            measured["first view, scripts kept by the browser"] = later_views(start, address, times)
            memory["ten runs of 300 rounds"] = resident(server)
        if options.first_view:
            browser.close()
            say(measured, memory)
            return
        with explorer(folders["fmnist"]) as (address, server):
            fresh = planes(browser, address, 1, times, "ArrowRight")
            measured["first coarse plane"] = [first for first, _, _ in fresh]
            measured["21 x 21 plane"] = [whole for _, whole, _ in fresh]
            measured["21 x 21 plane, exact"] = [exact for _, _, exact in fresh]
            again = planes(browser, address, 1 + times, times, "ArrowLeft")
            measured["plane in memory"] = [first for first, _, _ in again]
            measured["slider, FMNIST"] = sliders(browser, address, 3, times)
            memory["FMNIST"] = resident(server)
        with explorer(folders["fmnist"]) as (address, server):
            stored = planes(browser, address, 1, times, "ArrowRight")
            measured["stored plane"] = [first for first, _, _ in stored]
        with explorer(folders["digits"]) as (address, server):
            measured["slider, digits"] = sliders(browser, address, 3, times)
        if options.large:
            with explorer(large(options.runs)) as (address, server):
                measured["first view, 100 runs of 1,000 rounds"] = [
                    first_view(browser, address) for _ in range(1 + times)
                ][1:]
                memory["100 runs of 1,000 rounds"] = resident(server)
        browser.close()
    (run,) = [Run(path.parent) for path in folders["fmnist"].glob("*/run.json")]
    seconds = {precision: processor_seconds(run, 3, precision) for precision in ("exact", "fast")}
    ratios = {
        name: percentiles(measured[name])["p50"] / 1e3 / seconds[precision] for name, precision in PRECISIONS.items()
    }
    table = say(measured, memory, ratios)
    machine = {"processor": processor_line(), "load": load, "torch": torch.__version__, "one_thread_seconds": seconds}
    print(
        f"{machine['processor']}, load {load:.1f} before; one thread evaluates 21 x 21 points in "
        f"{seconds['exact']:.1f} s exactly, {seconds['fast']:.1f} s in bfloat16"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "milliseconds": table, "memory": memory}, indent=1) + "\n")


if __name__ == "__main__":
    main()
