"""Encoders of films: GIF by Pillow, MP4 and WebM by ffmpeg."""

import importlib.util
import shutil
from pathlib import Path

import matplotlib as mpl
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter

SUFFIXES = (".gif", ".mp4", ".webm")
"""Formats of films."""

_CODECS = {
    ".mp4": ("libx264", ["-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"]),
    ".webm": ("libvpx-vp9", ["-pix_fmt", "yuv420p", "-b:v", "0", "-crf", "32"]),
}


def require_encoder(path: Path) -> None:
    """Refuse a film that cannot be encoded here, before anything is computed.

    Raises:
        ValueError: If the suffix is none of `SUFFIXES`.
        LookupError: If the encoder is not installed; says what to install.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"cannot write {str(path)!r}; the suffix says the format: {', '.join(SUFFIXES)}.")
    if path.suffix == ".gif":
        if importlib.util.find_spec("PIL") is None:
            raise LookupError("a GIF needs Pillow, which is not installed: pip install 'fedscape[film]'.")
    elif _ffmpeg() is None:
        raise LookupError(
            f"a film in {path.suffix} needs ffmpeg, which is missing: pip install 'fedscape[film]'; or write .gif."
        )


def encoder(path: Path, rate: float) -> AbstractMovieWriter:
    """A writer of frames into this file, `rate` per second.

    Raises:
        ValueError, LookupError: As `require_encoder`.
    """
    require_encoder(path)
    if path.suffix == ".gif":
        return PillowWriter(fps=rate)  # type: ignore[arg-type]  # fractions of frames per second too
    mpl.rcParams["animation.ffmpeg_path"] = _ffmpeg()
    codec, options = _CODECS[path.suffix]
    return FFMpegWriter(fps=rate, codec=codec, extra_args=options)  # type: ignore[arg-type]  # as above


def _ffmpeg() -> str | None:
    """The ffmpeg of this machine, or that of imageio-ffmpeg; None without either."""
    if (found_path := shutil.which("ffmpeg")) is not None:
        return found_path
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    import imageio_ffmpeg

    return str(imageio_ffmpeg.get_ffmpeg_exe())
