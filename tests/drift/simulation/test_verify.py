"""Every damaged, missing or foreign file of a run is named; a whole run has no problem."""

import pytest
import tiny
import torch

from drift.analyses.landscapes.planes import global_line
from drift.diagnosis.diagnose import diagnose
from drift.runs.run import Run
from drift.simulation.repair import repair
from drift.simulation.verify import verify
from drift.store import files, links
from drift.store.number_ranges import spans
from figures import cli
from figures.selection.groups import groups


@pytest.fixture
def run(tmp_path):
    return tiny.trained(tmp_path)


def only(problems):
    """The one problem there is, as text."""
    assert len(problems) == 1, problems
    return str(problems[0])


def test_a_whole_run_has_no_problem(run):
    run.cached(global_line, points=3)
    assert verify(run.folder) == []


def test_what_a_stopped_process_leaves_is_no_problem(run):
    (run.folder / "rounds" / ".000003.safetensors.77.part").write_bytes(b"half")
    state, _ = run.state()
    before = {"theta": run.round(1).end, "previous": state["previous"], "buffers": state["buffers"]}
    files.write_state(run.folder, before, 2, links.origin(run.identity, files.link(run.round(1))))
    assert run.rounds() == [0, 1]
    assert verify(run.folder) == []


@pytest.mark.parametrize("name", ["run.json", "state.safetensors", "rounds/000001.safetensors"])
@pytest.mark.parametrize("how", ["truncated", "altered", "foreign"])
def test_every_damaged_file_is_named_and_what_is_told_brings_it_back(run, name, how):
    end = run.round(-1).end
    damage(run.folder / name, how)
    text = only(verify(run.folder))
    assert text.startswith(f"{name}: ")
    assert "delete it" in text
    (run.folder / name).unlink()
    if "together with the run's state.safetensors" in text:
        (run.folder / "state.safetensors").unlink(missing_ok=True)
    again = tiny.trained(run.folder.parent)
    assert again.folder == run.folder
    assert verify(run.folder) == []
    assert torch.equal(again.round(-1).end, end)


@pytest.mark.parametrize("where", ["the Gram matrix", "the link to the round before"])
def test_what_an_altered_round_states_accuses_no_other_file(run, where):
    name = "rounds/000001.safetensors"
    gram = run.round(1).gram.clone()  # the record lies in its file
    text, sought = (run.folder / name).read_bytes(), gram.numpy().tobytes()
    if where != "the Gram matrix":
        sought = files.link(run.round(0)).encode()
    place = text.index(sought) + 9
    (run.folder / name).write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
    assert only(verify(run.folder)).startswith(f"{name}: was altered")
    assert Run(run.folder).round(2).index == 2
    with pytest.raises(files.Damaged, match="was altered"):
        Run(run.folder).round(1)
    assert [(entry.file, entry.done) for entry in repair(run.folder)] == [(name, True)]
    assert torch.equal(Run(run.folder).round(1).gram, gram)


def test_a_state_is_made_again_by_its_rounds_not_by_what_it_states(run):
    path = run.folder / files.STATE
    text, sought = path.read_bytes(), files.link(run.round(2)).encode()
    place = text.index(sought) + 9
    path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
    assert [(entry.file, entry.done) for entry in repair(run.folder)] == [(files.STATE, True)]
    assert path.read_bytes() == text


def damage(path, how):
    content = path.read_bytes()
    if how == "altered":
        place = content.index(b'"seed": 5') + 8 if path.name == "run.json" else len(content) - 3
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    else:
        path.write_bytes(content[: len(content) // 2] if how == "truncated" else b"something else altogether")


def test_a_round_in_the_place_of_the_state_is_named(run):
    (run.folder / "state.safetensors").write_bytes((run.folder / "rounds" / "000001.safetensors").read_bytes())
    with pytest.raises(files.Damaged, match="holds no state of a run"):
        files.read_state(run.folder)


def test_other_tensors_in_the_place_of_a_round_are_named(run):
    files.write_tensors(run.folder / "rounds" / "000001.safetensors", {"mine": torch.zeros(2)}, {"round": 1})
    assert "holds no round" in only(verify(run.folder))


def test_a_run_stopped_before_its_first_commit_has_no_problem(run):
    (run.folder / "state.safetensors").unlink()
    for index in (1, 2):
        (run.folder / "rounds" / f"00000{index}.safetensors").unlink()
    assert verify(run.folder) == []


def test_a_first_round_without_a_state_is_said_to_be_there(run, capsys):
    (run.folder / "state.safetensors").unlink()
    for index in (1, 2):
        (run.folder / "rounds" / f"00000{index}.safetensors").unlink()
    said = (
        "; rounds/000000.safetensors is on disk without state.safetensors, as where a training stops before its first"
    )
    found = Run(run.folder)
    for use in (lambda: found.round(0), lambda: found.round(-1), lambda: diagnose(found), lambda: groups([found])):
        with pytest.raises(LookupError, match=f"has no complete round{said}"):
            use()
    with pytest.raises(SystemExit) as ended:
        cli.main(["verify", str(run.folder)])
    assert not ended.value.code
    assert f"every file is whole{said}" in capsys.readouterr().out.replace("\n", " ")


def test_what_remains_usable_is_said(run):
    path = run.folder / "rounds" / "000001.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert "Whole rounds: 0, 2." in only(verify(run.folder))
    assert run.round(2).index == 2


def test_a_missing_round_is_named(run):
    (run.folder / "rounds" / "000000.safetensors").unlink()
    text = only(verify(run.folder))
    assert text.startswith("rounds/000000.safetensors: is missing")
    assert "Whole rounds: 1-2." in text


def test_a_renamed_round_is_named(run):
    rounds = run.folder / "rounds"
    (rounds / "000001.safetensors").write_bytes((rounds / "000002.safetensors").read_bytes())
    assert "holds round 2, not 1" in only(verify(run.folder))


def test_a_round_of_another_model_is_named(run, tmp_path):
    other = tiny.trained(tmp_path / "other", "task.model=mlp")
    path = "rounds/000001.safetensors"
    (run.folder / path).write_bytes((other.folder / path).read_bytes())
    assert "parameters, the run has" in only(verify(run.folder))


def test_a_round_without_what_was_to_be_kept_is_named(run, tmp_path):
    other = tiny.trained(tmp_path / "other", "keep.clients=none")
    path = "rounds/000001.safetensors"
    (run.folder / path).write_bytes((other.folder / path).read_bytes())
    assert "it holds no clients" in only(verify(run.folder))


@pytest.mark.parametrize(
    "name", ["notes.txt", "rounds/extra.safetensors", "rounds/1 copy.safetensors", "results/old.csv"]
)
def test_a_foreign_file_is_named(run, name):
    (run.folder / name).parent.mkdir(exist_ok=True)
    (run.folder / name).write_text("mine")
    assert only(verify(run.folder)).startswith(f"{name}: no file of a run")
    assert run.rounds() == [0, 1, 2]


def test_a_damaged_result_is_named(run):
    run.cached(global_line, points=3)
    (place,) = (run.folder / "results").glob("*.nc")
    place.write_bytes(place.read_bytes()[:-4])
    assert only(verify(run.folder)).startswith(f"results/{place.name}: ")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(LookupError, match="no folder"):
        verify(tmp_path / "nowhere")
    with pytest.raises(LookupError, match="is not a run"):
        verify(tmp_path)


def test_numbers_are_written_as_ranges():
    assert spans([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert spans([]) == "none"
