"""Which rounds of a run the stage shows."""

from drift.runs.run import Run


def least_clients(run: Run) -> int:
    """Clients that such a round has at least: the three of a map; fewer, and no map, where the run never has three."""
    return min(3, run.experiment.clients.per_round)


def shown_rounds(run: Run) -> list[int]:
    """Rounds that kept so many clients; none without data."""
    return [] if run.without_data else run.kept("clients", least=least_clients(run))
