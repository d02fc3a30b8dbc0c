"""fedscape publish."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from figures.commands.opening import HERE, RunSource
from figures.commands.options import Integer, Json, Memory, RunNames, Workers, several
from figures.commands.requirements import require_file
from figures.texts import console


def _number_or_all(_: Any, value: str) -> None:
    if value != "all" and not (value.isdecimal() and int(value) >= FEWEST):
        raise ValueError(f"it takes {FEWEST} or more, which a standard error needs, or all.")


FEWEST = 20
"""Samples that --samples takes at least, as `figures.report` does."""


@Parameter(name="*")
@dataclass(frozen=True)
class Landscapes:
    """What the page is evaluated on, and where it opens.

    Args:
        round: Round that the page opens at; all runs with landscapes must have it. Negative numbers count from the last
            one of the first run with stored client models. By default the last.
        samples: Largest number of random samples for planes, the path, the centre offset (test) and the largest
            eigenvalue (training). The page states the standard error. The word all uses every sample; 60,000 may take
            hours. The page leaves out figures that need all samples if it uses fewer.
    """

    round: Integer | None = None
    samples: Annotated[str, Parameter(metavar="INT|all", validator=_number_or_all)] = "1000"


BOTH = Landscapes()
"""The last round, on 1000 samples."""


def publish(
    run: RunNames,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o", "--output"])] = Path("report.html"),
    source: RunSource = HERE,
    also: Annotated[list[str] | None, several("--figures", "NAME")] = None,
    shown: Landscapes = BOTH,
    workers: Workers = 1,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Write one interactive HTML page about runs, a file that you can send: it needs no server and no network.

    The page begins with one to four landscapes side by side, a time line of all rounds, and the reasons in words. Click
    a place to read its loss: exact for a small model, interpolated for others, as the page states. You can change the
    weights of clients. Tables and curves follow below.

    fedscape stores long computations in the folders of the runs: if you stop the command, give it again to resume. If a
    picture cannot be drawn, the page has the reason in its place, and the exit code is 2. The page leaves out damaged
    runs of a folder and names them. For a run that was recorded without its data, the page shows the record; --task
    adds the rest. fedscape refuses a page of more than 10 MB.

    Example: `fedscape publish runs --out page.html --figures lines-globals planes-clients`

    Args:
        out: HTML file to write.
        also: Further figures of the page (fedscape figures list); FILE.py:NAME for your own. By default none.
    """
    require_file(out)
    from drift.plugins.trust import allow_figure
    from drift.store.memory_budget import limited
    from figures.gallery import require

    for name in also or []:
        allow_figure(name)
        require(name)  # refused here, before any run is opened

    left_out: list[str] = []
    opened_runs = source.open_all(run, left_out)
    from figures.page.content import without_data
    from figures.page.remembered_runs import Failed
    from figures.page.report import report as write
    from figures.page.start import round_of_all

    failed, samples = Failed(left_out), shown.samples
    address = "" if shown.round is None else f"#round={round_of_all(opened_runs, shown.round)}"
    speaking_runs = [run.with_progress(None, console.say) for run in opened_runs]
    number = f"{len(speaking_runs)} run{'s' if len(speaking_runs) > 1 else ''}"
    console.say(f"{number}, landscapes and eigenvalues on {samples} samples{'' if samples == 'all' else ' at most'}")
    options: dict[str, Any] = {"figures": also or [], "workers": workers, "task": source.task, "address": address}
    options["samples"] = samples if samples == "all" else int(samples)
    with limited(memory), console.progress("writing the report", len(speaking_runs)) as step:
        write(speaking_runs, out, progress=step, failed=failed, **options)
    content = {"file": out, "runs": [item.name for item in opened_runs], "failed": failed.reasons}
    console.answer([out], content, json=json)
    if note := without_data(opened_runs):
        console.say(note)
    for name, reason in failed.reasons.items():
        console.say(f"{name} {reason}")
    return 2 if failed.reasons else 0
