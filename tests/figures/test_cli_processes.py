"""The command line as a process of its own: what it imports, how it stops, what it writes without colour."""

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_apart(*tokens, cwd, **options):
    command = [sys.executable, "-m", "figures.cli", *map(str, tokens)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env={**options.pop("env", {}), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored below a shell's background jobs
    )


VERBS = ["", "train", "figures list", "publish"]


def test_help_imports_nothing_heavy():
    code = f"""
import sys
from figures.cli import main
for verb in {VERBS!r}:
    try:
        main([*verb.split(), "--help"])
    except SystemExit as stop:
        assert not stop.code, verb
    loaded = {{'torch', 'xarray', 'matplotlib', 'plotly', 'numpy'}} & set(sys.modules)
    assert not loaded, (verb, loaded)
"""
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


def test_stopped_by_the_keyboard_and_called_again_it_goes_on(file, tmp_path):
    tokens = ["train", file, "--set", "rounds=4000", "evaluate_every=4000"]
    with run_apart(*tokens, cwd=tmp_path) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(tmp_path.glob("runs/*/rounds/000003.safetensors")) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("fedscape: stopped.")
    (folder,) = (path.parent for path in tmp_path.glob("runs/*/run.json"))
    from drift.simulation.verify import verify

    assert verify(folder) == []


def test_no_colour_leaves_plain_text(tmp_path):
    with run_apart("list", "methods", cwd=tmp_path, env={"NO_COLOR": "1"}) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "\x1b" not in out
    assert "fedavg" in out
