"""Absurd sizes, numbers and nesting are refused in one line, at once."""

import errno
import importlib
import time
import zipfile

import pytest
import tiny
import torch
from safetensors.torch import save_file

from drift.config.load import read
from drift.importers.checkpoint_files import CheckpointFiles, RoundFiles
from drift.importers.models import read_sizes, run_name
from drift.simulation.disk_space import expected_bytes
from figures.texts import console
from landscape.model.checkpoint import read_tensors
from landscape.model.guarded_load import TENSORS, Refused
from landscape.results.atomic_write import write_bytes


def test_the_space_of_a_run_of_any_length_is_told_at_once():
    begun = time.perf_counter()
    for policy in ("all", "every 10, last 3", "first 2", "none"):
        long = tiny.experiment("rounds=1000000000000", f"keep.clients={policy}")
        assert expected_bytes(long, 100) > 10**15
    assert time.perf_counter() - begun < 30


@pytest.mark.parametrize("text", ['{"0": 1e999}', '{"0": NaN}', "[" * 100_000])
def test_sizes_that_are_no_numbers_are_refused(tmp_path, text):
    (tmp_path / "sizes.json").write_text(text)
    with pytest.raises(ValueError, match=r"sizes\.json cannot be read"):
        read_sizes(tmp_path, CheckpointFiles({}, False, [], []))


def test_nested_brackets_without_end_are_refused(tmp_path):
    (tmp_path / "a.toml").write_text("rounds = " + "[" * 100_000)
    with pytest.raises(ValueError, match=r"a\.toml"):
        read(tmp_path / "a.toml")


def test_a_sparse_file_is_refused_before_it_is_digested(tmp_path):
    path = tmp_path / "a.safetensors"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Refused, match="states 1099511627776 bytes"):
        run_name(tmp_path, CheckpointFiles({0: RoundFiles(path, None, {})}, False, [], []), "", None)


MANY = TENSORS + 1


def _packed(path):
    save_file({f"t{i}": torch.zeros(0) for i in range(MANY)}, path)


def _views(path):
    one = torch.zeros(1)
    torch.save({f"t{i}": one[:0] for i in range(MANY)}, path)


def _zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(MANY):
            archive.writestr(f"t{i}.npy" if path.suffix == ".npz" else f"a/data/{i}", b"")


@pytest.mark.parametrize(("name", "write"), [("a.safetensors", _packed), ("a.pt", _views), ("a.npz", _zipped)])
def test_more_tensors_than_any_model_has_are_refused_before_they_are_read(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    begun = time.process_time()
    with pytest.raises(Refused, match=rf"{name} has \d+ .*up to {TENSORS} is read"):
        read_tensors(path)
    assert time.process_time() - begun < 5


def test_more_parts_than_any_checkpoint_has_are_refused(tmp_path, monkeypatch):
    torch.save({f"t{i}": torch.zeros(1) for i in range(60)}, tmp_path / "a.pt")
    monkeypatch.setattr("landscape.model.guarded_load.MEMBERS", 50)
    with pytest.raises(Refused, match=r"a\.pt has \d+ parts; a file with up to 50 is read"):
        read_tensors(tmp_path / "a.pt")


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"a\.json"):
        write_bytes(tmp_path / "a.json", b"{}")


def test_names_cannot_steer_the_terminal(capsys):
    console.pairs({"loss\x1b[2J": "a\x1b[31m"})
    assert "\x1b" not in capsys.readouterr().out


STEERING = [*map(chr, (*range(9), *range(11, 32), *range(127, 160))), "\u202e", "\u2066", "\u2028", "\udcff"]


def test_no_way_to_the_terminal_lets_control_characters_through(capsys):
    text = "a".join(STEERING)
    console.say(text)
    console.put(text)
    console.pairs({text: text})
    console.table([{text: text}], {text: text})
    assert console.as_text("a\nb") == "a\N{REPLACEMENT CHARACTER}b"  # a name cannot begin a line of its own
    said = capsys.readouterr()
    for character in STEERING:
        assert character not in said.out + said.err


def test_the_report_lets_no_control_characters_through(monkeypatch):
    from jinja2 import DictLoader

    report = importlib.import_module("figures.page.report")  # the package has a function of this name

    monkeypatch.setattr(
        report, "FileSystemLoader", lambda _: DictLoader({"report.html.j2": "{{ name }}<p>{{ css|safe }}"})
    )
    page = report.page({"figures": {}, "scene": {}, "name": "a".join(STEERING) + "<b>"})
    assert "&lt;b&gt;" in page
    assert "<p>" in page
    for character in STEERING:
        assert character not in page.partition("<p>")[0]
