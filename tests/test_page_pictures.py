"""The pictures of README and docs: each is of a figure, of its runs, readable, and as the sources here draw it."""

import io
import json
import re
from functools import cache

import blocks
import numpy as np
import pytest
from PIL import Image
from visual_linter import lint

from figures import gallery
from figures.pictures.draw_files import picture
from landscape.results import netcdf_files

DOCS = blocks.ROOT / "docs"
pytestmark = pytest.mark.skipif(not (DOCS / "images").is_dir(), reason="a source distribution has no pictures")


@pytest.fixture(autouse=True)
def _extensions(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)


def test_the_gallery_page_shows_every_figure_once():
    from _ext import facts

    shown = re.findall(r"```\{pictures\} (\w+)", (DOCS / "gallery.md").read_text())
    assert shown == list(facts.QUESTIONS)
    assert sorted(name for names in facts.QUESTIONS.values() for name in names) == sorted(gallery.names())
    assert facts.split("Loss on Dir(0.1) (IMA paper, Fig. 2 (left)).") == (
        "Loss on Dir(0.1)",
        "IMA paper, Fig. 2 (left)",
    )
    assert facts.split("Loss over rounds.") == ("Loss over rounds", "")
    assert facts.items_of(["ima Fig. 6a", "lss Table 4", "lss Table 4, iid"]) == "IMA Fig. 6a; LSS Table 4"


def test_pictures_of_real_runs_have_their_numbers():
    from _ext import showcase

    page = (DOCS / "gallery.md").read_text()
    assert {path.stem for path in showcase.IMAGES.glob("*.png")} == set(showcase.PICTURES)
    for name, shown in showcase.PICTURES.items():
        assert f"images/showcase/{name}.png" in page
        assert netcdf_files.load(showcase.NUMBERS / f"{name}.nc").attrs["figure"] == shown.figure


def test_a_card_states_a_finding_and_shows_one_panel_whole_or_the_first_of_several():
    from _ext import facts

    assert facts.finding("topology-rounds") == "One minimum on 44 of 50 planes."
    assert facts.finding("barriers-pool").startswith("Mean barrier: "), "behind the source of the first sentence"
    assert facts.finding("planes-random") == facts.finding("ranking-table") == "", "panels alone, or no picture"
    assert facts.is_whole("plane-round") and facts.is_whole("accuracy-table")
    assert not any(map(facts.is_whole, ("planes-clients", "numbers-rounds", "simplex-weights")))


def test_the_gallery_has_the_numbers_of_the_claim_that_it_names():
    (row,) = (
        line.split("|")
        for line in (DOCS / "results.md").read_text().splitlines()
        if line.startswith('|<a id="ima-mean-below--ima-table1-fmnist-shards2"')
    )
    mean, low, high = (float(number) for number in re.findall(r"[+-][\d.]+", row[4]))
    shown = " ".join((DOCS / "gallery.md").read_text().split())
    assert f"by {mean:.2f} nats [{low:.2f}, {high:.2f}], [not significantly]" in shown and float(row[7]) > 0.05
    assert f"(p = {float(row[7]):.2f})" in shown


@pytest.mark.slow  # tests/figures/gallery/test_drawings.py looks at these figures of other runs
def test_pictures_of_real_runs_are_drawn_from_their_numbers():
    from _ext import showcase

    for name, shown in showcase.PICTURES.items():
        assert lint(picture(shown.figure, showcase.NUMBERS / f"{name}.nc")) == []


def test_pictures_of_the_gallery_are_those_of_figures_and_fit_on_a_page():
    from _ext import facts

    there = {path.stem: path for path in facts.IMAGES.iterdir()}
    assert there
    assert set(there) <= set(gallery.names()) - set(facts.NOT_DRAWN), "a new figure may wait for make pictures"
    assert set(there) == set(json.loads(facts.RECORD.read_text())["seen"])
    assert sum(path.stat().st_size for path in there.values()) < 8_000_000
    sizes = {}
    for name, path in there.items():
        with Image.open(path) as picture:
            sizes[name] = picture.size
    assert {width for width, _ in sizes.values()} == {1200}


def test_pictures_of_the_explorer_are_readable_in_a_column_and_small():
    paths = sorted((DOCS / "images").glob("explore-*.png"))
    assert paths
    for path in paths:
        with Image.open(path) as picture:
            assert picture.width <= 1024, f"{path.name}: 13 pixels of text are 8 in a column of 640"
        assert path.stat().st_size < 400_000


@pytest.mark.slow
def test_no_picture_of_readme_and_docs_is_stale():
    """Settings of runs, options and sources are those that the pictures were made with."""
    from _ext import remake

    assert not (names := remake.stale()), f"make pictures: {', '.join(names)}"


def test_every_picture_that_a_page_shows_is_made_by_the_one_command_or_measured():
    from _ext import remake, showcase, tutorials

    shown, real = set(), {f"showcase/{name}" for name in showcase.PICTURES}
    for page in blocks.PAGES:
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            shown.add((page.parent / target).resolve().relative_to(DOCS / "images").as_posix())
    assert shown
    drawn = {f"gallery/{name}" for name in remake.plan()}
    lesson = {f"tutorials/tutorial-{name}" for page in tutorials.pages() for name in tutorials.pictures(page)}
    assert {name.rpartition(".")[0] for name in shown} <= {*drawn, *remake.MEASURED, *real, *lesson}
    assert {f"tutorials/{path.stem}" for path in tutorials.IMAGES.iterdir()} == lesson
    names = [path.name for path in (DOCS / "images").rglob("*.webp")]
    assert len(set(names)) == len(names), "Sphinx renames the second, and the gallery links to the first"
    assert set(remake.GROUPS) & set(gallery.names()) == set(remake.GROUPS)


def test_runs_of_the_pictures_are_all_different_and_groups_exist():
    from _ext import plan

    slugs = [one.slug for group in plan.planned().values() for one in group]
    assert len(set(slugs)) == len(slugs)
    assert {group for groups in plan.GROUPS.values() for group in groups} <= set(plan.planned())


def test_figures_of_the_pages_get_the_runs_that_their_papers_compare():
    """IMA Figs. 2 to 4: with and without decay; FedLAW Figs. 5, 6: hybrid partition; FedEve Figs. 3a, 4."""
    from _ext import plan

    from drift.plugins import tables

    groups = plan.planned()

    def runs(name):
        return [one for group in plan.GROUPS[name] for one in groups[group]]

    for name in ("bias-rounds", "locality-rounds", "error-averaged"):
        rates = {one.local.lr_decay for one in runs(name)}
        assert 1.0 in rates
        assert len(rates) == 2
        assert plan.OPTIONS[name]["by"] == "local.lr_decay"
    assert {tables.name(one.clients.partition) for one in runs("coherence-groups")} == {"hybrid_dirichlet"}
    assert {one.method.label for one in runs("coherence-groups")} == {"fedavg", "fedlaw-gws"}
    assert len({one.clients.partition.concentration for one in runs("labels-scatter")}) >= 3


def test_recorded_runs_of_the_pictures_are_there():
    from _ext import plan, remake

    for name, items in plan.RECORDED.items():
        assert name not in plan.GROUPS
        files = [plan.recorded(remake.DATA)[item] for item in items]
        assert all(files)
        assert remake.plan()[name].files == tuple(path for item in files for path in item)


def test_the_table_of_rounds_to_a_target_says_something_in_each_row():
    """All seeds reach it, and no row repeats another, as those of IMA do before it starts."""
    from _ext import plan, remake

    from figures.gallery import rounds_target
    from figures.selection import open_runs

    options = dict(plan.OPTIONS["rounds-target"])
    chosen = options.pop("methods")
    runs = [run for run in map(open_runs.open_run, remake.plan()["rounds-target"].files) if run.label in chosen]
    rows = [row[~np.isnan(row)].tolist() for row in rounds_target.data(runs, **options).measured.values[:, 0]]
    assert np.isfinite(np.concatenate(rows)).all()
    assert len(set(map(tuple, rows))) == len(chosen)


def test_a_changed_setting_option_or_source_makes_a_picture_stale(tmp_path, monkeypatch):
    from _ext import plan, remake

    planned = remake.planned
    monkeypatch.setattr(remake, "sources", cache(remake.sources))
    monkeypatch.setattr(remake, "planned", cache(planned))
    now = remake.digests()
    assert set(now) == {f"{name}.webp" for name in remake.plan()}
    for name in now:
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(remake, "IMAGES", tmp_path)
    monkeypatch.setattr(remake, "RECORD", tmp_path / "pictures.json")
    assert remake.stale() == sorted(now), "no record"
    remake.RECORD.write_text(json.dumps({"pictures": now}))
    assert remake.stale() == []
    with monkeypatch.context() as patch:
        patch.setattr(remake, "plan", lambda drawn=remake.plan: {**drawn(), "new-figure": remake.Picture((), (), {})})
        patch.setattr(remake, "sources", lambda name, read=remake.sources: [] if name == "new-figure" else read(name))
        assert remake.stale() == [], "a figure that was never drawn is new, not stale"
    (tmp_path / "holiday.webp").write_bytes(b"")
    (tmp_path / "variance-rounds.webp").unlink()
    assert remake.stale() == ["holiday.webp", "variance-rounds.webp"]
    (tmp_path / "holiday.webp").unlink()
    (tmp_path / "variance-rounds.webp").write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setitem(remake.OPTIONS, "planes-clients", {"points": 9})
        assert remake.stale() == ["planes-clients.webp"]
    with monkeypatch.context() as patch:
        patch.setattr(remake, "planned", planned)
        patch.setitem(plan.FURTHER, "shrink", (("method=shrink", "rounds=7"),))
        assert remake.stale() == ["shrink-rounds.webp"]
    with monkeypatch.context() as patch:
        patch.setattr(remake, "sources", lambda name: [DOCS / "conf.py"])
        assert remake.stale() == sorted(now)
    named = {path.relative_to(blocks.ROOT).as_posix() for path in remake.sources("variance-rounds")}
    assert {
        "figures/gallery/variance_rounds.py",
        "figures/looks/style.py",
        "drift/analyses/rounds/variance.py",
    } <= named


def test_the_words_of_a_docstring_make_no_picture_stale(tmp_path):
    from _ext import remake

    path, texts = tmp_path / "one.py", []
    for word in ("old", "newer\nwords"):
        path.write_text(
            f'"""{word}"""\nX = "kept"  # {word[:3]}\n\n\ndef f():\n    """{word}."""\n    return """text"""\n'
        )
        texts.append(remake._code(path))
    assert texts[0].replace(b"old", b"new") == texts[1] and b"kept" in texts[1] and b"text" in texts[1]


def test_a_web_picture_keeps_the_colours_of_the_methods_and_its_bytes():
    """Beside a colour map with hundreds of others, such as that of a plane."""
    from _ext import web_pictures
    from matplotlib.colors import to_rgb

    from figures.looks import style

    names = ("fedavg", "ima", "fedlaw", "fedeve", "lss")
    picture = Image.effect_noise((1400, 840), 200).convert("RGBA")
    colours = [tuple(round(255 * share) for share in to_rgb(style.colour(name))) for name in names]
    for row, colour in enumerate(colours):
        picture.paste(Image.new("RGBA", (1400, 40), (*colour, 255)), (0, 400 + 80 * row))
    with Image.open(io.BytesIO(web_pictures.web_picture(picture))) as smaller:
        assert (smaller.mode, smaller.size) == ("RGB", (1200, 720))
        for row, colour in enumerate(colours):
            shown = smaller.getpixel((600, (420 + 80 * row) * 1200 // 1400))
            assert max(abs(one - other) for one, other in zip(shown, colour, strict=True)) <= 8
    assert web_pictures.web_picture(picture) == web_pictures.web_picture(picture)
