"""The command `fedscape`, once its packages are known to be its own."""

import sys

from fedscape.packages import require_ours


def main() -> None:
    """Run the command line; a package of another project ends it with one line and exit code 2."""
    try:
        require_ours()
    except ImportError as reason:
        sys.stderr.write(f"fedscape: {reason}\n")
        sys.exit(2)
    from figures.cli import main as run

    run()
