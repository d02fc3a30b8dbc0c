"""fedscape completion."""

import sys
from typing import Literal

from figures.commands.app import app
from figures.texts import console

Shell = Literal["bash", "zsh", "fish"]

SUGGESTED = {
    "bash": "~/.local/share/bash-completion/completions/fedscape",
    "zsh": "a folder of $fpath, as _fedscape",
    "fish": "~/.config/fish/completions/fedscape.fish",
}


def completion(shell: Shell, /) -> None:
    """Print the script by which a shell completes commands and options.

    For this session: source <(fedscape completion bash). To have it in every session, write it to the file where the
    shell looks for it: bash ~/.local/share/bash-completion/completions/fedscape, zsh _fedscape in a folder of $fpath,
    fish ~/.config/fish/completions/fedscape.fish.

    Example: `fedscape completion bash`

    Args:
        shell: The shell that you use.
    """
    console.put(app.generate_completion(prog_name="fedscape", shell=shell).rstrip())
    if sys.stdout.isatty():
        console.say(f"for good, write it to {SUGGESTED[shell]}")
