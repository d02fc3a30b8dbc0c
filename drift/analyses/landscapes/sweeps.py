"""The planes through recorded models as sweeps, and the clients of a round that they go through."""

from collections.abc import Sequence

from drift.analyses.per_round import resolve_round
from drift.runs.run import Run
from drift.store.number_ranges import spans
from drift.store.round_record import Round
from landscape.geometry.planes import plane
from landscape.sweep.grid import Sweep


def global_sweep(
    run: Run, rounds: Sequence[int] | None, *, points: int, margin: float | tuple[float, float]
) -> tuple[list[int], Sweep]:
    """Three rounds (the last that kept their global model where None), and the plane through their global models.

    Raises:
        ValueError: If there are not three.
    """
    indices = run.kept("globals")[-3:] if rounds is None else list(rounds)
    if len(indices) != 3:
        raise ValueError(f"a plane needs three rounds, {indices} were given; run {run.name} has {len(run.rounds())}.")
    records = [run.round(index) for index in indices]
    models = [record.kept("end") for record in records]
    sweep = plane(*models, points=points, margin=margin, labels=[f"round {record.index}" for record in records])
    return [record.index for record in records], sweep


def client_sweep(
    run: Run, index: int, clients: Sequence[int] | None, *, points: int, margin: float, box: str = "marks"
) -> tuple[Round, list[int], Sweep]:
    """A round, ids of three clients of its cohort (the first with samples where None), and the plane through them.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, selected, rows = round_clients(run, index, clients, 3)
    labels = [f"client {client}" for client in selected]
    sweep = plane(*record.kept("clients")[rows], points=points, margin=margin, box=box, labels=labels)
    return record, selected, sweep


def round_clients(
    run: Run, index: int, clients: Sequence[int] | None, number: int = 0, *, first: int = 0
) -> tuple[Round, list[int], list[int]]:
    """A round that kept its clients, ids of clients of its cohort, and their rows.

    Args:
        number: Number of different clients that are needed; 0: any.
        first: Number of clients with samples from the first one on where `clients` is None; by default `number`.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold such clients.
    """
    record = run.round(resolve_round(run, index, "clients"))
    ids, trained = record.ids.tolist(), record.ids[record.shares > 0].tolist()
    selected = (trained if len(trained) >= number else ids)[: first or number] if clients is None else list(clients)
    word = ("any", "one", "two", "three")[number]
    if len(ids) < number:
        records = run.without_models(run.kept("clients", least=number))
        suited = spans([other.index for other in records if len(other.ids) >= number])
        lost = [f"{_LOST[name]}: {record.extras[name].tolist()}" for name in _LOST if name in record.extras]
        causes = f" ({', '.join(lost)})" if lost else ""
        raise ValueError(
            f"round {record.index} of run {run.name} has {f'clients {ids}' if ids else 'no clients'}, and {word} are "
            f"needed{causes}. Rounds with {word} or more: {suited}."
        )
    if number and not len(selected) == len(set(selected) & set(ids)) == number:
        raise ValueError(f"round {record.index} has clients {ids}, and {selected} were asked for; name {word} of them.")
    return record, selected, rows_of(record, selected)


_LOST = {"excluded": "no finite model", "stopped": "stopped"}


def rows_of(record: Round, clients: Sequence[int]) -> list[int]:
    """Rows of clients in a cohort.

    Raises:
        ValueError: If a client is not in the cohort.
    """
    ids = record.ids.tolist()
    if absent := [client for client in clients if client not in ids]:
        raise ValueError(f"round {record.index} has clients {ids}, client {absent[0]} was asked for; name one of them.")
    return [ids.index(client) for client in clients]
