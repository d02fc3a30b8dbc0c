"""The report is one whole file that needs nothing else, or it is not there."""

import os
import re
import shutil
import stat
import sys

import packed_pages
import pytest

from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from figures.axes.units import ABSENT
from figures.page.configuration import configuration
from figures.page.content import content
from figures.page.named_figures import FIGURES, DrawnFigure
from figures.page.report import page, report
from figures.selection.groups import groups


@pytest.fixture(scope="module")
def text(whole_report):
    return whole_report.read_text()


def embedded(text: str) -> dict:
    return packed_pages.content(text, "figures")


def test_the_page_is_one_file_without_links(text):
    assert len(text) < 3.3e6
    shell = re.sub(r"<script>.*?</script>|(?<=;base64,)[\w+/=]+", "", text, flags=re.DOTALL)
    assert "http" not in shell.replace("http-equiv", "")
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=(?!\"data:)", shell)
    assert "default-src 'none'" in shell
    assert packed_pages.part(text, "plotly").count("plotly.js v") == 1
    script = packed_pages.part(text, "page")
    assert "showSendToCloud: false" in script and "displaylogo: false" in script


def test_the_page_has_every_section_and_figure(text):
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert headings == [
        "Summary",
        "Diagnosis",
        "Accuracy",
        "Landscape",
        "Drift",
        "Weights",
        "Curvature",
        "Cost",
        "Configuration",
        "Seeds, versions and digests",
    ]
    found, wanted = embedded(text), re.findall(r'data-figure="([^"]+)"', text)
    for name in wanted:
        assert name in found or f"{name}:fedavg" in found, name
    assert {"trajectory:fedlaw", "drift-coherence", "end_norm"} <= found.keys()
    for figure in found.values():
        assert not {"template", "sliders", "updatemenus"} & figure["layout"].keys()
    path = found["trajectory:fedlaw"]
    assert path["rounds"] == [0, 1, 2]
    assert [len(frame["data"]) for frame in path["frames"]] == [2, 2, 2]


def test_figures_of_the_gallery_stand_in_their_sections_with_caption_and_text(text):
    sections = dict(re.findall(r'<h2 id="(\w+)">(.*?)\n</details>\n', text, re.DOTALL))
    for section, names in FIGURES.items():
        for name in names:
            assert f'download="{name}.csv"' in sections[section], name
    image = r'<img class="named(?: map)?" src="data:image/png;base64,[^"]+" alt="([^"]+)">'
    pictures = re.findall(rf"{image}</div>\n<figcaption>(.+)<", text)
    assert len(pictures) == sum(map(len, FIGURES.values()))
    assert all(len(alt) > 40 and len(caption) > 40 for alt, caption in pictures)


def test_every_figure_has_a_text_for_those_who_do_not_see_it(text):
    plots = re.findall(r'<div class="plot"[^>]*>', text)
    assert len(plots) == 8
    assert all(re.search(r'aria-label="[^"]{20,}"', plot) and 'tabindex="0"' in plot for plot in plots)


def test_tables_name_seeds_settings_and_fingerprints(text, runs):
    assert "5, 6" in text and "±" in text
    for run in runs:
        assert run.name in text and run.experiment.hash in text
    assert runs[0].about["fingerprint"] in text and runs[0].about["versions"]["torch"] in text
    tables = configuration(groups(runs))
    apart = [name for name, _ in tables["differing"]["rows"]]
    same = dict(tables["common"]["rows"])
    assert apart[0] == "method.name" and "local.lr" not in apart
    assert same["local.lr"] == ["0.05"] and "seed" not in same and not set(apart) & set(same)


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    """That of one run has the same bytes in test_same_bytes.

    Both are made here: a diagnosis of these runs by another test would stand in one of them."""
    first, again = (report(runs[::2], tmp_path / f"{name}.html", points=4).read_bytes() for name in ("first", "again"))
    assert first == again


def test_names_cannot_break_out_of_the_page():
    bad = "</script><script>alert(1)</script>"
    table = {"head": ["Method"], "rows": [(bad, [bad])]}
    content = {
        "title": bad,
        "number": 1,
        "failed": {"reasons": {bad: bad}, "left_out": [bad]},
        "without_data": bad,
        "drawn": {
            section: [DrawnFigure(bad, "data:,", "data:,", bad, bad), DrawnFigure(bad, absent=bad)]
            for section in (*FIGURES, "named")
        },
        "methods": [(bad, "red")],
        "runs": [(bad, bad, 1)],
        "lacking": bad,
        "sections": [(bad, "runs")],
        "summary": table,
        "diagnoses": [],
        "drifts": [],
        "sampled": {"test": bad, "train": bad},
        "cost": table,
        "configuration": {"differing": table, "common": table},
        "fingerprints": table,
        "scene": {"title": bad},
        "figures": {"matrix:x": {"data": [{"name": bad}], "layout": {}}},
    }
    text = page(content)
    assert "<script>alert" not in text
    assert embedded(text)["matrix:x"]["data"][0]["name"] == bad


def test_progress_counts_runs(runs, tmp_path):
    seen = []
    bare = [Run(shutil.copytree(run.folder, tmp_path / run.name, ignore=without_results)) for run in runs[::2]]
    report(bare, tmp_path / "r.html", points=4, progress=lambda done, note: seen.append((done, note)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[0][0] == 0 and seen[-1][0] == len(bare) and runs[0].name in seen[0][1]
    assert set(range(len(bare))) < {done for done, _ in seen}
    assert {"0 of 20", "20 of 20", "3 of 3"} <= {note for _, note in seen}


def test_two_settings_of_a_method_are_told_apart(runs, tmp_path):
    other = simulate(read(runs[0].experiment, "local.lr=0.1", "rounds=2"), runs=tmp_path)
    assert list(groups([*runs, other, runs[0]])) == ["fedavg, rounds 3, lr 0.05", "fedavg, rounds 2, lr 0.1", "fedlaw"]
    near = simulate(read(runs[0].experiment, "local.lr=0.050001", "rounds=2"), runs=tmp_path)
    rows = dict(configuration(groups([runs[0], other, near, runs[2]]))["differing"]["rows"])
    assert rows["local.lr"] == ["0.05", "0.1", "0.050001", "0.05"] and rows["rounds"] == ["3", "2", "2", "3"]
    assert rows["method.server_epochs"] == [ABSENT] * 3 + ["3"], "what a method has not is a dash"
    text = report([runs[0], other], tmp_path / "r.html", points=4).read_text()
    assert "FedAvg, rounds 2, lr 0.1" in text and "trajectory:fedavg, rounds 3, lr 0.05" in embedded(text)


def test_a_run_that_kept_no_models_is_said_to_have_no_landscape(runs, tmp_path):
    bare = simulate(
        read(runs[0].experiment, "keep.clients=none", "keep.globals=none", "clients.per_round=2"), runs=tmp_path
    )
    text = report([bare], tmp_path / "r.html", points=4).read_text()
    found = embedded(text)
    assert "absent" in found["trajectory:fedavg"] and 'id="plot-trajectory"' not in text
    reasons = re.findall(r'<p class="note">([a-z-]+): .+</p>', text)
    assert {"lines-fma-ima", "simplex-weights", "eigen-rounds", "weights-learned"} <= set(reasons)
    (stage,) = packed_pages.content(text, "scene")["runs"]
    assert stage["shown"] == {} and stage["note"].startswith("kept no round with three clients")


without_results = shutil.ignore_patterns("results")


def nothing_is_computed(*_, **__):
    raise AssertionError("computed before the mistake was found")


def test_mistakes_are_found_before_anything_is_computed(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "cached", nothing_is_computed)
    with pytest.raises(LookupError, match="no run was given"):
        report([], tmp_path / "r.html")
    with pytest.raises(ValueError, match="is a folder"):
        report(runs, tmp_path)
    with pytest.raises(ValueError, match="points is 1"):
        report(runs, tmp_path / "r.html", points=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write"):
        report(runs, tmp_path / "file" / "r.html")
    empty = simulate(validated({**runs[0].experiment.resolved(), "seed": 9}), runs=tmp_path)
    for path in (empty.folder / "rounds").iterdir():
        path.unlink()
    with pytest.raises(LookupError, match="is missing"):
        report([*runs, empty], tmp_path / "r.html")
    assert not [path for path in tmp_path.iterdir() if path.is_file() and path.name != "file"]


def test_a_report_that_is_killed_leaves_no_file(runs, tmp_path, monkeypatch):
    """Whatever lies beside the page while it is computed is what a killed process leaves."""
    seen = []

    def computing(*given, **named):
        seen.append(list((tmp_path / "out").iterdir()))
        return content(*given, **named)

    monkeypatch.setattr("figures.page.report.content", computing)
    report(runs[:1], tmp_path / "out" / "r.html", points=2, samples=20)
    assert seen == [[]] and [path.name for path in (tmp_path / "out").iterdir()] == ["r.html"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(runs, tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(ValueError, match="cannot write"):
        report(runs, tmp_path / "r.html")


def test_an_earlier_report_stays_when_the_new_one_fails(runs, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("earlier")
    monkeypatch.setattr(sys.modules[report.__module__], "content", lambda *_: {})
    monkeypatch.setattr(sys.modules[report.__module__], "page", nothing_is_computed)
    with pytest.raises(AssertionError):
        report(runs, path, points=4)
    assert path.read_text() == "earlier" and [entry.name for entry in tmp_path.iterdir()] == ["r.html"]
