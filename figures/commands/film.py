"""fedscape film."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from figures.commands.opening import HERE, RunSource
from figures.commands.options import Integer, Json, RunNames
from figures.commands.requirements import require_file
from figures.texts import console


def film(
    run: RunNames,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o", "--output"])] = Path("film.gif"),
    round: Integer | None = None,
    rounds: Integer | None = None,
    points: Integer = 25,
    frames: Integer | None = None,
    rate: float = 15.0,
    ground: Literal["dark", "light"] = "dark",
    source: RunSource = HERE,
    json: Json = False,
) -> None:
    """Write a film of a run over rounds, or of one round by --round: its loss as a lit surface above its map.

    With --round, the global model splits into the clients of that round. Each client slides along the steps of its
    training into the part of the map where its own loss is lowest, and the server combines their models. Two bars then
    show the loss due to sampling drift and to local steps. Two runs with the same clients in that round are shown side
    by side. The film lasts eight seconds. A GIF needs Pillow, MP4 and WebM need ffmpeg: pip install 'fedscape[film]'
    installs both.

    Example: `fedscape film fedavg-digits -o film.mp4 --round 5`

    Args:
        out: File to write: .gif, .mp4 or .webm.
        round: Show this round alone; negative numbers count from the last one with stored client models. By default the
            film shows the global model and its clients over many rounds.
        rounds: Number of rounds without --round, evenly spaced among those with stored models. By default 12.
        points: Grid points per axis of the plane.
        frames: Frames per round, without --round. By default 8.
        rate: Frames per second.
        ground: Background of the film.
    """
    from figures.films.encoders import require_encoder

    require_encoder(out)  # refused here, before the run is opened
    require_file(out)
    if round is not None and (rounds is not None or frames is not None):
        raise ValueError("--rounds and --frames belong to a film over rounds; leave them out, or leave out --round.")
    rounds, frames = 12 if rounds is None else rounds, 8 if frames is None else frames
    opened_runs = [run.with_progress(None, console.say) for run in source.open_all(run)]
    if round is None and len(opened_runs) > 1:
        raise ValueError(f"{len(opened_runs)} runs are given; a film over rounds shows one; name one, or give --round.")
    names = " and ".join(run.name for run in opened_runs)
    look: dict[str, Any] = {"points": points, "rate": rate, "ground": ground}
    with console.progress(f"filming {names}", rounds * frames) as step:
        look["progress"] = lambda done, total: step(done, f"frame {done} of {total}")
        if round is None:
            from figures.films.film import film as write

            write(opened_runs[0], out, rounds=rounds, frames=frames, **look)
        else:
            from figures.films.round_film import film_round

            film_round(opened_runs, out, round=round, **look)
    console.answer([out], {"file": out, "run": names}, json=json)
