"""Parts of the report: runs that are read once, progress, diagnoses, costs."""

import re
import shutil
from dataclasses import replace

import packed_pages
import pytest
import tiny
from recordings import recorded

import drift
from drift.analyses.over_seeds import Estimate
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.cost import training_cost
from drift.diagnosis.causes import Cause
from drift.runs.run import Run
from figures.axes.units import ABSENT
from figures.interactive.curves import curves
from figures.page import diagnosis
from figures.page.remembered_runs import Job, JobProgress, Remembered
from figures.page.tables import cost_table, fingerprints
from figures.selection.groups import groups


def test_results_are_read_once_and_are_those_of_the_run(runs, monkeypatch):
    known = Remembered.wrap(runs[0])
    first = known.cached(coherence)
    assert first.identical(runs[0].cached(coherence)) and known.metrics().identical(runs[0].metrics())
    assert known.rounds() == runs[0].rounds() and known == Remembered.wrap(runs[0])
    monkeypatch.setattr(Run, "cached", None)
    assert known.cached(coherence) is first
    known.rounds().clear()
    assert known.rounds() == [0, 1, 2]
    with pytest.raises(TypeError):
        known.cached(coherence, smooth=2)


def test_progress_grows_through_all_jobs_and_what_a_run_lacks_is_left_out(runs):
    seen = []
    jobs = JobProgress(lambda done, note: seen.append(done))

    def lacking(run):
        raise LookupError("not there")

    said = []
    own = [
        Job("first", 1, lambda run: jobs.of_analysis(1, 2)),
        Job("lacking", 3, lacking),
        Job("last", 4, lambda run: jobs.of_analysis(2, 2)),
    ]
    jobs.run_jobs(runs[0].with_progress(None, said.append), 2, own)
    name = runs[0].name
    assert [re.sub(r"[\d.]+ s", "0 s", line) for line in said] == [
        f"{name}: first (part 1 of 3, 0 s)",
        f"{name}: lacking (part 2 of 3, left out)",
        f"{name}: last (part 3 of 3, 0 s)",
    ]
    assert seen == [2, 2 + 1 / 32, 2 + 1 / 8, 2 + 1 / 2, 2 + 3 / 4, 3]
    jobs.of_analysis(1, 2)
    assert seen[-1] == 3


def test_a_diagnosis_tests_nothing_itself_but_tells_what_was_tested(runs, tmp_path, monkeypatch):
    run = Run(shutil.copytree(runs[0].folder, tmp_path / runs[0].name, ignore=shutil.ignore_patterns("results")))
    asked = []
    gain = Estimate(0.2, 0.1, 0.3, 5)
    cause = Cause("rate", "local rate too large", "half of it", gain, 0.4, True, "so", "norms-rounds", command="do it")
    honest = diagnosis.diagnose

    def diagnose(run, *, quick):
        asked.append(quick)
        return honest(run, quick=True) if quick else replace(honest(run, quick=True), causes=(cause,), untested="")

    monkeypatch.setattr(diagnosis, "diagnose", diagnose)
    found = diagnosis.diagnosis(run)
    assert found["untested"] and not found["causes"]["rows"] and found["verdict"].startswith("Read from the record: ")
    assert len(found["state"]["rows"]) == 8
    tested = run.folder / "results" / "followed-0.nc"
    tested.mkdir(parents=True, exist_ok=True)
    found = diagnosis.diagnosis(run)
    tested.rmdir()
    assert asked == [True, False] and "local rate too large" in found["verdict"]
    (row,) = found["causes"]["rows"]
    assert row == ("local rate too large", ["+0.2 [+0.1, +0.3] nats", "40 %", "yes", "half of it; so", "do it"])


def test_costs_are_those_of_one_run_a_method(runs):
    table = cost_table(groups(runs))
    assert [name for name, _ in table["rows"]] == ["FedAvg", "FedLAW"]
    assert all(len(cells) == len(table["head"]) - 1 for _, cells in table["rows"])
    wanted = float(runs[0].cached(training_cost).bytes_up)
    assert table["rows"][0][1][table["head"].index("Upload of a round") - 1] == f"{wanted:.3g} B"


def test_a_run_that_cannot_be_trained_again_has_its_recorded_times(tmp_path):
    run = tiny.trained(tmp_path, "keep.globals=none", "keep.clients=none")
    (_, cells), *_ = cost_table({"fedavg": [run]})["rows"]
    *measured, a_round, whole = cells
    assert set(measured) == {ABSENT} and a_round.endswith("s") and whole.endswith("s")
    assert fingerprints({"fedavg": [run]})["rows"][0][1][4] == ABSENT


def test_the_digest_is_that_of_the_last_model(runs, tmp_path):
    (_, first), (_, other), *_ = fingerprints(groups(runs))["rows"]
    assert len(first[4]) == 16 and first[4] != other[4] and first[3] == other[3]
    copied = Run(shutil.copytree(runs[0].folder, tmp_path / "copy"))
    assert fingerprints({"fedavg": [copied]})["rows"][0][1][4] == first[4]


def test_a_run_without_its_data_has_a_page_of_what_its_record_says(tmp_path, runs, fedscape):
    recorded(tmp_path / "bare", method="mine")
    out = tmp_path / "page.html"
    code, _, err = fedscape("publish", str(tmp_path / "bare"), str(runs[0].folder), "-o", str(out))
    text = out.read_text()
    figures = packed_pages.content(text, "figures")
    assert code == 0 and err.count("bare: recorded without its data. The page shows what the record says") == 1
    assert "bare: recorded without its data." in text
    shown = {name for name, figure in figures.items() if "absent" not in figure}
    assert {"loss", "end_norm", "drift-coherence"} <= shown and "trajectory:mine" not in shown
    assert all(f'download="{name}.csv"' in text for name in ("lines-fma-ima", "eigen-rounds"))  # of the other run


def test_a_number_that_no_run_recorded_is_not_an_empty_figure(tmp_path):
    recorded(tmp_path / "bare")
    with pytest.raises(LookupError, match="no run has a test accuracy in any round"):
        curves([drift.open(tmp_path / "bare")], "accuracy")


def test_a_run_that_is_wrapped_again_keeps_what_it_remembers(runs):
    known = Remembered(runs[0].folder, memory={"rounds": [3]})
    assert Remembered.wrap(known).rounds() == [3]
