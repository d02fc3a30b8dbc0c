"""Tests of the optional packages, each in an environment that has them: `make test-extras`.

    python tests/extras.py                    every environment below, in .venv-extras/, two at a time
    python tests/extras.py flower             one of them
    python tests/extras.py --install          make the environments and test nothing
    python tests/extras.py --within 600       stop after ten minutes, and say what was not tested

An environment has its own packages and sees those of the environment that runs this file, so that torch is installed
once. In it a test that skips has failed. A package that cannot be installed, as where no registry answers, fails this
program (exit code 3), unless a limit of time is given, where it is named at the end; failing tests do always (exit
code 1).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import sysconfig
import time
from asyncio.subprocess import STDOUT
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-extras"
LANES = 2
"""Environments that are installed and tested at the same time: Flower's tests wait more than they compute."""
SLOWEST = 420
"""Seconds that an installation may take."""
LEAST = 30
"""Seconds without which an environment is not begun."""
FAILED, UNFINISHED = "TESTS FAILED", "TESTS NOT FINISHED in the time given"


@dataclass(frozen=True)
class Environment:
    """Packages, and the tests that need them.

    Args:
        packages: Requirements, with exact versions: those that passed together.
        tests: Arguments of pytest; `-k` leaves out what `make test` runs without these packages.
        alone: Packages to install without what they require: theirs is here, or breaks torch's.
    """

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    alone: tuple[str, ...] = ()


ENVIRONMENTS = {
    "curvlinops": Environment(
        ("tqdm", "einops<1", "einconv==0.1.0", "linear_operator==0.6.1", "opt-einsum==3.4.0", "unfoldNd==0.2.3"),
        (
            *("tests/landscape/curvature/test_curvature.py", "tests/drift/analyses/curvature/test_spectral_density.py"),
            "tests/reference/test_back_ends.py",
            *("-k", "curvlinops or back_ends"),
        ),
        alone=("curvlinops-for-pytorch==3.0.1", "backpack-for-pytorch==1.7.1"),  # backpack asks for torchvision
    ),
    "flower": Environment(
        (
            *("flwr[simulation]==1.41.0", "flwr-datasets==0.6.1"),
            *("transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0"),  # of the fine-tuning app
        ),
        (
            *("tests/drift/importers/test_flower.py", "tests/drift/importers/test_flower_app.py"),
            *("tests/drift/partitions", "tests/figures/commands/test_partition_command.py"),
            *("-k", "flower or flwr"),
        ),
    ),
    "frameworks": Environment(("nvflare==2.9.0", "pfl==0.6.0"), ("tests/drift/record/test_frameworks.py",)),
    "assistants": Environment(("mcp==2.3.0",), ("tests/figures/assistants/test_mcp.py",)),
    "accessibility": Environment(
        (), ("tests/figures/explore/test_axe_browser.py",), alone=("axe-playwright-python==0.1.8",)
    ),
    "notebooks": Environment(
        ("jupyterlab==4.6.6", "ipykernel==7.4.0", "marimo==0.25.2"), ("tests/test_notebooks_browser.py",)
    ),
    "services": Environment(
        (
            *("dask==2026.8.0", "distributed==2026.8.0"),
            *("tensorboard==2.21.0", "mlflow==3.17.2", "wandb==0.31.0"),
            *("transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0", "lightning==2.6.6"),
        ),
        (
            *("tests/drift/runs/test_export_model.py", "tests/landscape/test_record.py"),
            *("tests/landscape/models/test_models_hf.py", "tests/landscape/models/test_files_hf.py"),
            *("tests/landscape/models/test_adapters_hf.py", "tests/landscape/models/test_adapters_exact_hf.py"),
            "tests/test_howtos.py::test_a_howto_runs_as_it_stands[howto-transformers.md]",
            "tests/test_howtos.py::test_a_howto_runs_as_it_stands[howto-adapters.md]",
            *("tests/drift/engines/test_cluster.py", "tests/test_benchmarks.py"),
            *("tests/drift/simulation/test_sweep_points.py", "-k"),
            "trackers or transformers or lightning or models_hf or files_hf or adapters or rotary or cluster",
        ),
    ),
}


async def install(name: str, seconds: float = SLOWEST) -> str:
    """Make an environment, or complete it, in `seconds` at most; the reason why that is impossible, or ""."""
    folder, wanted = FOLDER / name, ENVIRONMENTS[name]
    stamp, state = folder / "installed", repr(wanted.packages + wanted.alone)
    if stamp.exists() and stamp.read_text() == state:
        return ""
    end, log = time.monotonic() + seconds, FOLDER / f"{name}-install.log"
    if await run([sys.executable, "-m", "venv", "--without-pip", folder], log, seconds) != 0:
        return f"no virtual environment: {log.read_text()[-300:]}"
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    lower = [sysconfig.get_path("purelib"), str(ROOT)]
    (own / "lower.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in lower))
    # without compiling, which takes as long as the rest: most of these modules are never imported
    pip = [sys.executable, "-m", "pip", "--python", python(name), "install", "-q", "--no-compile"]
    for arguments in (wanted.packages, ("--no-deps", *wanted.alone) if wanted.alone else ()):
        if not arguments:
            continue
        code = await run([*pip, "--disable-pip-version-check", *arguments], log, end - time.monotonic())
        if code is None:
            return f"pip took more than {seconds:.0f} s"
        if code:
            lines = [line for line in log.read_text().splitlines() if line.startswith("ERROR")] or ["pip failed"]
            return lines[-1][:300]
    stamp.write_text(state)
    return ""


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


async def run(command: list[str | Path], log: Path, seconds: float | None, **settings: str) -> int | None:
    """Exit code of a command, whose output goes to a file; None after `seconds`, when all that it started is ended."""
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as file:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=os.environ | settings, stdout=file, stderr=STDOUT, start_new_session=True
        )
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill() if os.name == "nt" else os.killpg(process.pid, signal.SIGKILL)


async def check(name: str, end: float | None, install_only: bool) -> str:
    """Install an environment and run its tests, none skipped, until the clock is at `end`; the problem, or ""."""
    begun = time.monotonic()
    if end is not None and end - begun < LEAST:
        return "NOT TESTED: no time is left"
    if reason := await install(name, SLOWEST if end is None else min(SLOWEST, end - begun)):
        return f"NOT TESTED: it could not be installed: {reason}"
    say(f"extras {name}: installed in {time.monotonic() - begun:.0f} s")
    if install_only:
        return ""
    begun = time.monotonic()
    settings = {"FEDSCAPE_NO_SKIPS": "1", "FEDSCAPE_FLOWER": str(python(name)), "OMP_NUM_THREADS": "1"}
    command = [python(name), "-m", "pytest", "-q", "--durations=5", "-m", "", *ENVIRONMENTS[name].tests]
    log = FOLDER / f"{name}.log"
    code = await run(command, log, None if end is None else max(end - begun, 1.0), **settings)
    say(f"{log.read_text(errors='replace')}\nextras {name}: tested in {time.monotonic() - begun:.0f} s")
    return UNFINISHED if code is None else FAILED if code else ""


def say(line: str) -> None:
    """Print at once, as what comes next takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def check_all(names: list[str], end: float | None, install_only: bool) -> dict[str, str]:
    """Problems by environment, `LANES` of them at a time, in the order of `names`."""
    lanes = asyncio.Semaphore(LANES)

    async def one(name: str) -> str:
        async with lanes:
            return await check(name, end, install_only)

    problems = await asyncio.gather(*map(one, names))
    return {name: problem for name, problem in zip(names, problems, strict=True) if problem}


def main(arguments: list[str]) -> int:
    """Install and test environments; 1 if tests failed, 3 if some were not run though no limit of time was given."""
    parser = argparse.ArgumentParser(prog="tests/extras.py", description="Test the optional packages, installed.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(ENVIRONMENTS)}; by default all")
    parser.add_argument("--install", action="store_true", help="make the environments and test nothing")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="stop after that; what is left is named")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in ENVIRONMENTS]:
        parser.error(f"no environment named {unknown[0]!r}; environments: {', '.join(ENVIRONMENTS)}.")
    end = None if options.within is None else time.monotonic() + options.within
    problems = asyncio.run(check_all(options.names or list(ENVIRONMENTS), end, options.install))
    for name, problem in problems.items():
        say(f"EXTRAS {name}: {problem}")
    if FAILED in problems.values():
        return 1
    return 3 if problems and end is None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
