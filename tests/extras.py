"""Tests of the optional packages, each in an environment that has them: `make test-extras`.

    python tests/extras.py                    every environment below, in .venv-extras/
    python tests/extras.py flower             one of them

An environment has its own packages and sees those of the environment that runs this file, so that torch is installed
once. In it a test that skips has failed. A package that cannot be installed, as where no registry answers, fails this
program (exit code 3); failing tests do too (exit code 1).
"""

from __future__ import annotations

import os
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
    "flower": Environment(
        ("flwr[simulation]==1.41.0", "flwr-datasets==0.6.1"),
        (
            *("tests/drift/importers/test_flower.py", "tests/drift/importers/test_flower_app.py"),
            "tests/drift/partitions",
            "tests/figures/commands/test_partition_command.py",
        ),
    ),
    "curvlinops": Environment(
        ("tqdm", "einops<1", "einconv==0.1.0", "linear_operator==0.6.1", "opt-einsum==3.4.0", "unfoldNd==0.2.3"),
        (
            *("tests/landscape/curvature/test_curvature.py", "tests/drift/analyses/curvature/test_spectral_density.py"),
            *("-k", "curvlinops or back_ends"),
        ),
        alone=("curvlinops-for-pytorch==3.0.1", "backpack-for-pytorch==1.7.1"),  # backpack asks for torchvision
    ),
}


def install(name: str) -> str:
    """Make an environment, or complete it; the reason why that is impossible, or ""."""
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
            done = subprocess.run([*pip, *arguments], capture_output=True, text=True, timeout=SLOWEST, check=False)
        except subprocess.TimeoutExpired:
            return f"pip took more than {SLOWEST} s"
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            return lines[-1][:300]
    stamp.write_text(state)
    return ""


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def test(name: str) -> bool:
    """Whether the tests of an environment pass, none skipped."""
    settings = {"FEDSCAPE_NO_SKIPS": "1", "FEDSCAPE_FLOWER": str(python(name)), "OMP_NUM_THREADS": "1"}
    command = [python(name), "-m", "pytest", "-q", "-m", "", *ENVIRONMENTS[name].tests]
    return subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False).returncode == 0


def main(names: list[str]) -> int:
    """Install and test environments; 3 if one could not be installed, 1 if tests failed."""
    if unknown := [name for name in names if name not in ENVIRONMENTS]:
        sys.stderr.write(f"no environment named {unknown[0]!r}; environments: {', '.join(ENVIRONMENTS)}.\n")
        return 2
    failed, absent = [], []
    for name in names or ENVIRONMENTS:
        begun = time.monotonic()
        if reason := install(name):
            absent.append(name)
            sys.stdout.write(f"EXTRAS {name}: NOT TESTED, it could not be installed: {reason}\n")
            continue
        sys.stdout.write(f"extras {name}: installed in {time.monotonic() - begun:.0f} s\n")
        sys.stdout.flush()
        begun = time.monotonic()
        if not test(name):
            failed.append(name)
        sys.stdout.write(f"extras {name}: tested in {time.monotonic() - begun:.0f} s\n")
    for what, which in (("TESTS FAILED", failed), ("NOT TESTED", absent)):
        if which:
            sys.stdout.write(f"EXTRAS {what}: {', '.join(which)}\n")
    return 1 if failed else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
