"""Pictures of the gallery page, in full colour: a method keeps the colour that it has in the figure."""

from __future__ import annotations

import io

from PIL import Image

WIDTH = 1200
"""Pixels."""


def web_picture(picture: Image.Image) -> bytes:
    """A picture as WebP, WIDTH pixels wide on white; the same bytes every time."""
    opaque = Image.new("RGB", picture.size, "white")
    opaque.paste(picture, mask=picture.convert("RGBA").getchannel("A"))
    size = WIDTH, round(WIDTH * picture.height / picture.width)
    written = io.BytesIO()
    opaque.resize(size, Image.Resampling.LANCZOS).save(written, "WEBP", quality=85, method=6)
    return written.getvalue()
