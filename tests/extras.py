"""Tests of the optional packages, each in an environment that has them: `make test-extras`.

    python tests/extras.py                    every environment below, in .venv-extras/
    python tests/extras.py flower             one of them
    python tests/extras.py --within 600       stop after ten minutes, and say what was not tested

An environment has its own packages and sees those of the environment that runs this file, so that torch is installed
once. In it a test that skips has failed. A package that cannot be installed, as where no registry answers, fails this
program (exit code 3), unless a limit of time is given, where it is named at the end; failing tests do always (exit
code 1).
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-extras"
SLOWEST = 420
"""Seconds that an installation may take."""


@dataclass(frozen=True)
class Environment:
    """Packages, and the tests that need them.

    Args:
        packages: Requirements, with exact versions: those that passed together.
        tests: Arguments of pytest.
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
            *("-k", "curvlinops or back_ends"),
        ),
        alone=("curvlinops-for-pytorch==3.0.1", "backpack-for-pytorch==1.7.1"),  # backpack asks for torchvision
    ),
    "flower": Environment(
        ("flwr[simulation]==1.41.0", "flwr-datasets==0.6.1"),
        (
            *("tests/drift/importers/test_flower.py", "tests/drift/importers/test_flower_app.py"),
            "tests/drift/partitions",
            "tests/figures/commands/test_partition_command.py",
        ),
    ),
    "services": Environment(
        (
            *("dask==2026.8.0", "distributed==2026.8.0"),
            *("tensorboard==2.21.0", "mlflow==3.17.2", "wandb==0.31.0"),
            *("transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0", "lightning==2.6.6"),
        ),
        (
            *("tests/drift/engines/test_cluster.py", "tests/drift/simulation/test_sweep_points.py"),
            *("tests/drift/runs/test_export_model.py", "tests/landscape/test_record.py"),
            "tests/landscape/models/test_models_hf.py",
        ),
    ),
}


def install(name: str, seconds: float = SLOWEST) -> str:
    """Make an environment, or complete it, in `seconds` at most; the reason why that is impossible, or ""."""
    folder, wanted = FOLDER / name, ENVIRONMENTS[name]
    stamp, state = folder / "installed", repr(wanted.packages + wanted.alone)
    if stamp.exists() and stamp.read_text() == state:
        return ""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    lower = [sysconfig.get_path("purelib"), str(ROOT)]
    (own / "lower.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in lower))
    pip = [sys.executable, "-m", "pip", "--python", python(name), "install", "-q", "--disable-pip-version-check"]
    for arguments in (wanted.packages, ("--no-deps", *wanted.alone) if wanted.alone else ()):
        if not arguments:
            continue
        try:
            done = subprocess.run([*pip, *arguments], capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"pip took more than {seconds:.0f} s"
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            return lines[-1][:300]
    stamp.write_text(state)
    return ""


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def test(name: str, seconds: float | None) -> str:
    """Run the tests of an environment, none skipped, in `seconds` at most; "" if they pass, else what happened."""
    settings = {"FEDSCAPE_NO_SKIPS": "1", "FEDSCAPE_FLOWER": str(python(name)), "OMP_NUM_THREADS": "1"}
    command = [python(name), "-m", "pytest", "-q", "-m", "", *ENVIRONMENTS[name].tests]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, start_new_session=True)
    try:
        return FAILED if process.wait(seconds) else ""
    except subprocess.TimeoutExpired:  # servers and workers that the tests started end with them
        process.kill() if os.name == "nt" else os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return UNFINISHED


FAILED, UNFINISHED = "TESTS FAILED", "TESTS NOT FINISHED in the time given"


def main(arguments: list[str]) -> int:
    """Install and test environments; 1 if tests failed, 3 if some were not run though no limit of time was given."""
    parser = argparse.ArgumentParser(prog="tests/extras.py", description="Test the optional packages, installed.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(ENVIRONMENTS)}; by default all")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="stop after that; what is left is named")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in ENVIRONMENTS]:
        parser.error(f"no environment named {unknown[0]!r}; environments: {', '.join(ENVIRONMENTS)}.")
    end = time.monotonic() + (math.inf if options.within is None else options.within)
    problems: dict[str, str] = {}
    for name in options.names or ENVIRONMENTS:
        begun = time.monotonic()
        if end - begun < LEAST:
            problems[name] = "NOT TESTED: no time is left"
        elif reason := install(name, min(SLOWEST, end - begun)):
            problems[name] = f"NOT TESTED: it could not be installed: {reason}"
        else:
            sys.stdout.write(f"extras {name}: installed in {time.monotonic() - begun:.0f} s\n")
            sys.stdout.flush()
            begun = time.monotonic()
            if problem := test(name, None if options.within is None else max(end - begun, 1.0)):
                problems[name] = problem
            sys.stdout.write(f"extras {name}: tested in {time.monotonic() - begun:.0f} s\n")
    for name, problem in problems.items():
        sys.stdout.write(f"EXTRAS {name}: {problem}\n")
    if FAILED in problems.values():
        return 1
    return 3 if problems and options.within is None else 0


LEAST = 30
"""Seconds without which an environment is not begun."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
