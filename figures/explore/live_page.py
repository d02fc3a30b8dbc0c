"""The page of the explorer as text, for the server and for the frame of a notebook cell."""

from pathlib import Path

from jinja2 import Template

from figures.page.front_end import front_end


def live_page(nonce: str = "") -> str:
    """The page, which asks for all that it shows.

    Args:
        nonce: Of its script, for the content security policy of the server.
    """
    template = Template(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"), autoescape=False)
    return template.render(nonce=nonce, **front_end(live=True))
