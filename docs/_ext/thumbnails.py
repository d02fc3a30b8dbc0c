"""Thumbnails of the gallery page, in full colour: a method keeps the colour that it has in the figure."""

from __future__ import annotations

import io

from PIL import Image

WIDTH, HEIGHT = 460, 400
"""Largest size in pixels."""

LARGEST = 130_000
"""Bytes; a picture of many maps gets a smaller thumbnail."""


def thumbnail(picture: Image.Image) -> bytes:
    """A small PNG of a picture, at most WIDTH x HEIGHT and LARGEST bytes; the same bytes every time."""
    small = Image.new("RGB", picture.size, "white")
    small.paste(picture, mask=picture.convert("RGBA").getchannel("A"))
    size = WIDTH, HEIGHT
    while True:
        small.thumbnail(size, Image.Resampling.LANCZOS)
        written = io.BytesIO()
        small.save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= LARGEST:
            return written.getvalue()
        size = 9 * small.width // 10, 9 * small.height // 10
