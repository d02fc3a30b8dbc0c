"""Figures of the four papers and their state here: which are drawn as captioned, from which runs, by which command.

    python docs/_ext/paper_figures.py              fills docs/papers.md
    python docs/_ext/paper_figures.py --draw OUT   trains the short runs that are absent in OUT/runs and draws every
                                                   item that has runs into OUT/figures

The form of an item is the captioned one if its figure is drawn with its options, over runs that differ in every setting
in which those of the paper differ. Its setting is compared with the paper's in `_ext/paper_settings.py`'s list.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from _ext.evidence import filled, table  # noqa: E402 - after the path is set
from _ext.paper_runs import Source, experiments  # noqa: E402
from _ext.paper_settings import ALWAYS  # noqa: E402
from _ext.paper_sources import SOURCES, TABLES  # noqa: E402
from _ext.paper_values import compared_keys, key_text, text_rows, value_text, values_of  # noqa: E402
from _ext.plan import recorded  # noqa: E402
from drift.claims.campaign import records  # noqa: E402
from drift.config.experiment import Experiment  # noqa: E402
from figures.looks.palette import label as written  # noqa: E402
from figures.papers import catalogue  # noqa: E402
from figures.papers.needed import combinations  # noqa: E402

DATA, PAGE = (ROOT / "docs" / name for name in ("results/data", "papers.md"))
OTHERS = ("claims-of-papers",)
"""Blocks of the page that `evidence.py` fills."""


@dataclass(frozen=True)
class State:
    """An item, and what it is drawn from.

    Args:
        missing: Settings that the paper compares and the drawn runs do not; or why there are no runs.
        differs: Settings of `paper_settings.ALWAYS` with values that the paper's runs do not have.
        fewer: Settings of which fewer values are compared than in the paper, though two or more.
    """

    paper: str
    item: catalogue.Item
    source: Source
    missing: tuple[str, ...]
    differs: tuple[str, ...]
    fewer: tuple[str, ...]

    @property
    def form(self) -> str:
        """Whether the item is drawn as captioned, otherwise, or not."""
        if not (self.source.groups or self.source.recorded):
            return "none"
        return "other" if self.missing else "captioned"

    @property
    def setting(self) -> str:
        """Whose setting the runs have: the paper's, the paper's but for a few named values, or a short one of ours."""
        if self.form == "none":
            return ""
        if not self.differs:
            return "paper's"
        names = ", ".join(key_text(name) for name in self.differs)
        return f"but for {names}" if len(self.differs) <= FEW else "short"

    @property
    def command(self) -> str:
        """The command that draws it from its runs."""
        words = {**self.item.options, **self.source.options}
        named = {name: words.pop(name) for name in ("methods", "smooth") if name in words}
        looks = "".join(f" --{name} {value_text(value)}" for name, value in named.items())
        sets = "".join(f" {name}={value_text(value)}" for name, value in words.items())
        return f"figures draw {self.item.figure}{looks}{f' --set{sets}' * bool(sets)}"


PAPERS = ("ima", "fedlaw", "lss", "fedeve")
FEW = 4
"""Most values in which runs of the paper's setting differ from it."""


@cache
def states() -> tuple[State, ...]:
    """Every figure of the papers, in their order."""
    return tuple(
        _state(paper, item, SOURCES[paper, item.item])
        for paper in PAPERS
        for item in catalogue.load(paper).items
        if item.item.startswith("Fig")
    )


@cache
def states_of_tables() -> tuple[State, ...]:
    """Every table of the papers."""
    return tuple(
        _state(paper, item, TABLES.get((paper, item.item), Source()))
        for paper in PAPERS
        for item in catalogue.load(paper).items
        if item.item.startswith("Table")
    )


def counts(some: Sequence[State]) -> tuple[int, int, int, int]:
    """Number of items, of those drawn, of these in the captioned form, and of these with the paper's setting."""
    in_form = [state for state in some if state.form == "captioned"]
    own = sum(state.setting != "short" for state in in_form)
    return len(some), sum(state.form != "none" for state in some), len(in_form), own


def page() -> str:
    """The counts and the table of docs/papers.md."""
    every = states()
    text = f"Items with data. The last number is of those with the paper's setting but for at most {FEW} values."
    numbers = [(written(paper), *(_counted(kind, paper) for kind in (every, states_of_tables()))) for paper in PAPERS]
    words = "all, drawn, as captioned, in its setting"
    numbers_table = table(("paper", f"figures: {words}", "tables: the same"), numbers)
    rows = [
        (
            f"{written(state.paper)}, {state.item.item}",
            {"captioned": "yes", "other": "other", "none": "no"}[state.form],
            state.setting,
            f"`{state.command.removeprefix('figures draw ')}`" if state.form != "none" else "",
            _why(state),
        )
        for state in every
    ]
    head = ("figure", "as captioned", "setting", "`fedscape figures draw`", "what is missing")
    return f"{text}\n\n{numbers_table}\n\n{table(head, rows)}"


def _counted(some: Sequence[State], paper: str) -> str:
    return ", ".join(map(str, counts([state for state in some if state.paper == paper])))


def _why(state: State) -> str:
    return "; ".join([*state.missing, *state.fewer, *filter(None, [state.source.lacks])])


def _state(paper: str, item: catalogue.Item, source: Source) -> State:
    runs, theirs = text_rows(drawn(source)), text_rows(_papers(item))
    missing = [
        f"{name} is {value_text(source.options[name])}, not {value_text(value)}"
        for name, value in item.options.items()
        if source.options.get(name, value) != value
    ]
    compared = {name: values_of(theirs, name) for name in compared_keys(item, theirs)}
    own = {name: values_of(runs, name) for name in compared}
    own |= {name: own[name] & compared[name] for name in own if name == "method"}  # no other method stands for one
    fewer = {name: (len(own[name]), len(values)) for name, values in compared.items()}
    told = {
        name: f"{here} of {there} values of {key_text(name)}" for name, (here, there) in fewer.items() if here < there
    }
    missing += [text for name, text in told.items() if fewer[name][0] < 2]
    kept = [name for name in ALWAYS if not any(key_text(name) == key_text(key) for key in compared)]
    differs = [name for name in kept if {row.get(name) for row in runs} - {row.get(name) for row in theirs}]
    few = tuple(text for name, text in told.items() if fewer[name][0] > 1)
    return State(paper, item, source, tuple(missing) if runs else (), tuple(differs), few if runs else ())


def drawn(source: Source) -> list[Experiment]:
    """Experiments of the runs that an item is drawn from."""
    files = [path for name in source.recorded for path in recorded(DATA)[name]]
    every = [*experiments(source), *(records.read(path).experiment for path in files)]
    labels = source.options.get("methods", [source.options["method"]] if "method" in source.options else [])
    return [one for one in every if not labels or one.method.label in labels]


def _papers(item: catalogue.Item) -> list[Experiment]:
    return [one for setting in item.settings for one in combinations(item, setting, quick=False)]


def draw(out: Path, only: Sequence[str] = ()) -> Mapping[str, str]:
    """Train what is absent and draw every item; reasons for those that could not be drawn."""
    from drift.simulation.compare import train_all
    from figures.pictures.draw_files import draw as draw_files
    from figures.selection.open_runs import open_run

    refused = {}
    for state in states():
        name = f"{state.paper}-{state.item.slug}"
        if state.form == "none" or (only and name not in only):
            continue
        own = experiments(state.source)
        if own:
            train_all(own, runs=out / "runs")
        paths = [
            *(out / "runs" / one.slug for one in own),
            *(path for item in state.source.recorded for path in recorded(DATA)[item]),
        ]
        stored = ROOT / "figures" / "pictures" / "stored" / f"{state.source.stored}.nc"
        try:
            options = {**state.item.options, **state.source.options}
            runs = stored if state.source.stored else [open_run(path) for path in paths]
            draw_files(
                state.item.figure,
                runs,
                out / "figures",
                stem=name,
                formats=("png",),
                **({} if state.source.stored else options),
            )
        except (ValueError, LookupError) as reason:
            refused[name] = str(reason)
    return refused


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draw", type=Path, metavar="OUT", help="train and draw instead")
    parser.add_argument("--only", nargs="*", default=[], help="items such as ima-fig6a")
    given = parser.parse_args()
    if given.draw:
        refused = draw(given.draw, given.only)
        sys.stdout.write("".join(f"{name}: {reason}\n" for name, reason in refused.items()))
        return 2 if refused else 0
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), {"figures-of-papers": page()}, OTHERS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
