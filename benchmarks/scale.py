"""Seconds and memory of a round as clients, cohort and model grow.

    python -m benchmarks.scale               about two minutes; results in benchmarks/results/scale.json
    python -m benchmarks.scale --workers 2   a cohort of the FMNIST CNN shared by processes, against one, wall time
    python -m benchmarks.scale --cluster 1 2 a round of 1,000 clients on so many Dask workers, and bytes moved (Linux)
    python -m benchmarks.scale --large 200   a round of 200 clients of ResNet18 by --memory 2GB, and what reads it;
                                             seconds and peak memory of each process, 45 MB of disk per client
    python -m benchmarks.scale --overhead 5  so many rounds of 100 clients of 1 M parameters, against training alone
    python -m benchmarks.scale --runs 10000  `fedscape runs` over so many runs of ten rounds, without and with its table

A client trains one step on 4 samples, so that a round's cost is that of the server, of the record and of what each
client costs besides its samples. Every line is a process of its own: FedAvg, a multilayer perceptron, 3 rounds, all
client models kept. Memory is the peak of the process less what it was when the data and the model were built. A cohort
of m clients with d parameters is counted in copies of its models, m d floats of 4 bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks import _cluster, _large_round

RESULTS = Path(__file__).resolve().parent / "results" / "scale.json"

FEATURES, CLASSES = 64, 10

LINES = [
    *({"clients": clients, "cohort": 10, "width": 600} for clients in (10, 100, 1_000, 10_000)),
    *({"clients": 1_000, "cohort": cohort, "width": 600} for cohort in (100, 1_000)),
    {"clients": 10_000, "cohort": 10_000, "width": 60},
    *({"clients": 100, "cohort": 10, "width": width} for width in (60, 6_000, 60_000)),
    {"clients": 1_000, "cohort": 10, "width": 600, "method": "scaffold"},
    {"clients": 10_000, "cohort": 10, "width": 14_000, "method": "scaffold"},
]


def experiment(line: dict[str, Any], rounds: int = 3) -> Any:
    """The experiment of a line; `width` sets the parameters d = 75 width + 10."""
    from drift.config.load import validated

    momentum = {"momentum": 0.0} if line.get("method") == "scaffold" else {}
    return validated(
        {
            "rounds": rounds,
            "method": line.get("method", "fedavg"),
            "task": {
                "dataset": "blobs",
                "dataset_options": {
                    "features": FEATURES,
                    "classes": CLASSES,
                    "samples": line.get("samples", 4) * line["clients"],
                },
                "model": "mlp",
                "model_options": {"hidden": [line["width"]]},
                "test_samples": 10,
            },
            "clients": {"number": line["clients"], "per_round": line["cohort"], "partition": "iid"},
            "local": {
                **({"epochs": 1} if "samples" in line else {"steps": 1}),
                "batch": line.get("batch", 4),
                **momentum,
            },
        }
    )


def measured(line: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: a line's seconds a round, bytes on disk and peak of memory."""
    from drift.config.method_values import Setting
    from drift.simulation.one_round import run_round
    from drift.store import files, server_state
    from drift.training.data import build_task, read_data
    from drift.training.server import Server

    wanted = experiment(line)
    data = read_data(wanted, None)
    task = build_task(wanted, data)
    setting, before = Setting(task, wanted), _peak()
    server, played, written = Server.fresh(setting), [], []
    with tempfile.TemporaryDirectory() as place:
        for index in range(wanted.rounds):
            begun = time.process_time()
            record, server = run_round(setting, data, server)
            played.append(time.process_time() - begun)
            begun = time.process_time()
            files.write_round(Path(place), record, wanted.keep, wanted.rounds)
            server_state.write(Path(place), server.tensors(), server.clients, index + 1)
            written.append(time.process_time() - begun)
        clients = list((Path(place) / "clients").glob(f"*-{wanted.rounds - 1:06d}.safetensors"))
        state = sum(path.stat().st_size for path in (Path(place) / "state.safetensors", *clients))
        size = files.round_path(Path(place), 1).stat().st_size
    d = task.layout.size
    return {
        **line,
        "parameters": d,
        "seconds": statistics.median(played[1:]),
        "writing": statistics.median(written[1:]),
        "memory": _peak() - before,
        "copies": (_peak() - before) / (4 * d * line["cohort"]),
        "file": size,
        "state": state,
    }


def overhead(rounds: int, times: int) -> dict[str, Any]:
    """Wall and CPU seconds of a run of 100 clients, d = 1,050,010, 600 samples each, against training them alone.

    Both are taken `times` times in this process, one after the other; the least of each counts. CPU seconds include
    those of the thread that writes while the next round trains.
    """
    import torch

    from drift import engines
    from drift.config.method_values import Setting
    from drift.simulation.simulate import simulate
    from drift.training.data import build_task, client_samples, read_data
    from drift.training.server import Server, clients

    torch.set_num_threads(1)
    wanted = experiment({"clients": 100, "cohort": 100, "width": 14_000, "samples": 600, "batch": 50}, rounds)
    data = read_data(wanted, None)
    setting = Setting(build_task(wanted, data), wanted)

    def alone() -> None:
        server, parts, ids = Server.fresh(setting), client_samples(wanted, data, 0), torch.arange(100).numpy()
        for _ in range(rounds):
            ready = clients(setting, *parts, server, server.theta, ids)
            engines.train("serial", wanted.method, ready, lambda place, update: update.loss)  # type: ignore[arg-type]

    def whole() -> None:
        with tempfile.TemporaryDirectory() as place:
            simulate(wanted, runs=place)

    spent: dict[str, list[tuple[float, float]]] = {"alone": [], "run": []}
    for _ in range(times):
        for name, call in (("alone", alone), ("run", whole)):
            begun, cpu = time.perf_counter(), time.process_time()
            call()
            spent[name].append((time.perf_counter() - begun, time.process_time() - cpu))
    least = {name: [min(column) for column in zip(*pairs, strict=True)] for name, pairs in spent.items()}
    ratios = [run / alone for run, alone in zip(least["run"], least["alone"], strict=True)]
    print(
        f"{rounds} rounds: clients alone {least['alone'][0]:.1f} s, {least['alone'][1]:.1f} CPU s; run "
        f"{least['run'][0]:.1f} s, {least['run'][1]:.1f} CPU s: {ratios[0]:.2f} x the time, {ratios[1]:.2f} x the CPU "
        f"seconds; load {os.getloadavg()[0]:.1f}"
    )
    return {
        "rounds": rounds,
        "times": times,
        **least,
        "ratio": ratios[0],
        "cpu ratio": ratios[1],
        "load": os.getloadavg()[0],
    }


def listed(count: int, folder: Path) -> dict[str, Any]:
    """Seconds and CPU seconds of `fedscape runs` over copies of one run: first without a table, then twice with it.

    The files are in the cache of the system, in which copying them has left them.
    """
    import shutil

    import drift
    from drift.config.load import validated

    task = {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 60}}
    clients = {"number": 4, "per_round": 3, "partition": "iid"}
    whole = drift.simulate(validated({"rounds": 10, "task": task, "clients": clients}), runs=folder / "one").folder
    for number in range(count):
        shutil.copytree(whole, folder / "runs" / f"run-{number:06d}")
    command = [sys.executable, "-m", "figures.cli", "runs", "--runs", str(folder / "runs")]
    results: dict[str, Any] = {"runs": count}
    for name in ("without a table", "with it", "with it again"):
        begun, cpu = time.perf_counter(), _cpu()
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        results[name] = {"seconds": time.perf_counter() - begun, "cpu": _cpu() - cpu}
        if len(lines) != count + 2:
            raise RuntimeError(f"{len(lines)} lines for {count} runs")
        print(f"{name:16} {results[name]['seconds']:6.2f} s  {results[name]['cpu']:6.2f} CPU s", flush=True)
    return results


def shared(workers: int, rounds: int) -> dict[str, Any]:
    """Wall and CPU seconds of rounds of the FMNIST CNN, 10 clients of 600 samples, by one process and by several.

    CPU seconds are those of a whole run, all processes together, their start included. The ceiling is the work that as
    many independent processes do at once against that of one.
    """
    from drift.simulation.simulate import simulate

    spent: dict[str, list[float]] = {"one": [], "workers": []}
    used: dict[str, list[float]] = {"one": [], "workers": []}
    settings = ["ima-fmnist-shards2", f"rounds={rounds}", "method=fedavg", "local.epochs=1", "keep.clients=none"]
    for _ in range(2):
        for name, number in (("one", 1), ("workers", workers)):
            with tempfile.TemporaryDirectory() as place:
                begun = _cpu()
                run = simulate(*settings, runs=place, workers=number)
                used[name].append(_cpu() - begun)
                spent[name] += run.metrics()["seconds"].values[1:].tolist()
    code = (
        f"import sys, tempfile; sys.path.insert(0, {str(Path(__file__).resolve().parent.parent)!r}); import drift; "
        f"run = drift.simulate(*{settings!r}, runs=tempfile.mkdtemp()); "
        "print(run.metrics()['seconds'].values[1:].min())"
    )
    beside = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    slowest = max(float(one.communicate()[0].splitlines()[-1]) for one in beside)
    least = {name: min(values) for name, values in spent.items()}
    cpu = {name: min(values) for name, values in used.items()}
    found = {"workers": workers, "one": least["one"], "shared": least["workers"], "beside": slowest, "cpu": cpu}
    print(
        f"one process {least['one']:.2f} s a round, {workers} workers {least['workers']:.2f} s: "
        f"{least['one'] / least['workers']:.2f} x; {workers} independent processes do "
        f"{workers * least['one'] / slowest:.2f} x the work of one; CPU of the {rounds} rounds "
        f"{cpu['one']:.2f} and {cpu['workers']:.2f} s"
    )
    return found


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cluster", type=int, nargs="+", metavar="WORKERS")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--large", type=int, metavar="CLIENTS")
    parser.add_argument("--overhead", type=int, metavar="ROUNDS")
    parser.add_argument("--times", type=int, default=2, help="of --overhead: so often; the least counts")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--runs", type=int, metavar="COUNT")
    parser.add_argument("--line", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.line:
        import torch

        torch.set_num_threads(1)
        print(json.dumps(measured(json.loads(given.line))))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.large:
        with tempfile.TemporaryDirectory() as place:
            results["large"] = _large_round.measure(given.large, given.memory, Path(place))
    elif given.cluster:
        results["cluster"] = _cluster.measure(given.cluster)
    elif given.overhead:
        results["overhead"] = overhead(given.overhead, given.times)
    elif given.runs:
        with tempfile.TemporaryDirectory() as place:
            results["runs"] = listed(given.runs, Path(place))
    elif given.workers > 1:
        results["workers"] = shared(given.workers, given.rounds)
    else:
        results["lines"] = []
        for line in LINES:
            command = [sys.executable, __file__, "--line", json.dumps(line)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            results["lines"].append(found)
            print(
                f"K {found['clients']:6}  m {found['cohort']:6}  d {found['parameters']:8}  "
                f"{1e3 * found['seconds']:9.1f} ms  writing {1e3 * found['writing']:8.1f} ms  "
                f"{found['memory'] / 2**20:7.0f} MiB ({found['copies']:.1f} copies)  "
                f"file {found['file'] / 2**20:.1f} MiB  state {found['state'] / 2**20:.1f} MiB  "
                f"{found.get('method', 'fedavg')}",
                flush=True,
            )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that ended."""
    return sum(os.times()[:4])


def _peak() -> int:
    """Bytes of memory that the process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
