"""Start a run from the first rounds of another run with the same bits."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.runs.run import Run
from drift.simulation.description import versions
from drift.store import files, links, locks, server_state
from drift.training.server import Server


def begin_from(run: Run, experiment: Experiment, *, runs: str | Path) -> int:
    """Write the rounds on disk of `run` as the first ones of a run of `experiment`; returns their number.

    The experiment has the settings of the run except its method, which states how many rounds are shared
    (`Method.rounds_shared`): IMA has the bits of the method that it averages until its window begins. Nothing is
    written where the run of the experiment has begun already.

    Raises:
        ValueError: If the settings differ in more than the method, the run is past the last shared round, or other
            versions trained it.
    """
    folder = Path(runs) / experiment.slug
    if (folder / "state.safetensors").exists():
        return 0
    if run.experiment.model_copy(update={"method": experiment.method}) != experiment:
        raise ValueError(f"{run.name} and {folder.name} differ in more than their method; they share no rounds.")
    shared, done = experiment.method.rounds_shared(run.method, experiment.rounds), run.committed
    if done > shared:
        raise ValueError(
            f"{run.name} has {done} rounds and {folder.name} shares {shared}; train the latter from round 0."
        )
    if run.about["versions"] != versions():
        raise ValueError(
            f"{run.name} was trained by {run.about['versions']}, this is {versions()}; train it from round 0."
        )
    server = Server.from_stored(run.stored_state())
    server = replace(server, state=experiment.method.state_from(server.state))
    (folder / "rounds").mkdir(parents=True, exist_ok=True)
    name = links.identity({**run.about, "hash": experiment.hash})
    before = ""
    with locks.locked(folder):
        for index in run.rounds():
            stored, _ = files.read_tensors(files.round_path(run.folder, index))
            stored = _renamed(stored, experiment.method)
            about = {"round": index, **links.origin(name, before)}
            files.write_tensors(files.round_path(folder, index), stored, about, compress=experiment.keep.compress)
            before = files.link(run.round(index))
        server_state.write(folder, server.tensors(), server.clients, server.next, links.origin(name, before))
    return server.next


def _renamed(stored: Mapping[str, Tensor], method: Method) -> dict[str, Tensor]:
    """Tensors of a round, of which those that clients receive from the server's state have the names of a method."""
    received = {name: tensor for name, tensor in stored.items() if name.startswith(SENT)}
    renamed = method.state_from({name.removeprefix(SENT): tensor for name, tensor in received.items()})
    rest = {name: tensor for name, tensor in stored.items() if name not in received}
    return rest | {f"{SENT}{name}": tensor for name, tensor in renamed.items()}


SENT = "sent."
"""Beginning of the names of what clients receive, in the file of a round."""
