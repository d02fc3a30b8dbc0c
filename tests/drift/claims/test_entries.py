"""Entries of claims: what is wrong in a file is said in one line."""

from __future__ import annotations

import pytest

from drift.claims import entries

ENTRY = {
    "name": "toy-claim",
    "item": "Table 1",
    "statement": "it is so",
    "effect": "how much",
    "unit": "1",
    "measure": "measures.mean_gain",
    "methods": ["fedavg"],
    "options": {"variant": "gamma"},
}


def written(folder, changes):
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    lines = []
    for key, value in entry.items():
        table = isinstance(value, dict)
        inner = "{ " + ", ".join(f"{name} = {one!r}" for name, one in value.items()) + " }" if table else repr(value)
        lines.append(f"{key} = {str(inner).replace('True', 'true')}")
    (folder / "toy.toml").write_text("[[claims]]\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": None}, r"claims\.0\.unit: Field required"),
        ({"units": "1"}, r"claims\.0\.units: Extra inputs"),
        ({"test": "less"}, r"claims\.0\.test: .*'more'"),
        ({"test": "same"}, "toy-claim says 'same' without a margin"),
        ({"measure": "measures.gain"}, r"no function gain in drift/claims/measures\.py"),
        ({"measure": "absent.gain"}, r"no function gain in drift/claims/absent\.py"),
        ({"where": "measures.many"}, r"no function many"),
        ({"options": {"variants": "gamma"}}, "cannot call measures.mean_gain .*variant"),
        ({"methods": ["ima", "fedavg"]}, "cannot call measures.mean_gain .*too many"),
        ({"methods": [], "over": "local.epochs"}, "where needs one method, over one or a pair"),
        ({"methods": ["ima", "fedavg"], "where": "measures.two_clients"}, "where needs one method"),
        ({"across": True}, "say in over which setting differs"),
    ],
)
def test_a_wrong_entry_is_refused_in_one_line(tmp_path, monkeypatch, changes, message):
    monkeypatch.setattr(entries, "FOLDER", tmp_path)
    written(tmp_path, changes)
    with pytest.raises(ValueError, match=message) as caught:
        entries.read_claims.__wrapped__("toy")
    assert "toy.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_an_entry_is_a_claim_that_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "FOLDER", tmp_path)
    written(tmp_path, {"over": "local.epochs", "across": True, "margin": 0.5})
    (claim,) = entries.read_claims.__wrapped__("toy")
    assert (claim.name, claim.margin, claim.across) == ("toy-claim", 0.5, True)
    assert claim.of_run.keywords == {"variant": "gamma"}
    with pytest.raises(LookupError, match=r"differ in local\.epochs alone"):
        claim.measure([])
