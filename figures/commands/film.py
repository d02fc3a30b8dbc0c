"""fedscape figures film."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from figures.commands.opening import HERE, RunSource
from figures.commands.options import Json, RunName
from figures.commands.requirements import require_file
from figures.texts import console


def film(
    run: RunName,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o", "--output"])] = Path("film.gif"),
    kind: Literal["surface", "trajectory"] = "surface",
    rounds: int = 12,
    points: int = 25,
    frames: int = 8,
    rate: float = 12.0,
    turn: float = 60.0,
    ground: Literal["dark", "light"] = "dark",
    source: RunSource = HERE,
    json: Json = False,
) -> None:
    """Write a film of a run over rounds: the lit surface of the loss with a turning camera, above its map.

    A GIF needs Pillow, MP4 and WebM need ffmpeg: pip install 'fedscape[film]' brings both.

    Example: `fedscape figures film fedavg-digits -o film.mp4`

    Args:
        out: File to write: .gif, .mp4 or .webm.
        kind: "surface", the loss on the plane through three clients of each round, or "trajectory", the path of the
            global model on the plane of its principal components.
        rounds: How many rounds are shown, evenly spaced among those that were kept.
        points: Grid points per axis of each plane.
        frames: Frames per round.
        rate: Frames per second.
        turn: Angle that the camera turns through, degrees.
        ground: "dark" or "light".
    """
    from figures.films.encoders import require_encoder

    require_encoder(out)  # refused here, before the run is opened
    require_file(out)
    opened_run = source.open(run)
    from figures.films.film import film as write

    with console.progress(f"filming {opened_run.name}", rounds * frames) as step:
        write(
            opened_run.with_progress(None, console.say),
            out,
            kind=kind,
            rounds=rounds,
            points=points,
            frames=frames,
            rate=rate,
            turn=turn,
            ground=ground,
            progress=lambda done, total: step(done, f"frame {done} of {total}"),
        )
    console.answer([out], {"file": out, "run": opened_run.name}, json=json)
