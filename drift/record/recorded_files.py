"""Files of a recorded run: description, rounds, and the state that commits a round; numpy only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drift.store import chain, links, numpy_files
from drift.store.locks import Busy
from drift.store.numpy_files import Damaged
from drift.store.paths import stamp

Arrays = dict[str, np.ndarray]


class RecordedFiles:
    """The last committed state of a folder, and the writer of its next rounds.

    Args:
        folder: Folder of the run, which need not exist yet.
        about: The description on disk; empty where there is none yet.

    Attributes:
        about: As given, then as written.
        state: The last global model (theta, buffers) and the last mean update (previous); empty before the first round.
        next: Number of the next round.

    Raises:
        Damaged: If the state or a round cannot be read, was altered, or is of another run.
    """

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.about = about
        self._folder, self._path = folder, folder / "state.safetensors"
        self.state: Arrays
        self.state, header = numpy_files.read_tensors(self._path) if self._path.exists() else ({}, {"next": 0})
        self.next: int = header["next"]
        if self.next:
            if header.get("run") != about.get("run"):
                raise Damaged(self._path, f"is of another run than {folder / 'run.json'}", "Record in another folder.")
            (known := chain.read(folder)).require(*known.wrong)
        self._before: str = header.get("before", "")
        self._require_last_round()
        self._stamp = self._state_stamp()

    def require_unchanged(self) -> None:
        """Refuse to go on where another process wrote the state meanwhile.

        Raises:
            Busy: If it did.
        """
        if self._state_stamp() != self._stamp:
            raise Busy(f"{self._folder} was written by another recorder meanwhile; record elsewhere.")

    def commit(self, number: int, about: dict[str, Any], arrays: Arrays, state: Arrays) -> None:
        """Write description and round, then the state, which commits the round.

        Args:
            number: Number of the round.
            about: The description with this round.
            arrays: Arrays of the round.
            state: As the attribute.
        """
        link = links.link(number, arrays)
        run = self.about["run"] if self.next else links.name_by(link, about["versions"])
        self.describe({**about, "run": run})
        path = self._folder / "rounds" / f"{number:06d}.safetensors"
        numpy_files.write_tensors(path, arrays, {"round": number, **links.origin(run, self._before)})
        numpy_files.write_tensors(self._path, state, {"next": number + 1, **links.origin(run, link)})
        self.state, self.next, self._before = state, number + 1, link
        self._stamp = self._state_stamp()

    def start_of(self, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Start (d,) and buffers (b,) of a recorded round; None where it has none."""
        path = self._folder / "rounds" / f"{number:06d}.safetensors"
        arrays = numpy_files.read_tensors(path)[0] if path.exists() else {}
        return (arrays["start"], arrays["start_buffers"]) if "start" in arrays else None

    def describe(self, about: dict[str, Any]) -> None:
        """Write the description where it is another one."""
        if about != {key: value for key, value in self.about.items() if key != "format"}:
            numpy_files.write_json(self._folder / "run.json", about)
            self.about = about

    def _require_last_round(self) -> None:
        """Raise Damaged where the last round is damaged or missing, or the state does not follow it."""
        if not self.next:
            return
        arrays, _ = numpy_files.read_tensors(self._folder / "rounds" / f"{self.next - 1:06d}.safetensors")
        if not np.array_equal(arrays.get("end", self.state["theta"]), self.state["theta"]):
            raise Damaged(self._path, f"does not follow round {self.next - 1}", "Record in another folder.")

    def _state_stamp(self) -> tuple[int, int] | None:
        return None if (stated := stamp(self._path)) is None else (stated.inode, stated.written)


def read_description(folder: Path, keep: Mapping[str, str]) -> dict[str, Any]:
    """The description of a folder that is recorded on; empty where there is none yet.

    Raises:
        ValueError: If it has another kind of run, or other policies.
    """
    path = folder / "run.json"
    if not path.exists():
        return {}
    about = numpy_files.read_json(path, numpy_files.RECORD_ELSEWHERE)
    if about.get("engine") != "recorded":
        raise ValueError(f"{folder} has a run that was not recorded by this class; record elsewhere.")
    if about["experiment"]["keep"] != keep:
        raise ValueError(f"{folder} keeps {about['experiment']['keep']}, not {keep}; record elsewhere.")
    return about
