"""Every reader of a JSON or TOML text from elsewhere refuses in one line what cannot be parsed, and no other way."""

import hashlib
import json

import pytest
import torch
from safetensors.torch import save_file

from drift.claims.campaign import plan, records
from drift.config import initial_model
from drift.config.load import read
from drift.importers.checkpoint_files import CheckpointFiles
from drift.importers.models import read_sizes
from drift.store import digests, files, numpy_files, round_headers
from figures.papers import catalogue
from landscape.datasets import _cache, _images
from landscape.results.parsed_text import from_json, from_toml

NESTED = {
    "lists": "[" * 100_000,
    "closed lists": "[" * 900 + "]" * 900,
    "tables": '{"a":' * 100_000,
    "beyond float64": "1e999",
    "in a table": '{"a": 1e999}',
    "empty": "",
    "no table": "[1, 2]",
    "no Unicode": "\udcff\udcfe",
}
TEXTS = pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())


def _file(path, text):
    """A file of the text, whose lone surrogates are bytes that are no UTF-8."""
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def _safetensors(path, **header):
    """A file of a tensor, whose header has the digest of whatever it says."""
    text = header.get("about", "{}")
    tensors = {"theta": torch.zeros(2)}
    save_file(tensors, path, {**digests.metadata(files._contents(tensors), text), **header})
    return path


def _refused(read_it, path):
    with pytest.raises((ValueError, LookupError)) as told:
        read_it(path)
    said = str(told.value)
    assert not isinstance(told.value, KeyError | IndexError)
    assert path.name in said
    assert "\n" not in said
    assert len(said) < 1000


JSON_FILES = {
    "run.json": files.read_json,
    "recorder.json": numpy_files.read_json,
    "campaign.json": records.read,
    "sizes.json": lambda path: read_sizes(path.parent, CheckpointFiles({}, False, [], [])),
}


@TEXTS
@pytest.mark.parametrize("name", JSON_FILES)
def test_json_files(tmp_path, name, text):
    _refused(JSON_FILES[name], _file(tmp_path / name, text))


TOML_FILES = {"experiment.toml": read, "plan.toml": plan.load}


@pytest.mark.parametrize("text", [f"a = {text}" for text in NESTED.values()], ids=NESTED.keys())
@pytest.mark.parametrize("name", TOML_FILES)
def test_toml_files(tmp_path, name, text):
    _refused(TOML_FILES[name], _file(tmp_path / name, text))


@pytest.mark.parametrize("text", [f"a = {text}" for text in NESTED.values()], ids=NESTED.keys())
def test_the_items_of_a_paper(tmp_path, monkeypatch, text):
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    path = _file(tmp_path / "own.toml", text)
    _refused(lambda _: catalogue.load.__wrapped__("own"), path)


HEADERS = {
    "store": files.read_tensors,
    "recorder": numpy_files.read_tensors,
    "start": initial_model.read_initial_model,
}
IN_HEADERS = {name: text for name, text in NESTED.items() if name != "no Unicode"}  # safetensors refuses these itself


@pytest.mark.parametrize("text", IN_HEADERS.values(), ids=IN_HEADERS.keys())
@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_tensors(tmp_path, name, text):
    _refused(HEADERS[name], _safetensors(tmp_path / "a.safetensors", about=text))


@pytest.mark.parametrize("text", IN_HEADERS.values(), ids=IN_HEADERS.keys())
def test_tables_of_packed_tensors(tmp_path, text):
    _refused(files.read_tensors, _safetensors(tmp_path / "a.safetensors", packed=text))


@pytest.mark.parametrize("text", IN_HEADERS.values(), ids=IN_HEADERS.keys())
def test_the_chain_takes_such_files_for_unreadable(tmp_path, text):
    (tmp_path / "rounds").mkdir()
    _safetensors(tmp_path / files.STATE, about=text)
    _safetensors(files.round_path(tmp_path, 0), about=text)
    with pytest.raises(files.Damaged):
        round_headers.read_state(tmp_path)
    assert round_headers.read_round(tmp_path, 0) is None


@pytest.mark.parametrize("about", [{"classes": 5}, {"layout": 5}, {"layout": [1]}, {"layout": [["a", ["b"]]]}])
def test_a_start_that_describes_nothing_is_refused(tmp_path, about):
    _refused(initial_model.read_initial_model, _safetensors(tmp_path / "a.safetensors", about=json.dumps(about)))


@pytest.mark.parametrize("text", IN_HEADERS.values(), ids=IN_HEADERS.keys())
def test_a_cache_of_samples_is_made_anew(tmp_path, text):
    path = tmp_path / "a.safetensors"
    save_file({"theta": torch.zeros(2)}, path, {"names": text, "names_digest": _cache._digest(text)})
    with pytest.warns(UserWarning, match="is damaged"):
        assert _cache.read(path) is None


@TEXTS
def test_columns_of_images(tmp_path, text):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"a": [1]}).replace_schema_metadata({b"huggingface": text.encode("utf-8", "surrogateescape")})
    parquet.write_table(table, tmp_path / "a.parquet")
    _refused(_images._columns, tmp_path / "a.parquet")


def test_what_is_sound_is_read():
    assert from_json('{"a": [1, 2.5, NaN, "inf"]}')["a"][:2] == [1, 2.5]
    assert from_toml("a = [1, 2.5]\nb = -inf") == {"a": [1, 2.5], "b": float("-inf")}
    text = json.dumps({"a": 1e308, "b": [[[1]]]})
    assert from_json(text.encode()) == json.loads(text)
    assert hashlib.sha256(json.dumps(from_json(text)).encode()).digest() == hashlib.sha256(text.encode()).digest()
