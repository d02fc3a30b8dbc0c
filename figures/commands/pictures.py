"""fedscape figures list, draw, gallery."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from figures.commands.look_options import LookOptions
from figures.commands.opening import HERE, RunSource, inside_of
from figures.commands.options import OUT, FigureName, Json, Memory, Options, RunNames, Workers, arguments, flag, several
from figures.commands.requirements import require_folder
from figures.texts import console

figures = App(name="figures", help="List named figures and draw them from runs.")


Paper = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        help="All figures and tables of a paper: fedeve, fedlaw, ima or lss (fedscape list papers). By default none.",
    ),
]


@figures.command(name="list")
def list_(*, paper: Paper = None, json: Json = False) -> None:
    """List the named figures: what each shows, its place in the papers, the runs that it needs and its cost.

    With --paper, list all figures and tables of that paper, each with the named figure that draws it and its cost.

    Example: `fedscape figures list --paper ima`
    """
    if paper is not None:
        from figures.commands.paper_set import HEADS, item_rows

        console.table(item_rows(paper), HEADS, json=json)
        return
    from figures.commands.about import offered
    from figures.gallery import constant, names
    from figures.papers.catalogue import of_figure
    from landscape import plugins

    rows = [
        {
            "name": name,
            "description": plugins.describe("figures.gallery", name),
            "papers": of_figure(name),
            "needs": constant(name, "NEEDS"),
            "cost": constant(name, "COST"),
        }
        for name in names()
    ] + offered("figures.gallery")
    heads = {"name": "figure", "description": "shows", "papers": "items", "needs": "needs", "cost": "cost"}
    console.table(rows, heads, json=json)


@figures.command
def draw(
    name: FigureName,
    run: RunNames | None = None,
    /,
    *,
    paper: Paper = None,
    item: Annotated[list[str] | None, several("--item", "NAME")] = None,
    set: Options = None,
    source: RunSource = HERE,
    out: Annotated[Path, OUT] = Path("out/figures"),
    formats: Annotated[list[str] | None, several("--format", "FORMAT")] = None,
    look: LookOptions | None = None,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Draw one figure as PDF, PNG and SVG, with its numbers as netCDF and CSV; or all figures of a paper.

    The command draws all runs that you name, or refuses and names the setting that differs. From a folder of runs,
    or from files of a campaign, a figure may draw a part; stderr and the picture name the rest. The options from
    --methods to --no-note change the look; a figure refuses those that it does not support. To draw a picture again
    without computing, name its .nc file in place of runs.

    With --paper, every argument is a run or a folder of runs. The command draws each figure of the paper whose runs
    exist, and the cells of tables that have runs, next to the paper's numbers. For the others it prints the commands
    that train their runs. Exit code 2 if none could be drawn.

    Example: `fedscape figures draw accuracy-rounds fedavg-digits`

    Args:
        name: Name of a figure (fedscape figures list); with --paper, a run or a folder of runs in its place.
        out: Folder for the pictures.
        item: Only these figures and tables of the paper, such as fig6a table1. By default all.
        formats: Formats of the picture: pdf, png, svg, eps. By default the first three.
    """
    require_folder(out)
    from drift.store.memory_budget import limited

    words = look.words() if look is not None else {}
    if paper is not None:
        from figures.papers.catalogue import load

        load(paper)  # refused here, before any run is opened
        if set:
            raise ValueError("--set changes one figure, and --paper uses the options of its items; leave one out.")
        from figures.commands.paper_set import draw_paper, opened_or_none
        from figures.looks.matplotlib_style import sheet
        from figures.looks.style import require_formats
        from figures.pictures.draw_files import FORMATS

        sheet(words.get("style", ""))  # refused here, before any run is opened
        require_formats(formats or FORMATS)

        texts = [name, *(run or [])]
        folder = Path(texts[0]).is_dir() and not (Path(texts[0]) / "run.json").exists()
        home = Path(texts[0]) if folder and all(path.is_dir() for path in inside_of(Path(texts[0]))) else source.runs
        with limited(memory):
            paper_runs = opened_or_none(texts, source)
            code = draw_paper(paper, paper_runs, item or [], home, out, json, formats=formats or FORMATS, **words)
        _say_differences(words, formats)
        return code
    if item:
        raise ValueError(f"--item {item[0]} is an item of a paper; name the paper by --paper.")
    if not run:
        raise ValueError(
            "no run is given; give runs or a folder of them before options of several words, as in fedscape figures "
            f"draw {name} RUN --format pdf png."
        )
    from drift.plugins.trust import allow_figure
    from figures.gallery import constant, require

    allow_figure(name)
    require(name)  # refused here, before any run is opened
    options = {**arguments(set), **words}
    saved = next((text for text in run if text.endswith(".nc")), None)
    if saved is not None and len(run) > 1:
        raise ValueError(f"{saved} has the numbers of a picture, and {len(run)} names are given; give it alone.")
    needless = {"--data": source.data, "--task": source.task, "--memory": memory}
    if saved is not None and (asked := [option for option, value in needless.items() if value is not None]):
        raise ValueError(f"{asked[0]} is for runs, and {saved} has computed numbers; leave it out.")
    opened_runs = [] if saved is not None else source.select(run)
    from drift.runs.metric_names import stated
    from figures.commands._draw_files import draw_one, left_out
    from figures.looks.style import require_formats
    from figures.pictures.draw_files import FORMATS, split_words
    from figures.selection.run_selection import map_runs

    split_words(name, options)
    require_formats(formats or FORMATS)
    if saved is None:
        console.say(f"drawing {name} takes {constant(name, 'COST')}")
    elif names := stated():
        console.say(
            f"metrics.{next(iter(names))} is for runs; {saved} has numbers that are computed, drawn as they are."
        )
    with limited(memory), console.stages(f"drawing {name}") as stage:
        shown_runs = map_runs(opened_runs, lambda run: run.with_progress(stage, console.say))
        paths = draw_one(name, saved or shown_runs, out, formats=formats or FORMATS, **options)
    _say_differences(words, formats)
    for line in left_out(paths):
        console.say(f"{name}: {line}")
    console.answer(paths, {"figure": name, "files": paths}, json=json)
    return 0


def _say_differences(words: dict[str, Any], formats: list[str] | None) -> None:
    """Say which font of a style is missing, and what is in its place; and that EPS has no transparency."""
    from figures.looks.matplotlib_style import substitute

    if font := substitute(words.get("style", "")):
        console.say(font)
    if "eps" in (formats or ()):
        console.say("EPS has no transparency: in it, transparent colours are mixed with the ground, and cover others.")


@figures.command
def gallery(
    run: RunNames,
    /,
    *,
    source: RunSource = HERE,
    out: Annotated[Path, OUT] = Path("out/figures"),
    tiny: Annotated[bool, flag("--tiny")] = False,
    workers: Workers = 1,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Draw every figure that these runs allow; exit code 2 if they allow none.

    A figure may draw a part of the runs, such as one method; stderr and the picture name those that it leaves out.

    Example: `fedscape figures gallery runs --tiny`

    Args:
        out: Folder for the pictures.
        tiny: Few points, rounds and random draws: quick and coarse, for a first look.
    """
    require_folder(out)
    opened_runs = source.open_all(run)
    from drift.store.memory_budget import limited
    from figures.commands._draw_files import Job, draw_all, left_out
    from figures.commands._tiny_options import options
    from figures.gallery import names

    jobs: dict[str, Job] = {name: (opened_runs, options(name) if tiny else {}) for name in names()}
    with limited(memory), console.progress("drawing", len(jobs)) as step:
        outcomes = draw_all(jobs, out, workers=workers, progress=step, task=source.task)
    refused = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, str)}
    drawn_files = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, str)}
    content: list[dict[str, Any]] = [{"figure": name, "files": paths} for name, paths in drawn_files.items()]
    content += [{"figure": name, "files": [], "left_out": reason} for name, reason in refused.items()]
    console.answer((paths[0] for paths in drawn_files.values()), content, json=json)
    left_out_lines: dict[str, list[str]] = {}
    for name, paths in drawn_files.items():
        for line in left_out(paths):
            left_out_lines.setdefault(line, []).append(name)
    for line, names_of in left_out_lines.items():
        console.say(f"{', '.join(names_of)}: {line}")
    for reason in dict.fromkeys(refused.values()):
        console.say(f"{', '.join(name for name in refused if refused[name] == reason)}: left out, {reason}")
    return 0 if drawn_files else 2
