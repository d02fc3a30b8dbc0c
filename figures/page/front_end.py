"""The stage's script and style as texts, for a page that is sent and for one of a server."""

from pathlib import Path

STAGE = Path(__file__).resolve().parent / "stage"

SCRIPTS = (
    *("elements", "grid", "asks", "network", "carried", "address", "landscapes", "relief", "marks", "picture", "hall"),
    *("player", "timeline", "rail", "clients", "weights", "samples", "charts", "why", "gallery", "tools", "save"),
    *("tour", "stage"),
)
"""Parts of the stage's script, in their order."""


def front_end(*, live: bool = False) -> dict[str, str]:
    """stage_js, after which `window.stage` draws a scene into an element, and stage_css.

    Args:
        live: Whether `window.begin` is there too, which begins the page of a server (`stage/link.js`).
    """
    parts = "\n".join((STAGE / f"{name}.js").read_text(encoding="utf-8") for name in (*SCRIPTS, *["link"] * live))
    parts = f"const ACCEPTED = {(STAGE / 'fields.json').read_text(encoding='utf-8')};\n{parts}"
    names = "stage, Link, begin" if live else "stage, shadeOf, download"
    script = f'"use strict";\nObject.assign(window, (() => {{\n{parts}\nreturn {{ {names} }};\n}})());'
    return {"stage_js": script, "stage_css": (STAGE / "stage.css").read_text(encoding="utf-8")}
