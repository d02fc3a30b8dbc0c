"""Thumbnails of the gallery page from a folder of drawn figures, such as the demo's.

    make demo
    python docs/_ext/thumbnails.py out/demo/figures

writes docs/images/gallery/NAME.png for every NAME.png of the folder that is a figure of the gallery. What
`fedscape figures draw --paper` made (PAPER-ITEM-NAME.png) stands in where there is no NAME.png.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT, COLOURS, BYTES = 520, 420, 64, 30_000
"""Largest size in pixels, colours in the palette, largest file."""


def thumbnail(picture: Image.Image) -> bytes:
    """A small PNG of a picture: at most WIDTH x HEIGHT and BYTES; the same bytes every time."""
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.convert("RGBA").getchannel("A"))
    for scale, colours in ((1.0, COLOURS), (1.0, 32), (0.85, 32), (0.7, 32), (0.6, 16)):
        small = flat.copy()
        small.thumbnail((int(WIDTH * scale), int(HEIGHT * scale)), Image.Resampling.LANCZOS)
        held = io.BytesIO()
        small.quantize(colours, dither=Image.Dither.NONE).save(held, "PNG", optimize=True)
        if held.tell() <= BYTES:
            break
    return held.getvalue()


def make(folder: Path, out: Path) -> list[Path]:
    """Thumbnails of all figures of the gallery that lie in a folder.

    Raises:
        LookupError: If there are none.
    """
    from figures import gallery

    found = {name: path for name in gallery.names() if (path := _picture(folder, name)) is not None}
    if not found:
        raise LookupError(f"{folder} holds no figure of the gallery; draw them first: fedscape figures gallery RUNS.")
    out.mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        with Image.open(path) as picture:
            (out / f"{name}.png").write_bytes(thumbnail(picture))
    return [out / f"{name}.png" for name in found]


def _picture(folder: Path, name: str) -> Path | None:
    """The picture of a figure, else that of the first item of a paper that it draws."""
    exact = folder / f"{name}.png"
    pattern = rf"[a-z]+-(fig|table)[a-z0-9]*-{re.escape(name)}"
    items = (path for path in sorted(folder.glob(f"*-{name}.png")) if re.fullmatch(pattern, path.stem))
    return exact if exact.exists() else next(items, None)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of drawn figures, such as out/demo/figures")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "images" / "gallery")
    given = parser.parse_args()
    made = make(given.folder, given.out)
    total = sum(path.stat().st_size for path in made)
    sys.stdout.write(f"{len(made)} thumbnails, {total / 1e3:.0f} kB, in {given.out}\n")


if __name__ == "__main__":
    main()
