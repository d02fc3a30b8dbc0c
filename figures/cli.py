"""The command `fedscape`: its verbs, and the one place where an error becomes a line."""

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, CycloptsError

from figures.commands import (
    about,
    analyse,
    claims,
    completion,
    demo,
    diagnose,
    explore,
    export,
    film,
    imports,
    mcp,
    new,
    partition,
    pictures,
    pretrain,
    publish,
    reproduce,
    runs,
    sweep,
    train,
    wrong_options,
)
from figures.commands.app import app
from figures.texts import console
from landscape.out_of_memory import OutOfMemory, is_out_of_memory

_TRAIN = (demo.demo, train.train, train.compare, sweep.sweep, pretrain.pretrain, partition.partition)
_RUNS = (runs.runs, runs.show, runs.verify, imports.import_, export.export, new.new)
_ASK = (analyse.analyse, diagnose.diagnose, explore.explore, mcp.mcp, claims.claims, reproduce.reproduce)
_SHOW = (pictures.figures, film.film, publish.publish, about.list_, about.doctor, completion.completion)
_VERBS: tuple[App | Callable[..., Any], ...] = (*_TRAIN, *_RUNS, *_ASK, *_SHOW)
for _index, _verb in enumerate(_VERBS):
    if isinstance(_verb, App):
        _verb.sort_key = _index
        app.command(_verb)
    else:
        app.command(_verb, name=_verb.__name__.rstrip("_"), sort_key=_index)


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 done, 2 a mistake or a problem (one line on stderr), 130 stopped by Ctrl-C, 1 with a traceback. A
    reader of stdout that stops early, such as `head`, is no error: 0.
    """
    arguments = list(sys.argv[1:] if tokens is None else tokens)
    debug = "--debug" in arguments
    warnings.showwarning = _warn
    _open_streams()
    try:
        rest = _without_names(_without_trust([token for token in arguments if token != "--debug"]))
        code = app(rest, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        console.say(
            "fedscape: stopped. Whole rounds and results are kept, the rest is dropped; to resume, run this again."
        )
        code = 130
    except BrokenPipeError:
        code = _discard_output()
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # rich makes an exit of it
            raise
        code = _discard_output()
    except Exception as error:
        short = is_out_of_memory(error) and not isinstance(error, OutOfMemory)
        if debug or not (short or _is_known(error)):
            raise
        console.say(f"fedscape: {_MEMORY if short else _line(error)}")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _without_trust(tokens: list[str]) -> list[str]:
    """Tokens without `--trust NAME`, whose names are trusted from here on.

    Raises:
        ValueError: If no name follows.
    """
    rest, words = [], iter(tokens)
    for token in words:
        option, equals, name = token.partition("=")
        if option != "--trust":
            rest.append(token)
            continue
        from drift.plugins import trust

        trust.allow(name if equals else next(words, ""))
    return rest


def _without_names(tokens: list[str]) -> list[str]:
    """Tokens without `--set metrics.USUAL=RECORDED`, names of numbers that hold for all runs from here on.

    Raises:
        ValueError: If no recorded name follows.
    """
    rest, is_value = list[str | None](), False  # None: --set, of which nothing is left so far
    for token in tokens:
        is_value = token.startswith("--set=") or token == "--set" or (is_value and not token.startswith("-"))
        if is_value and (name := token.removeprefix("--set=")).startswith("metrics."):
            from drift.runs.metric_names import state

            state(name.removeprefix("metrics."))
            rest[-1:] = [None] if rest[-1:] == ["--set"] else rest[-1:]
        elif rest[-1:] == [None]:
            rest[-1:] = ["--set", token] if is_value and "=" in token and not token.startswith("-") else [token]
        else:
            rest.append(token)
    return [token for token in rest if token is not None]


def _discard_output() -> int:
    """Discard the rest of stdout, whose reader has closed it; the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


_MEMORY = "memory does not suffice; use fewer --workers, fewer points or smaller batches. Whole rounds are kept."


def _is_known(error: Exception) -> bool:
    """Whether an error is a message to the user; any other is a mistake in the code and keeps its traceback."""
    if isinstance(error, RuntimeError):
        return type(error).__module__.partition(".")[0] in ("landscape", "drift", "figures")
    if isinstance(error, KeyError | IndexError):
        return False
    return isinstance(error, CycloptsError | ValueError | LookupError | OSError)


def _line(error: Exception) -> str:
    """An error's message in one line."""
    text = " ".join((wrong_options.line(error, app) if isinstance(error, CycloptsError) else str(error)).split())
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
        return f"{message} {_ADVICE.get(error.errno or 0, '')}".rstrip()
    return text or type(error).__name__


_ELSEWHERE = "Write elsewhere (--runs DIR, --out DIR), or copy the run to a folder that can be written."
_ADVICE = {
    errno.ENOSPC: "Free space, then give the same command again; what is whole is kept.",
    errno.EDQUOT: "Free space, then give the same command again; what is whole is kept.",
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: _ELSEWHERE,
    errno.ENOTDIR: _ELSEWHERE,
    errno.EISDIR: "Name a file in it.",
}


def _open_streams() -> None:
    """Replace stdout or stderr that the caller has closed by buffers."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.StringIO())


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    console.say(f"fedscape: {' '.join(str(message).split())}")


if __name__ == "__main__":
    main()
