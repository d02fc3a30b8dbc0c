"""Experiments from files and overrides, and what is said of mistakes."""

import pytest

from drift.config.load import presets, read, validated

BASE = {
    "rounds": 6,
    "task": {"dataset": "digits", "model": "linear"},
    "clients": {"number": 4, "per_round": 2, "partition": "dirichlet", "concentration": 0.3},
}


def test_partition_options_stand_beside_the_name():
    found = validated(BASE).clients.partition
    assert found.concentration == 0.3
    assert read(validated(BASE), "clients.partition.concentration=0.5").clients.partition.concentration == 0.5
    assert read(validated(BASE), "clients.concentration=0.7").clients.partition.concentration == 0.7


def test_an_option_of_the_partition_is_changed_wherever_the_preset_wrote_it(tmp_path):
    """Beside its name, or in its table: the change wins, and so does the file that extends the preset."""
    for own in ('"dirichlet"\nconcentration = 0.3', '{ name = "dirichlet", concentration = 0.3 }'):
        path = tmp_path / "base.toml"
        head = 'rounds = 6\n[task]\ndataset = "digits"\nmodel = "linear"\n[clients]\nnumber = 4\nper_round = 2\n'
        path.write_text(f"{head}partition = {own}\n")
        assert read(path).clients.partition.concentration == 0.3
        for name in ("clients.concentration", "clients.partition.concentration"):
            assert read(path, f"{name}=0.5").clients.partition.concentration == 0.5
            assert read(path, "clients.concentration=0.9", f"{name}=0.5").clients.partition.concentration == 0.5
            last = read(path, "clients.partition.concentration=0.9", f"{name}=0.5")
            assert last.clients.partition.concentration == 0.5
        for text in ("[clients]\nconcentration = 0.7", "[clients.partition]\nconcentration = 0.7"):
            above = tmp_path / "above.toml"
            above.write_text(f'extends = "base.toml"\n{text}\n')
            assert read(above).clients.partition.concentration == 0.7
        above.write_text('extends = "base.toml"\n[clients]\npartition = "shards"\n')
        assert read(above).resolved()["clients"]["partition"]["name"] == "shards"


def test_a_resolved_experiment_reads_back_as_itself():
    first = read(validated(BASE), "method.name=ima", "method.window=2")
    again = validated(first.resolved())
    assert again == first
    assert again.hash == first.hash


def test_every_setting_changes_the_hash():
    first = validated(BASE)
    changes = ["seed=1", "rounds=7", "local.lr=0.5", "clients.concentration=0.4", "keep.clients=none", "method=ima"]
    assert len({read(first, change).hash for change in changes} | {first.hash}) == len(changes) + 1


def test_keyword_options_equal_texts():
    assert read(validated(BASE), local__lr=0.5, seed=7) == read(validated(BASE), "local.lr=0.5", "seed=7")


def test_choosing_another_method_drops_the_options_of_the_first():
    first = read(validated(BASE), "method.name=ima", "method.window=2")
    assert read(first, method="fedavg").method.name() == "fedavg"


def test_a_base_may_be_named_before_its_method():
    found = read("digits-shards2", "method.base=fedeve", "method=ima")
    assert found == read("digits-shards2", "method=ima", "method.base=fedeve")
    assert found.method.base.name() == "fedeve"


def test_a_variant_applies_to_its_method_only_and_overrides_win(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        "rounds = 3\n[task]\ndataset = 'digits'\nmodel = 'linear'\n"
        "[clients]\nnumber = 4\nper_round = 2\npartition = 'iid'\n"
        "[variants.ima]\nlocal = {lr = 0.5, batch = 7}\nmethod = {window = 2}\n"
    )
    assert read(path).local.lr == 0.01
    chosen = read(path, "method.name=ima", "local.lr=0.25")
    assert (chosen.local.lr, chosen.local.batch, chosen.method.window) == (0.25, 7, 2)


def test_a_variant_applies_to_its_method_as_the_base_of_another(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        "rounds = 3\n[task]\ndataset = 'digits'\nmodel = 'linear'\n"
        "[clients]\nnumber = 4\nper_round = 2\npartition = 'iid'\n"
        "[variants.fedasam]\nlocal = {lr = 0.5}\nmethod = {rho = 0.2, eta = 0.05}\n"
        "[variants.ima]\nlocal = {batch = 7}\nmethod = {window = 2}\n"
    )
    found = read(path, "method=ima", "method.base=fedasam", "method.base.eta=0.1")
    assert (found.method.window, found.method.base.rho, found.method.base.eta) == (2, 0.2, 0.1)
    assert (found.local.lr, found.local.batch) == (0.5, 7)
    plain = read(path, "method=ima")
    assert (plain.method.base.name(), plain.local.lr) == ("fedavg", 0.01)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rouns=3", r"no setting named 'rouns'. Did you mean 'rounds'\? Known: clients, "),
        ("local.learning_rate=3", "no setting in local named 'learning_rate'"),
        ("method.wind=3", "no setting in method named 'wind'"),
        ("clients.partition.alpha=1", "no setting in clients.partition named 'alpha'"),
        ("clients.concentratoin=1", "Did you mean 'concentration'"),
        ("method.name=fedavgg", "no method named 'fedavgg'. Did you mean 'fedavg'"),
        ("clients.partition=dirchlet", "no partition named 'dirchlet'. Did you mean 'dirichlet'"),
        ("rounds=abc", r"rounds is 'abc'; give a whole number\."),
        ("rounds=true", r"rounds is true; give a whole number\."),
        ("rounds=2026-01-02", r"rounds is 2026-01-02; give a whole number\."),
        ("local.lr=false", r"local.lr is false; give a number\."),
        ("local.betas=[true, 0.9]", r"local.betas is \[true, 0.9\]; give numbers\."),
        ("clients.number=true", r"clients.number is true; give a whole number\."),
        (
            "clients.partition=3",
            "clients.partition is 3; it is a name, its options set as clients.partition.NAME=VALUE",
        ),
        ("method=[1]", r"method is \[1\]; it is a name, its options set as method.NAME=VALUE"),
        ("local.drop_last=maybe", r"local\.drop_last is 'maybe'; give true or false\."),
        ("engine=fast", r"engine is 'fast'; give 'serial', 'batched' or 'auto'\."),
        ("local.betas=[0.9]", r"local\.betas is \[0\.9\]; give more values\."),
        ("local.betas=0.9", r"local\.betas is 0\.9; give a list, as in \[1, 2\]\."),
        ("keep.clients=3", r"keep\.clients is 3; give a text\."),
        ("local.lr=-1", r"local\.lr is -1; give a number above 0\."),
        ("local.lr=fast", r"local\.lr is 'fast'"),
        ("clients.per_round=9", "per_round is 9 but there are only 4 clients"),
        ("keep.clients=evry 3", "cannot read 'evry 3'"),
        ("local=3", r"local is 3"),
        ("method.name=fedlaw", "proxy set and none is given"),
        ("rounds", "write KEY=VALUE"),
        ("task=blobs", "task is 'blobs'; it is a table of settings, set as task.NAME=VALUE"),
        ("task.dataset=blob", "task.dataset: no dataset named 'blob'. Did you mean 'blobs'"),
        ("task.model=linaer", "task.model: no model named 'linaer'. Did you mean 'linear'"),
        ("task.dataset_options.scale=unit", "'scale' is not one of the dataset_options; it is the setting task.scale"),
        ("task.dataset_options.data=x", "'data' is not one of the dataset_options; it is --data DIR"),
        ("task.model_options.name=x", "'name' is not one of the model_options; it is the setting task.model"),
        ("task.model_options.seed=3", "'seed' is not one of the model_options; it is the setting seed"),
        ("local.betas=[0.9, 1.0]", r"local\.betas\.1 is 1\.0; give a number below 1\."),
        ("clients.work=[0, 0]", r"clients\.work\.0 is 0; give a number above 0\.$"),
        ("threads=100000", r"threads is 100000; give 1024 or less\."),
    ],
)
def test_a_mistake_gets_one_clear_line(override, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(validated(BASE), override)
    assert "\n" not in str(caught.value)


def test_a_missing_setting_is_named():
    with pytest.raises(ValueError, match=r"task\.model is missing"):
        validated({**BASE, "task": {"dataset": "digits"}})


def test_an_unknown_file_lists_the_presets():
    with pytest.raises(LookupError, match="no experiment named 'dmeo'"):
        read("dmeo")


def test_every_preset_is_valid():
    for path in presets().values():
        read(path)


def test_a_file_says_what_is_other_than_in_the_one_it_extends(tmp_path):
    (tmp_path / "base.toml").write_text(
        "rounds = 3\n[task]\ndataset = 'digits'\nmodel = 'linear'\n"
        "[clients]\nnumber = 4\nper_round = 2\npartition = {name = 'dirichlet', concentration = 0.5}\n"
        "[variants.ima.method]\nwindow = 2\nlate_factor = 0.9\n"
    )
    path = tmp_path / "own.toml"
    path.write_text(
        "extends = 'base.toml'\n[task]\nmodel = 'mlp'\n[clients]\npartition = {name = 'shards', shards = 1}\n"
        "[variants.ima.method]\nwindow = 3\n"
    )
    base, own = read(tmp_path / "base.toml", method="ima"), read(path, "method=ima", "clients.number=5")
    assert (own.rounds, own.task.dataset, own.task.model, own.clients.number) == (3, "digits", "mlp", 5)
    assert own.resolved()["clients"]["partition"] == {"name": "shards", "shards": 1}
    assert (own.method.window, own.method.late_factor) == (3, 0.9)
    assert (base.method.window, base.task.model) == (2, "linear")
    path.write_text("extends = 'demo'\nrounds = 7\n")
    assert (read(path).rounds, read(path).task) == (7, read("demo").task)


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        ("demoo", LookupError, "own.toml extends: no experiment named 'demoo'. Did you mean 'demo'"),
        ("between.toml", ValueError, "which extends 'demo'; only one level is accepted"),
    ],
)
def test_a_file_that_cannot_be_extended_is_named(named, error, message, tmp_path):
    (tmp_path / "between.toml").write_text("extends = 'demo'\n")
    path = tmp_path / "own.toml"
    path.write_text(f"extends = {named!r}\n")
    with pytest.raises(error, match=message):
        read(path)


def test_the_name_of_a_preset_is_told_where_its_file_is_absent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LookupError, match=r"no file experiments/demo\.toml\. The preset of this name is given as demo"):
        read("experiments/demo.toml")


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("rounds = = 3")
    with pytest.raises(ValueError, match=r"broken\.toml is no TOML"):
        read(path)


@pytest.mark.parametrize("beside", [True, False])
def test_choosing_another_partition_drops_the_options_of_the_first(beside):
    clients = {"number": 4, "per_round": 2, "partition": {"name": "shards", "shards": 3}}
    if beside:
        clients |= {"partition": "shards", "shards": 3}
    content = {**BASE, "clients": clients}
    found = read(validated(content), "clients.partition=dirichlet", "clients.concentration=0.5").clients.partition
    assert found.concentration == 0.5


def test_another_partition_may_be_chosen_for_a_preset():
    found = read("digits-shards2", "clients.partition=dirichlet", "clients.concentration=0.1")
    assert found.clients.partition.concentration == 0.1


def test_an_experiment_is_checked_once_and_so_are_its_copies(monkeypatch):
    first = read(validated(BASE), "method=ima")
    with monkeypatch.context() as patch:
        patch.setattr("drift.config.load.validated", lambda *_: pytest.fail("it was checked again"))
        assert read(first) is first
    assert first.model_copy(update={"seed": 3}).seed == 3
    for update in ({"rounds": 0}, {"method": "fedlaw"}, {"clients": {**BASE["clients"], "per_round": 9}}):
        with pytest.raises(ValueError, match=r"greater than 0|proxy set|only 4 clients"):
            first.model_copy(update=update)


def test_the_same_plug_in_named_again_keeps_its_options():
    first = read(validated(BASE), "method=ima", "method.window=2")
    again = read(first, "method=ima", "clients.partition=dirichlet")
    assert again == first
    other = read(first, "method.name=ima", "clients.partition=iid").resolved()
    assert other["clients"]["partition"] == {"name": "iid"} and other["method"]["window"] == 2
