"""Bundles of options as published: what they set, what wins over them, and how a run says so."""

import pytest
import tiny

from drift.config import method as methods
from drift.config.load import read

BUNDLES = [(name, like) for name in methods.names() for like in methods.load(name).bundles]


@pytest.mark.parametrize("name", ["fedavg", "ima", "fedlaw", "fedeve", "lss"])
def test_the_five_methods_have_both_bundles(name):
    assert list(methods.load(name).bundles) == ["paper", "code"]


@pytest.mark.parametrize(("name", "like"), BUNDLES)
def test_a_bundle_sets_its_options_and_nothing_else(name, like):
    found, plain = methods.load(name)(like=like), methods.load(name)()
    bundle = found.bundles[like]
    assert bundle.source
    for option in type(found).model_fields:
        expected = bundle.options.get(option, getattr(plain, option))
        assert getattr(found, option) == (like if option == "like" else expected)
    assert found.label == f"{plain.label}-{like}"


@pytest.mark.parametrize(("name", "like"), BUNDLES)
def test_the_settings_beside_a_bundle_exist(name, like):
    beside = methods.load(name).bundles[like].settings.split()
    found = read("common-fmnist", f"method={name}", f"method.like={like}", "local.momentum=0.0", *beside)
    assert found.method.like == like


@pytest.mark.parametrize(("name", "like"), BUNDLES)
def test_a_named_bundle_takes_the_place_of_a_preset_s_options(name, like):
    """The preset has variants for every method, such as 4 candidates of LSS, where its code has 3."""
    bundle = methods.load(name).bundles[like]
    found = read("common-fmnist", f"method={name}", f"method.like={like}").method
    assert all(getattr(found, option) == value for option, value in bundle.options.items())


@pytest.mark.parametrize(("name", "like"), [pair for pair in BUNDLES if pair[0] != "ima"])
def test_what_ima_averages_has_its_bundles_too(name, like):
    found = read("common-fmnist", f"method={name}", f"method.like={like}").method
    over = read("common-fmnist", "method=ima", f"method.base={name}", f"method.base.like={like}").method
    assert over.base == found
    assert over.label == f"{found.label}+ima"


def test_an_option_given_beside_a_bundle_wins_and_the_label_says_so():
    found = read("common-fmnist", "method=lss", "method.like=code", "method.candidates=5").method
    assert (found.candidates, found.step_every, found.label) == (5, 15, "lss-code_changed")
    same = read("common-fmnist", "method=lss", "method.like=code", "method.candidates=3").method
    assert same.label == "lss-code"


def test_one_bundle_takes_the_place_of_the_other():
    code = read("common-fmnist", "method=fedfa", "method.like=code")
    paper = read(code, "method.like=paper")
    assert (paper.method.beta, paper.method.class_mean, paper.method.label) == (0.9, "present", "fedfa-paper")


@pytest.mark.parametrize(("name", "like"), [("ima", "papr"), ("fedbabu", "paper"), ("fedadagrad", "code")])
def test_an_unknown_bundle_is_refused_and_the_known_ones_are_named(name, like):
    known = ", ".join(methods.load(name).bundles) or "none"
    with pytest.raises(ValueError, match=f"like is '{like}'; bundles of {name}: {known}"):
        read("common-fmnist", f"method={name}", f"method.like={like}")


def test_a_run_records_its_bundle_in_its_settings_label_and_name(tmp_path):
    plain = tiny.experiment("method=fedavgm", "method.form=sum")
    run = tiny.trained(tmp_path, "method=fedavgm", "method.like=paper")
    assert run.label == "fedavgm-paper"
    assert run.experiment.hash != plain.hash
    assert run.about["experiment"]["method"]["like"] == "paper"
    assert type(run)(run.folder).experiment == run.experiment
