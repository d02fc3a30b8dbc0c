"""Rounds by different budgets: the same bits, and each client model written once."""

import errno
import os
import time
from dataclasses import replace

import pytest
import tiny
import torch
from warm import Warm

import drift
from drift.methods.fedavg import FedAvg
from drift.methods.fedfomo import FedFomo
from drift.methods.fedprox import FedProx
from drift.simulation import background_writer, simulate
from drift.store import client_rows, files, memory_budget, numpy_files, server_state
from drift.training import arrivals
from landscape.model import mapped_files
from landscape.results import atomic_write

pytestmark = pytest.mark.seconds

BUDGETS = ("100GB", "20KB", "1KB")
"""All in memory; the global models in memory and the clients in files; all in files."""


BROKEN = 1
"""A client of the cohort of round 1."""


def digests(run):
    """Digest of each stored round but for its seconds, and of the state."""
    values = []
    for index in range(3):
        tensors, about = files.read_tensors(files.round_path(run.folder, index))
        assert tensors.pop("metric.seconds") > 0
        values.append(files.digest(tensors, str(about)))
    return [*values, files.digest(*files.read_tensors(run.folder / files.STATE)[:1])]


@pytest.mark.parametrize(
    "settings",
    [
        ["method=fedavg"],
        ["method=fedavg", "evaluate_every=2", "keep.clients=every 2"],
        ["method=ima", "method.window=2", "method.start=0"],
        ["method=fedlaw", "method.server_epochs=2"],
        ["method=fedgma"],
        ["method=fedbe", "method.server_epochs=1", "task.model=mlp", "task.model_options.hidden=[1000]"],
        ["method=scaffold", "local.momentum=0.0", "keep.compress=true"],
        ["method=fedfomo", "method.models=2", "clients.valid_ratio=0.3"],
        ["keep.dtype=bfloat16 deltas", "engine=batched"],
        ["keep.clients=none", "clients.train_all=true"],
        *(
            pytest.param(settings, marks=pytest.mark.slow)
            for settings in (
                ["method=fedeve"],
                ["method=fednova"],
                ["method=feddf", "method.server_epochs=2"],
                ["method=feddyn"],
                ["method=fedfomo", "method.like=code", "keep.compress=true"],
                ["method=fedavg", "task.model=mlp", "task.model_options.hidden=[3000]"],
            )
        ),
    ],
    ids=" ".join,
)
def test_budgets_change_no_bit(tmp_path, settings):
    expected = None
    for number, size in enumerate(BUDGETS):
        with memory_budget.limited(size):
            run = drift.simulate(tiny.experiment(*settings), runs=tmp_path / size)
            results = digests(run), [_clients(drift.open(run.folder), index) for index in range(3)]
        assert not list(run.folder.rglob("*.part"))
        if number:
            assert results[0] == expected[0]
            assert all(torch.equal(*pair) for pair in zip(results[1], expected[1], strict=True))
        else:
            expected = results


@pytest.mark.parametrize("keep", ["all", "none"])
def test_a_full_disk_is_said_by_the_thread_that_stores_updates(tmp_path, monkeypatch, keep):
    experiment, write, calls = tiny.experiment(f"keep.clients={keep}"), client_rows.RowFile.write, []
    whole = drift.simulate(experiment, runs=tmp_path / "whole")

    def full(file, row, model):
        calls.append(row)
        if len(calls) == 5:  # the second client of round 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.path))
        write(file, row, model)

    monkeypatch.setattr(arrivals, "LARGE", 0)
    with memory_budget.limited("1KB"):
        with monkeypatch.context() as patch:
            patch.setattr(client_rows.RowFile, "write", full)
            with pytest.raises(OSError, match="No space left"):
                drift.simulate(experiment, runs=tmp_path / "parts")
        assert not list((tmp_path / "parts").rglob("*.part"))
        assert digests(drift.simulate(experiment, runs=tmp_path / "parts")) == digests(whole)


class _Lending(FedAvg):
    """FedAvg whose clients return the memory that they were trained in, which the next client overwrites."""

    def local(self, client):
        return replace(super().local(client), theta=client.flat.theta)


@pytest.mark.parametrize("size", BUDGETS)
def test_a_model_in_the_workspace_is_stored_as_it_came(tmp_path, monkeypatch, size):
    experiment, is_finite = tiny.experiment().model_copy(update={"method": _Lending()}), arrivals._finite
    at_once = drift.simulate(experiment, runs=tmp_path / "at once")
    monkeypatch.setattr(arrivals, "LARGE", 0)
    monkeypatch.setattr(arrivals, "_finite", lambda *given: (time.sleep(0.01), is_finite(*given))[1])
    with memory_budget.limited(size):
        later = drift.simulate(experiment, runs=tmp_path / "later")
    assert digests(at_once) == digests(later)


STATEFUL = [
    ["method=scaffold", "local.momentum=0.0"],
    ["method=scaffold", "local.momentum=0.0", "method.like=code", "keep.clients=none"],
    ["method=feddyn", "clients.train_all=true"],
    ["method=fedfomo", "method.validation=train", "method.baseline=before_training"],
    ["local.momentum=0.9", "local.persist_optimizer=true"],
]


@pytest.mark.parametrize("settings", STATEFUL, ids=" ".join)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])  # two below, in one of these settings
def test_what_clients_return_beside_their_models_stays_in_files(tmp_path, monkeypatch, settings, workers):
    experiment, mapped, one_round = tiny.experiment(*settings), [], simulate.train_round

    def observed(*arguments):
        trained, server = one_round(*arguments)
        kept = trained.record.carried.values()
        mapped.extend(mapped_files.is_mapped(rows) for rows in kept if rows.shape == expected_shape)
        return trained, server

    monkeypatch.setattr(server_state, "ONE_FILE", 0)
    whole = drift.simulate(experiment, runs=tmp_path / "whole")
    monkeypatch.setattr(simulate, "train_round", observed)
    trained = experiment.clients.number if experiment.clients.train_all else experiment.clients.per_round
    expected_shape = trained, whole.task.layout.size
    with memory_budget.limited("1KB"):
        parts = drift.simulate(experiment, runs=tmp_path / "parts", workers=workers)
        assert mapped and all(mapped)
        stored = drift.open(parts.folder)
        assert digests(whole) == digests(parts)
        if experiment.keep.clients == "all":
            assert all(map(mapped_files.is_mapped, _large(stored.round(1).carried)))
            pairs = zip(_large(stored.client(2, 0).state), _large(whole.client(2, 0).state), strict=True)
            assert all(torch.equal(*pair) for pair in pairs)


def _large(tensors):
    return [value for _, value in sorted(tensors.items()) if value.numel() > 100]


def test_workers_write_to_the_same_rows(tmp_path):
    experiment = tiny.experiment(*STATEFUL[0])
    whole = drift.simulate(experiment, runs=tmp_path / "whole")
    with memory_budget.limited("1KB"):
        parts = drift.simulate(experiment, runs=tmp_path / "parts", workers=2)
    assert digests(whole) == digests(parts)


def test_client_models_are_written_once(tmp_path, monkeypatch):
    completed, written = [], []

    def complete(path, begun, *rest):
        completed.append((path.name, begun.stat().st_ino))
        atomic_write.complete(path, begun, *rest)

    def write_bytes(path, *data):
        written.append(path.name)
        atomic_write.write_bytes(path, *data)

    monkeypatch.setattr(numpy_files, "complete", complete)
    monkeypatch.setattr(numpy_files, "write_bytes", write_bytes)
    with memory_budget.limited("1KB"):
        run = drift.simulate(tiny.experiment(), runs=tmp_path)
    names = [f"{index:06d}.safetensors" for index in range(3)]
    assert completed == [(name, (run.folder / "rounds" / name).stat().st_ino) for name in names]
    assert not set(written) & set(names)


def test_numbers_without_room_before_the_models_are_written_with_them(tmp_path, monkeypatch):
    whole, written = drift.simulate(tiny.experiment(), runs=tmp_path / "whole"), []

    def write_bytes(path, *data):
        written.append(path.name)
        atomic_write.write_bytes(path, *data)

    monkeypatch.setattr(client_rows, "offset_of_rows", lambda number: 64)
    monkeypatch.setattr(numpy_files, "write_bytes", write_bytes)
    with memory_budget.limited("1KB"):
        run = drift.simulate(tiny.experiment(), runs=tmp_path / "parts")
    assert {f"{index:06d}.safetensors" for index in range(3)} <= set(written)
    assert digests(run) == digests(whole) and not list(run.folder.rglob("*.part"))


def test_models_that_clients_choose_among_stay_in_files(tmp_path, monkeypatch):
    experiment = tiny.experiment("method=fedfomo", "method.models=2", "clients.valid_ratio=0.3")
    whole, prepare, mapped = drift.simulate(experiment, runs=tmp_path / "whole"), FedFomo.prepare, []

    def observed(method, client):
        mapped.append(mapped_files.is_mapped(client.server["models"]))
        return prepare(method, client)

    def stop(record):
        raise KeyboardInterrupt

    monkeypatch.setattr(background_writer, "SHARE", 0.0)  # a round is on disk before the next one trains
    with memory_budget.limited("1KB"):
        with pytest.raises(KeyboardInterrupt):
            drift.simulate(experiment, runs=tmp_path / "parts", progress=stop)
        monkeypatch.setattr(FedFomo, "prepare", observed)
        parts = drift.simulate(experiment, runs=tmp_path / "parts")
        assert mapped == [True] * 6
        assert mapped_files.is_mapped(parts.round(2).sent["models"])
    assert digests(whole) == digests(parts)


class _Doubling(FedAvg):
    """FedAvg whose server goes twice as far, which it does not say."""

    def step(self, setting, state, cohort, combined):
        outcome = super().step(setting, state, cohort, combined)
        return replace(outcome, end=2 * outcome.end - cohort.start)


@pytest.mark.parametrize(
    ("method", "readings"), [(FedAvg(), 1), (FedProx(), 1), (FedAvg(server_lr=2.0), 2), (_Doubling(), 2)], ids=repr
)
def test_a_round_in_a_file_is_read_once_for_its_mean_and_its_record(tmp_path, monkeypatch, method, readings):
    experiment = tiny.experiment().model_copy(update={"method": method})
    whole, columns, read = drift.simulate(experiment, runs=tmp_path / "whole"), [], mapped_files.read_columns

    def counted(models, part, block):
        columns.append(part.stop - part.start)
        read(models, part, block)

    monkeypatch.setattr(mapped_files, "read_columns", counted)
    with memory_budget.limited("1KB"):
        parts = drift.simulate(experiment, runs=tmp_path / "parts")
    assert sum(columns) == 3 * readings * whole.task.layout.size
    assert digests(whole) == digests(parts)


class _Spoiling(FedAvg):
    """FedAvg, in which a client of the second round returns no number."""

    def local(self, client):
        update = super().local(client)
        spoiled = client.index == 1 and client.id == BROKEN
        return replace(update, theta=update.theta * torch.nan) if spoiled else update


@pytest.mark.parametrize("large", [0, 1 << 20], ids=["in a thread", "at once"])
def test_rows_of_excluded_clients_are_left_out(tmp_path, monkeypatch, large):
    monkeypatch.setattr(arrivals, "LARGE", large)
    experiment = tiny.experiment()
    experiment = experiment.model_copy(update={"method": _Spoiling()})
    runs = []
    for size in BUDGETS[::2]:
        with memory_budget.limited(size):
            runs.append(drift.simulate(experiment, runs=tmp_path / size))
            assert not list(runs[-1].folder.rglob("*.part"))
    assert runs[0].round(1).extras["excluded"].tolist() == [BROKEN]
    assert len(runs[0].round(1).clients) == 2
    assert digests(runs[0]) == digests(runs[1])


def killed_training(runs, moment, keep):
    """Trains in a process of its own that dies at a write or at a rename."""
    torch.set_num_threads(1)
    calls = []

    def dying(real, times):
        def call(*arguments):
            calls.append(arguments)
            if len(calls) == times:
                os._exit(9)
            return real(*arguments)

        return call

    if moment == "row":
        client_rows.RowFile.write = dying(client_rows.RowFile.write, 5)  # the second client of round 1
    else:
        os.replace = dying(os.replace, 4)  # run.json, round 0, its state, round 1
    drift.simulate(tiny.experiment(f"keep.clients={keep}"), runs=runs)


@pytest.mark.parametrize(("moment", "keep"), [("row", "all"), ("rename", "all"), ("row", "none")])
def test_a_kill_costs_the_round_and_no_bit(tmp_path, monkeypatch, moment, keep):
    experiment = tiny.experiment(f"keep.clients={keep}")
    whole = drift.simulate(experiment, runs=tmp_path / "whole")
    monkeypatch.setenv("FEDSCAPE_MEMORY", "1KB")
    child = Warm.Process(target=killed_training, args=(tmp_path / "killed", moment, keep))
    child.start()
    child.join()
    assert child.exitcode == 9
    monkeypatch.delenv("FEDSCAPE_MEMORY")
    (folder,) = (tmp_path / "killed").iterdir()
    assert drift.open(folder).rounds() in ([0], [] if moment == "row" else [0])  # round 0 may have been in writing
    assert list(folder.rglob("*.part"))
    with memory_budget.limited("1KB"):
        resumed = drift.simulate(experiment, runs=tmp_path / "killed")
    assert digests(resumed) == digests(whole)
    assert not list(folder.rglob("*.part"))


def _clients(run, index):
    clients = run.round(index).clients
    return torch.zeros(0) if clients is None else clients.clone()


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1.5GiB", 3 << 29), ("2 gb", 2 * 10**9), ("7", 7), ("1kb", 1000)]
)
def test_sizes(text, size):
    assert memory_budget.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "2 apples", "-1GB", "GB", "1e9", "2B", "nan", "0", "0GB", "0.4"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"give a size above 0, such as"):
        memory_budget.parse_size(text)
