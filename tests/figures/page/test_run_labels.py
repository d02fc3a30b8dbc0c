"""Labels of runs on the stage."""

from figures.page.run_labels import run_labels


def test_a_label_has_the_two_settings_that_tell_a_run_apart_best():
    rows = [
        ("rounds", ["40", "40", "1", "40"]),
        ("clients.partition.name", ["iid", "shards", "shards", ""]),
        ("local.lr", ["0.1", "0.1", "0.1", "0.2"]),
    ]
    methods = ["FedAvg", "FedAvg", "FedAvg", "IMA"]
    assert run_labels(methods, rows) == [
        "FedAvg, partition iid",
        "FedAvg, 40 rounds, partition shards",
        "FedAvg, 1 round",
        "IMA",
    ]


def test_data_and_models_that_differ_are_in_every_label():
    rows = [
        ("rounds", ["4", "9", "4"]),
        ("task.dataset", ["digits", "mnist", "mnist"]),
        ("task.model", ["mlp", "mlp", "lenet"]),
    ]
    assert run_labels(["FedAvg", "FedAvg", "FedLAW"], rows) == [
        "FedAvg, dataset digits, model mlp",
        "FedAvg, dataset mnist, model mlp",
        "FedLAW, dataset mnist, model lenet",
    ]


def test_settings_that_a_run_has_not_or_that_are_long_are_left_out():
    rows = [("method.start", ["", "0.5"]), ("keep", ["x" * 30, "y" * 30])]
    assert run_labels(["IMA", "IMA"], rows) == ["IMA", "IMA, start 0.5"]
