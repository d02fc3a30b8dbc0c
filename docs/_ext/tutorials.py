"""The pictures of the landing page and the tutorials: each page is run in an empty folder, and its pictures are taken.

python docs/_ext/tutorials.py            all five pages, minutes
python docs/_ext/tutorials.py figure     one (index: the landing page)
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs"), str(ROOT / "tests")]

from blocks import blocks  # noqa: E402 - after the path is set
from PIL import Image  # noqa: E402

from _ext.web_pictures import web_picture  # noqa: E402

IMAGES = ROOT / "docs" / "images" / "tutorials"
"""Of pictures whose names begin with tutorial-, as Sphinx renames files that have the name of another one."""


def pages() -> list[Path]:
    """The landing page and the tutorials."""
    return [ROOT / "docs" / "index.md", *sorted((ROOT / "docs").glob("tutorial-*.md"))]


def pictures(page: Path) -> list[str]:
    """Names of the pictures of a page that its own commands make."""
    return re.findall(r"\(images/tutorials/tutorial-([\w-]+)\.webp\)", page.read_text(encoding="utf-8"))


def make(page: Path) -> None:
    """Write the files of a page, run its commands, and store its pictures for the web."""
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(page):
            if named := re.match(r"# (\w+\.py)\n", block.text):
                Path(folder, named[1]).write_text(block.text, encoding="utf-8")
            elif block.language == "bash" and "pip install" not in block.text:
                subprocess.run(["bash", "-ec", block.text], cwd=folder, check=True)
        for name in pictures(page):
            drawn = sorted(Path(folder).glob(f"**/{name}.png"), key=lambda path: path.stat().st_mtime_ns)
            with Image.open(drawn[0]) as picture:
                IMAGES.mkdir(exist_ok=True)
                (IMAGES / f"tutorial-{name}.webp").write_bytes(web_picture(picture))


if __name__ == "__main__":
    for path in pages():
        if sys.argv[1:] in ([], [path.stem.removeprefix("tutorial-")]):
            make(path)
