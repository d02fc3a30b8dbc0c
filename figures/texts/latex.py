"""Plain text as LaTeX."""

import re

_LETTERS = "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b7\u03b8\u03ba\u03bb\u03bc\u03c0\u03c1\u03c3\u03c4\u03c6\u0394\u03a3"
_NAMES = "alpha beta gamma delta epsilon eta theta kappa lambda mu pi rho sigma tau phi Delta Sigma"
_GREEK = dict(zip(_LETTERS, _NAMES.split(), strict=True))

_COMMANDS = r"$\pm$ $\cdot$ $\times$ $-$ -- --- \ldots{} $\leq$ $\geq$ $\approx$ $^2$"
_SIGNS = dict(zip("\u00b1\u00b7\u00d7\u2212\u2013\u2014\u2026\u2264\u2265\u2248\u00b2", _COMMANDS.split(), strict=True))

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **_SIGNS,
    **{chr(0x2080 + number): f"$_{number}$" for number in range(10)},
    **{letter: f"$\\{name}$" for letter, name in _GREEK.items()},
}
"""Signs that LaTeX reads as commands, and those that its usual fonts lack, as LaTeX writes them."""


def escape(text: str) -> str:
    """Text that LaTeX sets as it stands; Greek letters and signs of mathematics become commands."""
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def label(name: str) -> str:
    """A name as the argument of \\label: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.:]+", "-", name).strip("-")
