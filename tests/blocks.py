"""Code blocks of README and docs, and the running of them: Python in one namespace a page, commands in this process.

Commands and scripts run in an empty folder in which every preset is a tiny experiment. RUN, RUNS, FILE and DIR stand
for a trained run, its folder, that experiment and a folder. What cannot run there is in NOT_RUN with the reason, and is
compiled or parsed.
"""

from __future__ import annotations

import glob
import importlib.util
import io
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tiny
from markdown_it import MarkdownIt
from public_calls import wrong_calls

import drift
import drift.methods
from drift.config import shipped
from figures.axes import fit, map_heights
from figures.cli import _without_trust, app, main
from figures.looks.layout import RoundLayout

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

TINY = tiny.TOML.replace("rounds = 3", "rounds = 6")
"""What every preset is here: few rounds, few samples; long enough for a window of five."""

PAPERS = ("ima", "fedlaw", "lss", "fedeve")

NOT_RUN = {
    ("docs/howto-other-frameworks.md", "fedscape"): "needs its runs; tests/drift/record/test_frameworks.py",
    ("docs/howto-other-frameworks.md", "python"): "needs NVFlare and pfl; tests/drift/record/test_frameworks.py",
    ("README.md", "fedscape demo"): "minutes; tests/test_first_contact.py",
    ("README.md", "fedscape figures draw --paper"): "needs the paper's runs; tests/figures/papers/test_papers.py",
    ("docs/index.md", "fedscape doctor"): "looks at the machine; tests/figures/commands/test_doctor.py",
    ("README.md", "fedscape publish"): "seconds; that of howto-checkpoints.md is run",
    ("docs/index.md", "fedscape demo"): "minutes; tests/test_first_contact.py",
    ("docs/gallery.md", "fedscape figures draw"): "seconds; the README's is run",
    ("docs/results.md", "fedscape reproduce"): "hours; tests/drift/claims/test_campaign.py",
    (
        "docs/results-settings.md",
        "fedscape train",
    ): "hours; tests/drift/claims/test_settings.py reads the same experiments",
    ("docs/results-settings.md", "fedscape pretrain"): "minutes; tests/figures/commands/test_pretrain.py",
    ("docs/results.md", "fedscape claims --files"): "needs the files; tests/drift/claims/test_evidence.py",
    ("docs/results.md", "fedscape figures draw settings-rounds"): "its own tests draw it",
    ("docs/diagnosis.md", "fedscape diagnose"): "seconds; tests/figures/commands/test_diagnose.py",
    ("docs/gallery.md", "fedscape figures gallery"): "minutes; tests/figures/gallery/test_gallery.py",
    (
        "docs/howto-figure.md",
        "fedscape figures draw --paper",
    ): "needs the paper's runs; tests/figures/papers/test_papers.py",
    ("docs/scale.md", "fedscape sweep --workers"): "starts processes; tests/figures/commands/test_sweep_command.py",
    ("docs/scale.md", "fedscape sweep --cluster"): "needs a Dask scheduler; tests/drift/engines/test_cluster.py",
    ("docs/scale.md", "fedscape analyse --cluster"): "needs a Dask scheduler; tests/drift/engines/test_cluster.py",
    ("docs/howto-transformers.md", "fedscape import"): "a pattern; tests/landscape/models/test_files_hf.py",
    ("docs/howto-adapters.md", "python app.py"): "needs flwr; tests/drift/importers/test_flower_app.py",
    ("docs/howto-adapters.md", "fedscape analyse"): "needs the app's run; tests/drift/importers/test_flower_app.py",
    ("docs/howto-flower.md", "fedscape"): "needs a Flower app; tests/drift/importers/test_flower.py",
    ("docs/howto-flower.md", "python"): "needs flwr; tests/drift/importers/test_flower_app.py",
    ("docs/tutorial-federated.md", "python app.py"): "needs flwr; tests/drift/importers/test_flower_app.py",
    ("docs/tutorial-federated.md", "fedscape diagnose"): "seconds; tests/figures/commands/test_diagnose.py",
    ("docs/tutorial-compare.md", "fedscape diagnose"): "seconds; tests/figures/commands/test_diagnose.py",
    ("docs/explore.md", "fedscape explore"): "a server; tests/figures/explore",
    ("docs/explore.md", "python"): "needs a notebook; tests/test_notebooks_browser.py",
}
"""Why a command (by page, verb and perhaps an option) or the Python of a page is only parsed or compiled."""

OUTSIDE = {
    "pip": "installs packages",
    "flwr": "needs flwr; tests/drift/importers/test_flower.py",
    "flower-superlink": "needs flwr; tests/drift/importers/test_flower.py",
    "flower-supernode": "needs flwr; tests/drift/importers/test_flower.py",
    "python -c": "reads what a cluster has written",
    "export": "the shell's own",
    "dask": "needs a cluster",
    "srun": "needs a Slurm cluster",
    "until": "waits for a cluster",
    "for": "starts programs of flwr; tests/drift/importers/test_flower.py",
}
"""Other programs that blocks show, and why they are not run; `make` and `python -m` are looked up instead."""


@dataclass(frozen=True)
class Block:
    """A code block: python, bash or text (neither Python nor commands), its first line in the file, its content."""

    language: str
    line: int
    text: str


def blocks(page: Path) -> list[Block]:
    """All code blocks of a page, indented ones too, directives left out."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    found = [token for token in tokens if token.type in ("fence", "code_block") and not token.info.startswith("{")]
    return [Block(_language(one.info.strip(), one.content), one.map[0] + 1, one.content) for one in found]


def _language(info: str, text: str) -> str:
    if info in ("python", "py"):
        return "python"
    commands = ("fedscape ", "make ", "python -m ", "pip ", "dask ", "#SBATCH")
    shown = any(line.startswith(commands) for line in text.splitlines())
    return "bash" if info in ("bash", "sh", "console") or (not info and shown) else "text"


STAND_INS = {"ADDRESS": "tcp://localhost:8786"}
"""Values of shell variables that a command sets which is not run here; others are 2."""


@dataclass
class Session:
    """A page being read: where it is, what its Python and its shell have defined, what was not run and why."""

    page: str
    names: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    only_read: bool = False

    def reason(self, what: str) -> str | None:
        """Why a command line, or "python", is not run on this page."""
        if self.only_read:
            return "the page is only read"
        for (page, shown), reason in NOT_RUN.items():
            if page == self.page and all(word in what.split() for word in shown.split()):
                self.left_out.append(f"{shown}: {reason}")
                return reason
        return None

    def python(self, block: Block) -> None:
        """Run a block in the page's namespace, or only compile it."""
        code = compile("\n" * block.line + block.text, self.page, "exec")
        if not self.reason("python"):
            exec(code, self.names)

    def bash(self, block: Block) -> None:
        """Run the lines of a block, continued ones joined; where output goes, or is piped to, is left out."""
        for line in block.text.replace("\\\n", " ").splitlines():
            for command in re.split(r" [>|].*$", line)[0].split(" && "):
                if taken := re.fullmatch(r"(\w+)=\$\((.*)\)", command.strip()):
                    with redirect_stdout(io.StringIO()) as told:
                        self.command(shlex.split(taken[2]))
                    self.variables[taken[1]] = told.getvalue().strip()
                elif (tokens := shlex.split(command.rstrip("& "), comments=True)) and tokens[0] != "#SBATCH":
                    self.command(tokens)

    def command(self, tokens: list[str]) -> None:
        """Run one command, or look it up."""
        program, *rest = tokens
        if program == "fedscape":
            self.fedscape(rest)
        elif program == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert rest[0] in targets, f"{self.page} names make {rest[0]}"
        elif program == "python" and rest[0] == "-m":
            _require_module(rest[1:])
        elif program == "python" and rest[0].endswith(".py"):
            if not self.reason(f"python {rest[0]}"):
                self.script(rest[0])
        else:
            known = next((one for one in OUTSIDE if tokens[: len(one.split())] == one.split()), None)
            assert known, f"{self.page} shows {' '.join(tokens)}; say in OUTSIDE why it is not run"

    def script(self, path: str) -> None:
        """Run a script that the page has made; one of the repository must exist."""
        if Path(path).exists():
            runpy.run_path(path)
        assert Path(path).exists() or (ROOT / path).exists(), f"{self.page} runs {path}, which is not there"

    def fedscape(self, tokens: list[str]) -> None:
        """Run a command of ours, by one worker, pictures in one format; exit code 0 is expected."""
        if tokens[0] == "publish":  # of one run, as a page of many takes long
            tokens = ["RUN" if token == "RUNS" else token for token in tokens]
        given = [found for token in tokens for found in self.meant(token)]
        if self.reason(" ".join(["fedscape", *tokens])):
            app.parse_args(_without_trust(given), exit_on_error=False, print_error=False)
            return
        if "--seeds" in given:  # two of them
            third = given.index("--seeds") + 3
            given[third:] = [word for word in given[third:] if not word.isdigit()]
        if "--workers" in given:
            given[given.index("--workers") + 1] = "1"
        if given[:2] == ["figures", "draw"] and "--format" not in given:
            given += ["--format", "png"]
        with pytest.raises(SystemExit) as left:
            main(given)
        assert left.value.code == 0, f"{self.page}: fedscape {' '.join(tokens)}"

    def meant(self, token: str) -> list[str]:
        """What a word of a command stands for here."""
        runs = sorted(str(path) for path in Path("runs").glob("*-*"))
        word = re.sub(r"\$(\w+)", lambda name: self.variables.get(name[1]) or STAND_INS.get(name[1], "2"), token)
        word = word.replace("fashion-mnist", "blobs")  # the data of the tiny experiment
        word = word.replace("folds=20", "folds=3")  # which has seven test samples
        word = word.replace("points=21", "points=5")
        word = {"RUNS": "runs", "RUN": next(iter(runs), ""), "FILE": "tiny.toml", "DIR": "."}.get(word, word)
        return sorted(glob.glob(word)) or [word] if "*" in word else [word]


def _require_module(tokens: list[str]) -> None:
    """`python -m` names a module of ours that knows the options, or one of Python's own."""
    name, *options = tokens
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None, name
    if name.startswith("benchmarks."):
        source = Path(found.origin).read_text()
        sources = source + "".join(path.read_text() for path in (ROOT / "benchmarks").glob("_*.py"))
        assert not [word for word in options if word.startswith("--") and f'"{word}"' not in sources], tokens


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to an empty folder in which every preset is the tiny experiment, by name and by path."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(ROOT)
    presets = {name: folder / "experiments" / path.name for name, path in shipped.presets().items()}
    (folder / "experiments").mkdir()
    for path in [*presets.values(), folder / "tiny.toml"]:
        method = path.stem.partition("-")[0]  # a paper's setting is that of its method
        path.write_text(TINY + (f'\n[method]\nname = "{method}"\n' if method in PAPERS else ""))
    for module in (shipped, importlib.import_module("drift.config.load")):
        monkeypatch.setattr(module, "presets", lambda: presets)
    leave_out_layout(monkeypatch)
    monkeypatch.setattr(drift.methods, "__path__", [*drift.methods.__path__, str(folder / "drift" / "methods")])


def leave_out_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures without the layout of their panels, which takes half the time; test_drawings looks at it."""
    for module in (fit, map_heights):
        monkeypatch.setattr(module, "lay_out", lambda figure: None)
    monkeypatch.setattr(RoundLayout, "execute", lambda self, figure: None)


def read(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every command of a page apart, compile its Python and look its calls up; nothing is run."""
    prepare(folder, monkeypatch)
    session, shown = Session(str(page.relative_to(ROOT)), only_read=True), blocks(page)
    for block in shown:
        if block.language == "bash":
            session.bash(block)
    assert wrong_calls(block.text for block in shown if block.language == "python") == []


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Run a page from top to bottom in an empty folder; files that it shows, and the run called RUN, are made first."""
    prepare(folder, monkeypatch)
    before = set(sys.modules)
    session, shown = Session(str(page.relative_to(ROOT))), blocks(page)
    files = {block: found[1] for block in shown if (found := re.match(r"# ([\w/]+\.py)\n", block.text))}
    for block, name in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        compile(block.text, name, "exec")
    if any(one.language == "bash" and re.search(r"\bRUNS?\b", one.text) for one in shown):
        tiny.trained(folder / "runs", "rounds=6")
    try:
        if (folder / "make.py").exists():
            runpy.run_path("make.py")
        for block in shown:
            if block.language == "bash":
                session.bash(block)
            elif block.language == "python" and block not in files:
                session.python(block)
        for name in files.values():
            if name.startswith("test_"):
                checks = runpy.run_path(name)
                [check() for title, check in checks.items() if title.startswith("test_")]
    finally:
        for module in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[module], "__file__", "")):
                del sys.modules[module]
    return session
