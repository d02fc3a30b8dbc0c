"""The settings of an item beside its paper's: each departure shows, whoever wrote it down or not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from blocks import ROOT

from docs._ext.paper_settings import Setting, of_item
from drift.claims import claims
from drift.claims.campaign.plan import PlanItem, load
from drift.config.load import plans
from figures.papers import load as paper
from landscape.results.parsed_text import dotted

PRINTED = {  # as the papers print them: rate, its decay, momentum, weight decay, epochs, batch, rounds, clients, cohort
    "ima-table1-fmnist-shards2": ("0.01", "0.99", "0.9", "0.001", "5", "50", "300", "100", "10"),
    "ima-table1-fmnist-dir01": ("0.01", "0.99", "0.9", "0.001", "5", "50", "300", "100", "10"),
    "fedeve-table1-mnist-dir001": ("0.01", "1", "0", "0", "1", "20", "1500", "3400", "10"),
    "fedeve-fig3b-mnist": ("0.01", "1", "0", "0", "1", "20", "1500", "3400", "10"),
    "fedlaw-table3-cifar10-dir01": ("0.08", "0.99", "0.9", "0.0005", "3", "128", "200", "20", "20"),
    "lss-table1-cifar10": ("0.0005", "1", "0.9", "0.0005", "-", "64", "3", "5", "5"),  # eight steps
}
NAMES = (
    "local.lr",
    "local.lr_decay",
    "local.momentum",
    "local.weight_decay",
    "local.epochs",
    "local.batch",
    "rounds",
    "clients.number",
    "clients.per_round",
)


@pytest.fixture(scope="module")
def items():
    return {item.name: item for item in load(plans()["reproduction"]).items}


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_column_has_what_the_paper_prints(items, name):
    settings = {one.name: one for one in of_item(items[name])}
    shown = {key: settings[key].paper if key in settings else "0" for key in NAMES}
    assert tuple(shown.values()) == PRINTED[name]


def test_every_departure_shows_and_what_rows_alone_have_is_named_by_the_row(items):
    for item in items.values():
        if item.paper == "cross":
            assert of_item(item) == []
        else:
            assert item.original, item.name
    changed = items["ima-table1-fmnist-dir01"].model_copy(
        update={"set": ("local.lr=0.02", "clients.partition.concentration=0.3", "keep.clients=all")}
    )
    assert {one.name: (one.paper, one.ours) for one in of_item(changed) if one.differs} == {
        "local.lr": ("0.01", "0.02"),
        "clients.partition.concentration": ("0.1", "0.3"),
    }
    item = PlanItem.model_validate(
        {
            "name": "one",
            "paper": "fedlaw",
            "item": "Table 1",
            "value": 1,
            "experiment": "fedlaw-cifar10-dir1",
            "original": ["fedlaw-cifar10-dir1"],
            "reason": "a test",
            "rows": [
                {"set": ["method=fedavg"], "seeds": 1, "minutes": 1},
                {"set": ["method=fedlaw", "method.server_epochs=7"], "seeds": 1, "minutes": 1},
            ],
        }
    )
    assert [one.name for one in of_item(item) if one.differs] == []
    ours = item.model_copy(update={"original": ("fedlaw-cifar10-dir1", "local.epochs=9")})
    assert [(one.name, one.paper, one.ours) for one in of_item(ours) if one.differs] == [("local.epochs", "9", "3")]


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from _ext import claim_settings, evidence_settings

    return SimpleNamespace(
        of_claim=claim_settings.of_claim,
        settings=evidence_settings._settings,
        departures=claim_settings.departures,
        same=claim_settings.same_setting,
    )


def test_a_claim_is_compared_with_the_setting_in_which_its_paper_makes_it(items, pages):
    asked = {one.name: one for one in claims()}

    def differing(name, item):
        return {one.name: (one.paper, one.ours) for one in pages.of_claim(asked[name], items[item]) if one.differs}

    assert differing("ima-accuracy-fedavg", "ima-table1-fmnist-shards2") == {}
    clients = differing("ima-mean-below", "ima-table1-fmnist-shards2")
    assert clients["task.dataset"] == ("cifar10", "fashion_mnist")
    assert clients["local.lr_decay"] == ("1", "0.99")
    assert clients["rounds"] == ("400", "300")
    assert differing("ima-more-models", "ima-table1-fmnist-shards2")["clients.number"] == ("10", "100")
    assert differing("ima-rest-distance", "cross-fmnist-mlp-shards2")["task.model"] == ("cnn_cifar10", "mlp")
    coherence = differing("fedlaw-coherence-falls", "fedlaw-table3-cifar10-dir01")
    assert coherence["clients.partition.name"] == ("hybrid_dirichlet", "dirichlet")
    assert differing("fedlaw-smaller-norm", "fedlaw-table3-cifar10-dir01")["method"] == ("FedLAW (GWS)", "FedLAW")
    shards = "ima-table1-fmnist-shards2-bases"
    prox = differing("ima-accuracy-fedprox", shards)
    assert set(prox.values()) == {("best of 0.1, 0.01, 0.001", "0.01")}
    assert len(prox) == 2
    assert differing("ima-accuracy-fedadam", shards) == {}
    eve = differing("fedeve-accuracy", "fedeve-table1-mnist-dir01")
    assert eve["clients.partition.name"] == ("dirichlet_clients", "dirichlet")
    quick = differing("lss-accuracy-1", "lss-table1-cifar10")
    assert (quick["local.steps"], quick["local.epochs"]) == (("8", "-"), ("-", "8"))
    assert quick["lss: method.pool_init"] == ("frozen", "trained")
    assert not {"local.steps", "lss: method.pool_init"} & set(
        differing("lss-accuracy-1", "lss-table1-cifar10-resnet20")
    )


@pytest.mark.parametrize(
    ("names", "number"),
    [
        (("clients.partition.name", "clients.partition.shards", "clients.partition.concentration"), 1),
        (("clients.partition.concentration", "rounds"), 2),
        (("local.steps", "local.epochs", "local.lr"), 2),
        (("task.model", "task.model_options.source"), 1),
        (("lss: method.affinity", "soups: method.affinity", "method.base.affinity"), 1),
        (("method", "method.gamma"), 1),
        ((), 0),
    ],
)
def test_one_choice_counts_once(pages, names, number):
    assert pages.departures([Setting(name, "a", "b") for name in names] + [Setting("seed", "a", "a")]) == number


def test_what_no_paper_states_is_no_departure_and_every_row_of_a_method_counts(items, pages):
    asked = {one.name: one for one in claims()}
    eve = items["fedeve-table1-mnist-dir001"]
    assert "evaluate_every" not in {one.name for one in pages.of_claim(asked["fedeve-accuracy"], eve)}
    law = items["fedlaw-table1-cifar10-dir1"]
    assert pages.same(asked["fedlaw-gws-gamma-rises"], [law]) == "1 differs", "its rounds"
    assert pages.same(asked["fedlaw-shrinking-helps"], [items["ima-table1-fmnist-shards2"]]) == "post hoc"


def test_what_only_the_code_states_says_so(items, pages):
    text = "\n".join(pages.settings(items["fedeve-table1-mnist-dir1"], claims("fedeve")[:1], ()))
    assert "|`local.batch`|20 ([code](papers.md#eve-7))|20|" in text


def rows_of(pages, item, asked=()):
    """Rows of an item's table, by setting; the head under "setting"."""
    _, table = pages.settings(item, asked, ())
    rows = [line[1:-1].split("|") for line in table.splitlines() if not line.startswith("|---")]
    return {name.strip("`"): cells for name, *cells in rows}


ASKED = ("dataset", "model"), ("number", "per_round", "partition.name"), ("rounds",), ("lr", "batch")
TABLES = "task", "clients", "", "local"
PARTITIONS = {
    "shards": "shards",
    "dirichlet": "concentration",
    "dirichlet_clients": "concentration",
    "hybrid_dirichlet": "even",
}


def test_every_item_has_each_asked_setting_beside_the_papers_and_differences_are_bold(items, pages):
    asked = {one.name: one for one in claims()}
    for item in items.values():
        rows = rows_of(pages, item, [asked[name] for name in item.claims if name in asked])
        spec = dotted(item.trained(item.rows[0]).resolved())
        names = [f"{table}.{name}".strip(".") for table, group in zip(TABLES, ASKED, strict=True) for name in group]
        names.append("local.steps" if spec["local.steps"] else "local.epochs")
        assert set(names) <= rows.keys(), item.name
        assert any(rows.get(f"clients.partition.{name}") for name in PARTITIONS.values()) or "drift" in str(rows)
        assert rows["setting"][-1] == "ours"
        assert len(rows["setting"]) > 1 or item.paper == "cross"
        for name in names:
            *theirs, ours = rows[name]
            values = {dotted(item.trained(row).resolved())[name] for row in item.rows}
            texts = {f"{value:g}" if isinstance(value, float) else str(value) for value in values}
            assert set(ours.split(" or ")) <= texts, (item.name, name)
            for cell in theirs:
                value = cell.partition(" (")[0]
                assert value, (item.name, name)
                assert value.startswith("**") == (value.strip("*") != ours), (item.name, name)


def test_items_without_a_paper_have_a_table_of_ours(items, pages):
    for name, data in (("cross-cifar10-mlp-shards2", "cifar10"), ("cross-fmnist-mlp-fedlaw", "fashion_mnist")):
        rows = rows_of(pages, items[name])
        assert rows["setting"] == ["ours"]
        shown = {"task.dataset": data, "task.model": "mlp", "clients.number": "50", "clients.per_round": "10"}
        assert {**shown, "local.lr": "0.1", "local.batch": "20"}.items() <= {k: v[0] for k, v in rows.items()}.items()


def test_a_setting_of_one_method_alone_shows_beside_that_of_the_others(items, pages):
    rows = rows_of(pages, items["lss-table1-cifar10"], claims("lss")[:1])
    assert (rows["clients.valid_ratio"], rows["soups: clients.valid_ratio"]) == (["0", "0"], ["0.2", "0.2"])
    assert "clients.valid_ratio" not in rows_of(pages, items["ima-table1-fmnist-dir01"], claims("ima")[:1])
    shown = rows_of(pages, items["fedeve-fig4-mnist"], claims("fedeve")[4:6])
    assert shown["clients.partition.concentration"] == ["0.01 or 0.1 or 1"] * 2
    assert shown["local.epochs"] == ["1 or 3 or 5"] * 2


def test_no_experiment_augments_images_as_the_page_says(items):
    page = " ".join((ROOT / "docs/results-settings.md").read_text(encoding="utf-8").split())
    assert "No run augments images;" in page
    for item in items.values():
        names = dotted(item.trained(item.rows[0]).resolved())
        assert not [name for name in names if any(word in name for word in ("augment", "flip", "crop"))]
    table = (ROOT / "docs/papers.md").read_text(encoding="utf-8").partition("### 6.1 ")[2].partition("### 6.2")[0]
    noted = [line for line in table.splitlines() if "flips" in line]
    assert [line.split("|")[1] for line in noted] == ["CIFAR-10/100", "DomainNet"]
    assert "no augmentation (one notebook adds flips" in noted[0]


CELLS = {  # claim -> (paper, item, row, row of the other) where its effect is a difference of two printed cells
    "ima-accuracy-fedavg": ("ima", "Table I", "ima", "fedavg"),
    "ima-accuracy-fedprox": ("ima", "Table I", "fedprox+ima", "fedprox"),
    "ima-accuracy-fedasam": ("ima", "Table I", "fedasam+ima", "fedasam"),
    "ima-accuracy-fedadam": ("ima", "Table I", "fedadam+ima", "fedadam"),
    "fedeve-accuracy": ("fedeve", "Table 1, FEMNIST", "fedeve", "fedavg"),
    "fedeve-over-momentum": ("fedeve", "Table 1, FEMNIST", "fedeve", "fedavgm"),
    "fedeve-over-scaffold": ("fedeve", "Table 1, FEMNIST", "fedeve", "scaffold"),
    "fedeve-momentum": ("fedeve", "Table 1, FEMNIST", "fedavgm", "fedavg"),
}
COLUMNS = {
    "cifar10-shards2": "CIFAR-10 CNN #C=2",
    "ima-table1-cifar10-dir01": "CIFAR-10 CNN Dir(0.1)",
    "shards2": "FMNIST CNN #C=2",
    "fmnist-dir01": "FMNIST CNN Dir(0.1)",
    "mnist-dir001": "0.01",
    "mnist-dir01": "0.1",
    "mnist-dir1": "1",
}


def test_printed_effects_are_differences_of_the_cells_that_the_papers_print(items):
    compared = 0
    for item in items.values():
        for name, effect in item.printed.items():
            if name in CELLS:
                title, table, row, other = CELLS[name]
                column = next(value for key, value in COLUMNS.items() if key in item.name)
                cells = {cell.row: cell.value for cell in paper(title).item(table).numbers if cell.column == column}
                assert effect == pytest.approx(cells[row] - cells[other], abs=1e-9), (item.name, name)
                compared += 1
    assert compared == 22
    cells = {one.row: one.value for one in paper("fedlaw").item("Table 1").numbers if one.column == "SimpleCNN, 1"}
    printed = items["fedlaw-table1-cifar10-dir1"].printed
    for name, gamma in (("095", "0.95"), ("09", "0.9")):
        assert printed[f"fedlaw-fixed-gamma-{name}"] == pytest.approx(cells[gamma] - cells["1"])


def test_figure_6_of_each_paper_has_the_runs_that_its_claim_compares(items):
    by_claim = {}
    for item in items.values():
        for name in item.claims:
            by_claim.setdefault(name, []).append(item.name)
    assert by_claim["lss-more-models"] == ["lss-fig6-cifar10"]
    lss = [items["lss-fig6-cifar10"].trained(row) for row in items["lss-fig6-cifar10"].rows]
    assert [(one.method.candidates, one.rounds) for one in lss] == [(count, 1) for count in range(1, 7)]
    settings = {"heterogeneity": "clients.partition.concentration", "participation": "clients.per_round"}
    for name, setting in {**settings, "epochs": "local.epochs"}.items():
        trained = [items[one].trained(items[one].rows[0]) for one in by_claim[f"ima-gain-{name}"]]
        contents = [one.resolved() for one in trained]
        assert len(contents) == 2
        assert {key for key in dotted(contents[0]) if dotted(contents[0])[key] != dotted(contents[1])[key]} == {setting}
