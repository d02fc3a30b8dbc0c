"""Files with several state dicts: which one is read, how one is chosen, and what is refused."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from tests.landscape.model.test_checkpoint import TASK, loss, net, own


def test_of_two_state_dicts_the_one_that_fits_is_read_and_of_two_that_fit_none(tmp_path):
    torch.save({"generator": net().state_dict(), "critic": net(3, 2).state_dict()}, tmp_path / "gan.pt")
    assert loss(TASK, tmp_path / "gan.pt") == pytest.approx(own(net()), rel=1e-6)
    torch.save({"clients": [net(1).state_dict(), net(2).state_dict()], "round": 4}, tmp_path / "all.pt")
    with pytest.raises(ValueError, match=r"has 2 state dicts: \[clients\]\[0\] .*choose one"):
        loss(TASK, tmp_path / "all.pt")
    assert loss(TASK, tmp_path / "all.pt[clients][1]") == pytest.approx(own(net(2)), rel=1e-6)
    (tmp_path / "odd[1].pt").write_bytes((tmp_path / "gan.pt").read_bytes())  # brackets in a name are no choice
    (tmp_path / "x.pt[1]").write_bytes((tmp_path / "gan.pt").read_bytes())
    assert loss(TASK, tmp_path / "odd[1].pt") == loss(TASK, tmp_path / "x.pt[1]") == loss(TASK, tmp_path / "gan.pt")


def recipes(path) -> list[str]:
    """The ways to choose that the refusal of a file prints."""
    with pytest.raises(ValueError, match=r"'.*'") as refused:
        loss(TASK, path)
    return re.findall(rf"'({re.escape(str(path))}\[.*?\])'", str(refused.value))


def test_what_a_refusal_prints_as_a_choice_is_read(tmp_path):
    one, two = net(1).state_dict(), net(2).state_dict()
    parts = {f"{name}.{key}": value for name, state in (("student", one), ("m.t", two)) for key, value in state.items()}
    odd = {"a[0]": one, "b/c  d": two, 3: net(3).state_dict()}
    for name, content in {"p": parts, "q": {"state_dict": parts}, "r": {"x": [odd]}, "s": odd}.items():
        torch.save(content, tmp_path / f"{name}.pt")
        found = recipes(tmp_path / f"{name}.pt")
        assert found
        losses = [own(net(seed)) for seed in (1, 2, 3)]
        assert all(any(loss(TASK, recipe) == pytest.approx(one, rel=1e-6) for one in losses) for recipe in found)
    for key, seed in {"a(0)": 1, "b|c d": 2, "3": 3}.items():
        assert loss(TASK, f"{tmp_path / 's.pt'}[{key}]") == pytest.approx(own(net(seed)), rel=1e-6)


def test_a_state_dict_that_occurs_twice_has_both_places_and_lists_count_from_both_ends(tmp_path):
    one, two, three = (net(seed).state_dict() for seed in (1, 2, 3))
    torch.save({"last": one, "best": one}, tmp_path / "a.pt")
    torch.save({"server": one, "clients": [one, two, one, None], "all": ([two, three],)}, tmp_path / "b.pt")
    looped: dict = {"model": one}
    looped["self"] = looped
    torch.save(looped, tmp_path / "c.pt")
    places = {"a.pt": 1, "a.pt[last]": 1, "a.pt[best]": 1, "b.pt[server]": 1, "c.pt": 1, "c.pt[model]": 1}
    places |= {"b.pt[clients][0]": 1, "b.pt[clients][1]": 2, "b.pt[clients][-2]": 1, "b.pt[all][0][-1]": 3}
    for place, seed in places.items():
        assert loss(TASK, tmp_path / place) == pytest.approx(own(net(seed)), rel=1e-6)
    for place in ("b.pt", "b.pt[clients]", "b.pt[all]"):
        with pytest.raises(ValueError, match=r"b\.pt has \d state dicts: .*choose one, as in"):
            loss(TASK, tmp_path / place)
    with pytest.raises(ValueError, match=r"nothing under \[clients\]\[-1\]"):  # it is None
        loss(TASK, tmp_path / "b.pt[clients][-1]")
    with pytest.raises(ValueError, match=r"the model given has 2 state dicts: \[a\] .*; give one of them\."):
        loss(TASK, {"a": one, "b": two})
    with pytest.raises(ValueError, match=r"Give the tensors below net alone\."):
        loss(TASK, {**{f"net.{name}": value for name, value in one.items()}, "c": torch.ones(3)})


def test_tables_that_share_parts_are_refused_before_they_fill_memory(tmp_path):
    shared: list = [net().state_dict()]
    for _ in range(3):
        shared = [shared] * 40
    torch.save(shared, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt: it has more than 10000 state dicts"):
        loss(TASK, tmp_path / "a.pt")


def test_a_state_dict_in_memory_may_be_wrapped_and_nested_like_a_file():
    state = {"model": {f"module.{name}": value for name, value in net().state_dict().items()}, "epoch": 3}
    assert loss(TASK, state) == loss(TASK, nn.DataParallel(net())) == pytest.approx(own(net()), rel=1e-6)
    with pytest.raises(ValueError, match="holds a table of a, b and no tensors by name; give model"):
        loss(TASK, {"a": 1, "b": "x"})
