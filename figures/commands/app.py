"""The command `fedscape` without its verbs: name, help, exit codes."""

from __future__ import annotations

from importlib import metadata

from cyclopts import App

HELP = """Loss landscapes and client drift of federated learning: train, store every round, analyse, draw.

Start with `fedscape demo`. `fedscape COMMAND --help` lists the arguments of a command. Every command also takes
`--debug`, which shows the traceback of an error; `--trust MODULE:FUNCTION` (or FILE.py:CLASS), which allows a run to
use that code of yours; and `--set metrics.accuracy=test_acc`, which names the recorded number that is the accuracy.
"""

CODES = """Exit codes: 0 done; 2 a mistake or a problem, one line on stderr; 1 an error in fedscape, with its traceback;
130 stopped by Ctrl-C. Results go to stdout, messages and progress to stderr.
"""


def _version() -> str:
    try:
        return metadata.version("fedscape")
    except metadata.PackageNotFoundError:
        return "not installed"


app = App(
    name="fedscape",
    help=HELP,
    help_epilogue=CODES,
    version=_version,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
