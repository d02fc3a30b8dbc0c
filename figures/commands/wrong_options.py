"""A command line that cannot be read, as one line: what was given, what is accepted, an example."""

import inspect
import re
import shlex
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Literal, get_args, get_origin

import cyclopts
from cyclopts import App, Argument, CycloptsError

from landscape import plugins
from landscape.plugins.unknown_names import LISTED_BY

EXAMPLE = re.compile(r"Example: `(fedscape [^`]+)`")
"""How a command's docstring gives its example."""

ANYWHERE = ("--debug", "--trust", "--help")
"""Options that every command takes."""

_KINDS = {"int": "a whole number", "float": "a number", "Path": "a path"}


def line(error: CycloptsError, app: App) -> str:
    """What is wrong with a command line, what is accepted, and where it is written.

    Args:
        error: As cyclopts raises it.
        app: The whole command line.
    """
    chain = list(error.command_chain or ())
    name, page = " ".join(chain), " ".join(["fedscape", *chain, "--help"])
    here = app
    for word in chain:
        here = here[word]
    if isinstance(error, cyclopts.UnknownCommandError):
        return _no_command((error.unused_tokens or [""])[0], name, app, here, page)
    options = _options(here)
    if option := _unknown_option(error, options):
        return f"{plugins.unknown(f'option of {name}', option, options, listed=page)}"
    return f"{_message(error, name, here)} All options: {page}."


def example(function: Callable[..., Any] | None) -> str:
    """The example in a command's docstring; empty where there is none."""
    match = EXAMPLE.search(" ".join((inspect.getdoc(function) or "").split()))
    return match[1] if match else ""


def commands(app: App, chain: tuple[str, ...] = ()) -> dict[tuple[str, ...], App]:
    """Every command that runs something, by the words that call it."""
    by_words: dict[tuple[str, ...], App] = {}
    for name in _names(app):
        inner = commands(app[name], (*chain, name))
        by_words |= inner or {(*chain, name): app[name]}
    return by_words


def _message(error: CycloptsError, name: str, here: App) -> str:
    if isinstance(error, cyclopts.UnusedCliTokensError):
        taken = [option.name for option in here.assemble_argument_collection() if not option.field_info.is_keyword]
        takes = f"only {' '.join(taken)}" if taken else "no argument"
        extra = " ".join(error.unused_tokens or [])
        return f"unexpected argument {extra!r}; {name} takes {takes} beside its options."
    if isinstance(error, cyclopts.RepeatArgumentError):
        return f"{name} is given {error.token.keyword} more than once; give it once."
    argument = error.argument
    if argument is None:
        return f"{name}: {' '.join(str(error).split())}"
    about = _about(argument.name, here)
    if isinstance(error, cyclopts.MissingArgumentError):
        return _missing_argument(error, argument, name, here, about)
    if isinstance(error, cyclopts.ValidationError):
        value = argument.tokens[0].value if argument.tokens else error.value
        return f"{argument.name} of {name} is {value!r}; {error.exception_message} {about}"
    if isinstance(error, cyclopts.CoercionError):
        return _wrong_type(error, argument, name, about)
    return f"{name}: {' '.join(str(error).split())}"


def _missing_argument(
    error: cyclopts.MissingArgumentError, argument: Argument, name: str, here: App, about: str
) -> str:
    option = error.keyword or (
        argument.name if isinstance(error, cyclopts.ConsumeMultipleError) or argument.tokens else ""
    )
    problem = f"{option} of {name} is given without a value." if option else f"{name} needs {argument.name}."
    command = example(here.default_command)
    took = "" if option else _took_several(error.root_input_tokens or [], here)
    literal = get_origin(argument.hint) is Literal
    choices = f" It is one of {', '.join(get_args(argument.hint))}." if literal else ""
    return f"{problem} {argument.name}: {about}{choices}{took}{f' Example: {command}.' if command else ''}"


def _took_several(tokens: list[str], here: App) -> str:
    """The command in another order where an option with several values may have taken what is missing."""
    many = [
        name for argument in here.assemble_argument_collection() for name in argument.names if argument.token_count()[1]
    ]
    ends = {
        at: list(takewhile(lambda token: not token.startswith("-"), tokens[at + 1 :]))
        for at, name in enumerate(tokens)
        if name in many
    }
    at, taken = max(ends.items(), key=lambda end: len(end[1]), default=(0, []))
    if len(taken) < 2:
        return ""
    ordered = [*tokens[:at], *taken[1:], *tokens[at + 1 + len(taken) :], tokens[at], *taken[:1]]
    return f" {tokens[at]} takes all words that follow it; write it last: {shlex.join(['fedscape', *ordered])}."


def _wrong_type(error: cyclopts.CoercionError, argument: Argument, name: str, about: str) -> str:
    value = error.token.value if error.token else ""
    if get_origin(error.target_type) is Literal:
        listing = LISTED_BY.get(value.removesuffix("s"))
        hint = f" {value.capitalize()} are listed by: {listing}." if listing and name == "list" else ""
        return plugins.unknown(argument.name.strip("-").lower(), value, get_args(error.target_type)) + hint
    if error.target_type is bool:
        return f"{argument.name} of {name} takes no value and is given {value!r}; leave the value out."
    kind = _KINDS.get(getattr(error.target_type, "__name__", ""), f"a value of type {error.target_type}")
    return f"{argument.name} of {name} takes {kind} and is given {value!r}. {about}"


def _no_command(token: str, name: str, app: App, here: App, page: str) -> str:
    names, kind = _names(here), f"command of {name}" if name else "command"
    if elsewhere := [words for words in commands(app) if words[-1] == token]:
        return f"no {kind} named {token!r}; it is: fedscape {' '.join(elsewhere[0])}."
    if not token.startswith("-"):
        return plugins.unknown(kind, token, names, listed=page)
    where = f"a command of {name} ({', '.join(names)})" if name else "a command"
    return f"option {token} stands where {where} is expected; options follow the command. All commands: {page}."


def _unknown_option(error: CycloptsError, options: Iterable[str]) -> str:
    """The unknown option; cyclopts often reports a mistyped one as another that is missing."""
    if isinstance(error, cyclopts.UnknownOptionError):
        return error.token.keyword or error.token.value
    if isinstance(error, cyclopts.MissingArgumentError) and error.keyword is None:
        tokens = [token.partition("=")[0] for token in error.unused_tokens or ()]
        return next((token for token in tokens if re.match("--?[a-zA-Z]", token) and token not in options), "")
    return ""


def _names(app: App) -> list[str]:
    """Commands of an app, without those that are options."""
    return [name for name in app if not name.startswith("-")]


def _options(here: App) -> list[str]:
    keys = [name for argument in here.assemble_argument_collection() for name in argument.names if name.startswith("-")]
    return [*keys, *ANYWHERE]


def _about(name: str, here: App) -> str:
    """The sentences of the help page on an argument."""
    arguments = here.assemble_argument_collection(parse_docstring=True)
    return next((argument.parameter.help or "" for argument in arguments if argument.name == name), "")
