"""The report computes landscapes on a part of the samples, and says so; small sets are taken whole, as before."""

import re
import shutil

import numpy as np
import packed_pages
import pytest
import tiny

from drift.analyses.curvature.eigenvalues import eigen_rounds
from drift.analyses.landscapes.minima import round_minimum
from drift.analyses.landscapes.planes import round_plane
from drift.analyses.selected_samples import fewer, number_of, selected_samples
from drift.runs import cache
from drift.runs.run import Run
from figures.page.report import report
from figures.page.sampled import landscape_words


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with 120 training and 80 test samples or so: more than a report is asked for here."""
    return tiny.trained(tmp_path_factory.mktemp("runs"), "task.dataset_options={samples=300}", "rounds=2")


def bare(run, folder):
    """A copy of a run without results."""
    return Run(shutil.copytree(run.folder, folder / run.name, ignore=shutil.ignore_patterns("results", ".lock")))


def embedded(text):
    return packed_pages.content(text, "figures")


def test_the_page_says_on_how_many_samples_its_landscapes_are(run, tmp_path):
    text = report([run], tmp_path / "r.html", points=5, samples=20).read_text()
    test, train = number_of(run, "test"), number_of(run, "train")
    assert 20 < test < 1000 and 20 < train < 1000
    found = embedded(text)
    words = found["trajectory:fedavg"]["layout"]["meta"]["samples"]
    assert re.fullmatch(
        rf"On 20 of the {test} test samples, selected at random; standard error of a loss above the lowest one: "
        r"median [\d.e-]+ nats, at most [\d.e-]+ nats\.",
        words,
    ), words
    assert f"Centre offset: on 20 of the {test} test samples" in text
    assert f"λ₁: on 20 of the {train} training samples" in text
    reason = f"it evaluates all test samples, this page 20 of the {test} test samples."
    assert re.findall(rf"([a-z-]+): {reason}", text) == ["lines-fma-ima", "simplex-weights", "eigen-rounds"]


def test_a_figure_of_all_samples_is_shown_where_it_is_asked_for(run, tmp_path):
    text = report([run], tmp_path / "r.html", points=4, samples=20, figures=["lines_fma_ima"]).read_text()
    assert text.count('download="lines-fma-ima.csv"') == 1 and 'download="eigen-rounds.csv"' not in text
    assert 'id="named"' not in text  # it stands in its own section


def test_a_part_is_the_loss_of_these_samples_and_its_error_that_of_its_folds(run):
    part = run.cached(round_plane, points=3, samples=20, folds=20)
    task, chosen = run.task, selected_samples(run, -1, "test", 20)
    middle = run.round(-1).kept("clients")[:3].mean(0)
    losses = task.per_sample(task.outputs(middle, chosen), chosen.targets)
    assert float(part.mark_loss.sel(mark="mean")) == pytest.approx(float(losses.mean()), rel=1e-5)
    assert (part.attrs["samples"], part.attrs["samples_of"]) == (20, number_of(run, "test"))
    words = landscape_words([part, part])
    assert f"at most {float(part.loss_sampling_error.max()):.2g} nats" in words
    assert f"median {float(part.loss_sampling_error.median()):.2g} nats" in words


def test_eigenvalues_and_centre_are_those_of_the_part(run):
    eigen = [run.cached(eigen_rounds, rounds=[1], k=1, samples=number) for number in (20, None)]
    assert not np.allclose(eigen[0].eigenvalue, eigen[1].eigenvalue, rtol=1e-3)
    assert eigen[0].attrs["samples_of"] == number_of(run, "train") and "samples_of" not in eigen[1].attrs
    few, whole = (run.cached(round_minimum, points=7, samples=number) for number in (20, None))
    assert few.attrs["samples"] == 20 and "samples" not in whole.attrs
    assert float(few.minimum_offset) != float(whole.minimum_offset)


def test_small_sets_are_taken_whole_and_the_page_says_nothing(run, tmp_path):
    usual, whole = (
        report([run], tmp_path / f"{samples}.html", points=4, samples=samples).read_text() for samples in (2000, "all")
    )
    assert usual == whole
    assert not any("meta" in figure.get("layout", {}) for figure in embedded(usual).values())
    assert "selected at random" not in re.sub(r"<script.*?</script>", "", usual, flags=re.DOTALL)
    assert fewer(run, "test", number_of(run, "test")) is None and fewer(run, "test", 20) == 20


@pytest.mark.parametrize("samples", [0, 19, -1, "some", None])
def test_too_few_samples_are_refused_before_anything_is_computed(run, tmp_path, samples):
    with pytest.raises(ValueError, match=rf"samples is {samples!r}; give 20 or more, .* or 'all'"):
        report([run], tmp_path / "r.html", samples=samples)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", ["19", "0", "some", "2.5"])
def test_the_command_refuses_too_few_samples_in_one_line(fedscape, given):
    code, out, err = fedscape("publish", "RUN", "--samples", given)
    assert (code, out) == (2, "")
    assert f"--samples of publish is {given!r}; it takes 20 or more" in err and "or all" in err
    assert len(err.strip().splitlines()) == 1


def test_without_a_terminal_every_part_is_a_line(fedscape, run, tmp_path):
    code, _, err = fedscape("publish", bare(run, tmp_path).folder, "--samples", "20")
    assert code == 0
    first, *parts = err.strip().splitlines()
    assert first == "1 run, landscapes and eigenvalues on 20 samples at most"
    found = [re.fullmatch(rf"{re.escape(run.name)}: (.+) \(part (\d+) of (\d+), [\d.]+ s\)", line) for line in parts]
    found = [match for match in found if match is not None]
    assert [int(match[2]) for match in found] == list(range(1, len(found) + 1))
    assert {int(match[3]) for match in found} == {len(found)}
    assert {"drift", "Hessian eigenvalue", "landscape of round 0", "landscape of round 1"} <= {
        match[1] for match in found
    }


def test_workers_compute_every_part_and_say_so(run, tmp_path, monkeypatch):
    """What this process then draws is all stored, and the page is that of one process."""
    own, said, seen = bare(run, tmp_path), [], []

    def only_stored(run, analysis, arguments):
        result = cache.stored(run, analysis, arguments)
        assert result is not None, analysis.__name__
        return result

    with monkeypatch.context() as patched:
        patched.setattr(cache, "cached", only_stored)
        options = {"points": 4, "samples": 20, "progress": lambda done, note: seen.append(done)}
        told = own.with_progress(None, said.append)
        together = report([told], tmp_path / "together.html", workers=2, **options).read_text()
    assert "left out" not in " ".join(said) and len(said) >= 10
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == 1
    assert together == report([own], tmp_path / "alone.html", points=4, samples=20).read_text()
    with pytest.raises(ValueError, match="workers is 0; give 1 or more"):
        report([own], tmp_path / "none.html", workers=0)
