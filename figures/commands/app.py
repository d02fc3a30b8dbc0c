"""The command `fedscape` without its verbs: name, help, exit codes."""

from cyclopts import App

from landscape.plugins.public_names import version

HELP = """Loss landscapes and client drift of federated learning: train, store every round, analyse, draw.

Start with `fedscape demo`. `fedscape COMMAND --help` lists the arguments of a command. All commands accept three more
options: `--debug` shows the traceback of an error. `--trust FILE.py:CLASS` (or MODULE:FUNCTION) allows runs to use that
code of yours. `--set metrics.accuracy=test_acc` names the recorded number that is the accuracy.
"""

CODES = """Exit codes: 0 done; 2 a mistake or a problem, one line on stderr; 1 an error in fedscape, with its traceback;
130 stopped by Ctrl-C. Results go to stdout, messages and progress to stderr.
"""


app = App(
    name="fedscape",
    help=HELP,
    help_epilogue=CODES,
    version=lambda: version("fedscape") or "not installed",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
