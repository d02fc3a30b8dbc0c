"""What resuming needs: the server's tensors and, by client, what clients keep between rounds.

`state.safetensors` is the commit point. It contains the states of clients as well, as long as they are small together;
beyond `ONE_FILE` each client's is a file `clients/<client>-<round>.safetensors`, of which a round writes those of the
clients that it trained. The state then has the table of these files with their digests. New files have new names, and
those that they replace are removed after the commit, so that a stop at any moment leaves all that the state names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from drift.store import files
from drift.store.numpy_files import Damaged, require_inside
from drift.store.paths import CLIENTS, STATE
from drift.store.round_headers import read_client

State = dict[str, Tensor]

ONE_FILE = 1 << 26
"""Bytes of all client states up to which `state.safetensors` contains them."""

CLIENT_FILE = re.compile(r"\d{6,}-\d{6,}\.safetensors")
"""Names of the files of clients."""

_TABLE = ("clients.ids", "clients.rounds", "clients.digests")


class StateFile(NamedTuple):
    """The file of a client's state.

    Args:
        folder: Folder of the run.
        client: Id of the client.
        round: Round whose commit wrote it.
        digest: Of its content.
    """

    folder: Path
    client: int
    round: int
    digest: str = ""

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder / CLIENTS / f"{self.client:06d}-{self.round:06d}.safetensors"

    def read(self) -> State:
        """The client's state.

        Raises:
            Damaged: If the file is absent, altered or that of another state.
        """
        require_inside(self.path, self.folder)
        return files.read_tensors(self.path, self.digest)[0]


@dataclass
class _Entry:
    """The state of a client: in memory until it is committed to a file, then there."""

    state: State | None
    file: StateFile | None = None

    def read(self) -> State:
        state = self.state  # first, as the thread that writes sets the file and then takes the state away
        return self.file.read() if state is None and self.file is not None else state or {}


class ClientStates(Mapping[int, State]):
    """States by client id; those in files are read when they are used. Nothing changes what one contains."""

    def __init__(self, states: Mapping[int, State] = MappingProxyType({})) -> None:
        self.entries: dict[int, _Entry]
        if isinstance(states, ClientStates):
            self.entries = dict(states.entries)
        else:
            self.entries = {client: _Entry(state) for client, state in states.items()}

    @classmethod
    def in_files(cls, stored: list[StateFile]) -> ClientStates:
        """States of which each has a file."""
        states = cls()
        states.entries = {file.client: _Entry(None, file) for file in stored}
        return states

    def updated(self, states: Mapping[int, State]) -> ClientStates:
        """These states with others in their place."""
        result = ClientStates(self)
        result.entries |= ClientStates(states).entries
        return result

    def __getitem__(self, client: int) -> State:
        """The state of a client."""
        return self.entries[client].read()

    def __iter__(self) -> Iterator[int]:
        """Ids of the clients."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Number of the clients that have a state."""
        return len(self.entries)

    def tensors(self) -> State:
        """All of them as named tensors, in memory."""
        return {f"client.{client}.{name}": value for client, state in self.items() for name, value in state.items()}

    def are_large(self) -> bool:
        """Whether they are stored in files of their own."""
        entries = self.entries.values()
        if any(entry.file is not None for entry in entries):
            return True
        return sum(value.nbytes for entry in entries for value in (entry.state or {}).values()) > ONE_FILE


class StoredState(NamedTuple):
    """The state of a run: tensors of the server, states of clients, number of the next round."""

    tensors: State
    clients: ClientStates
    next: int


def write(
    folder: Path,
    tensors: Mapping[str, Tensor],
    clients: Mapping[int, State],
    following: int,
    origin: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the states of clients that changed, and then the commit point.

    Args:
        folder: Folder of the run.
        tensors: Tensors of the server.
        clients: States by client. Those written to files leave the memory.
        following: Number of the next round.
        origin: Run and link of the last round, as `drift.store.links.origin` returns them.
    """
    states = clients if isinstance(clients, ClientStates) else ClientStates(clients)
    if not states.are_large():
        files.write_state(folder, {**tensors, **states.tensors()}, following, origin)
        return
    stored = {
        client: entry.file
        if entry.file is not None and entry.file.folder == folder
        else _write_client(folder, client, following - 1, entry, origin)
        for client, entry in sorted(states.entries.items())
    }
    files.write_state(folder, {**tensors, **_table(list(stored.values()))}, following, origin)
    for client, file in stored.items():
        states.entries[client].file = file
        states.entries[client].state = None
    for path, whose in unnamed(folder, states).items():
        if whose == origin.get("run", ""):
            path.unlink(missing_ok=True)


def read(folder: Path) -> StoredState:
    """The state of a run; states of clients in files are read when they are used.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign, or a file of a client is absent.
    """
    tensors, following = files.read_state(folder)
    server = {name: value for name, value in tensors.items() if not name.startswith(("client.", "clients."))}
    table = [tensors.get(name) for name in _TABLE]
    if any(entry is not None for entry in table):
        stored = _from_table(folder, table)
        for file in stored:
            if not file.path.is_file():
                raise Damaged(file.path, "is missing", files.ANEW)
        return StoredState(server, ClientStates.in_files(stored), following)
    states: dict[int, State] = {}
    for name, value in tensors.items():
        if name.startswith("client."):
            _, client, rest = name.split(".", 2)
            states.setdefault(int(client), {})[rest] = value
    return StoredState(server, ClientStates(states), following)


def unnamed(folder: Path, states: ClientStates) -> dict[Path, str | None]:
    """Files of clients that the state does not name, with the run that each names; None where it cannot be read.

    Those of the run itself are replaced ones, and those of a round that was not committed.
    """
    named = {entry.file.path.name for entry in states.entries.values() if entry.file is not None}
    tensors_found: dict[Path, str | None] = {}
    for path in client_files(folder):
        if path.name not in named:
            tensors_found[path] = None
            with suppress(Damaged):
                tensors_found[path] = read_client(folder, path).run
    return tensors_found


def client_files(folder: Path) -> list[Path]:
    """Files of clients in the folder of a run, those of a stopped write among them."""
    return sorted(path for path in (folder / CLIENTS).glob("*") if CLIENT_FILE.fullmatch(path.name))


def damaged_clients(folder: Path) -> Iterator[Damaged]:
    """What is wrong with the files of clients that a readable state names."""
    tensors, _ = files.read_state(folder)
    table = [tensors.get(name) for name in _TABLE]
    try:
        stored = _from_table(folder, table) if any(entry is not None for entry in table) else []
    except Damaged as reason:
        yield reason
        return
    for file in stored:
        try:
            file.read()
        except Damaged as reason:
            yield reason


def _write_client(folder: Path, client: int, index: int, entry: _Entry, origin: Mapping[str, str]) -> StateFile:
    file = StateFile(folder, client, index)
    digest = files.write_tensors(file.path, entry.read(), {"client": client, "round": index, **origin})
    return file._replace(digest=digest)


def _table(stored: list[StateFile]) -> State:
    digests = np.frombuffer(b"".join(bytes.fromhex(file.digest) for file in stored), dtype=np.uint8)
    ids, rounds = ([getattr(file, name) for file in stored] for name in ("client", "round"))
    values = torch.tensor(ids), torch.tensor(rounds), torch.from_numpy(digests.reshape(len(stored), -1).copy())
    return dict(zip(_TABLE, values, strict=True))


def _from_table(folder: Path, table: list[Tensor | None]) -> list[StateFile]:
    ids, rounds, digests = table
    if ids is None or rounds is None or digests is None or not len(ids) == len(rounds) == len(digests):
        raise Damaged(folder / STATE, "names the files of clients incompletely", files.ANEW)
    entries = zip(ids.tolist(), rounds.tolist(), digests.numpy(), strict=True)
    return [StateFile(folder, client, index, digest.tobytes().hex()) for client, index, digest in entries]
