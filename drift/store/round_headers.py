"""Headers of the files of a run: what they state, and their small arrays, read in one piece without the models.

The writer puts the widest types first (`drift.store.numpy_files.write_contents`), so small arrays stand at the start of
a file. A digest in the header covers them and the description; it is compared here. Files name their run and the round
before them (`drift.store.links`); `drift.store.chain` checks them against each other.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from drift.store import links, paths
from drift.store.digests import FORMAT, Content, contents, digest_contents, small_digest, small_digests
from drift.store.file_layout import LINKED, is_small, read_header
from drift.store.numpy_files import UNREADABLE, Damaged, arrays, description, reading, require_known

ROUND_FILE = re.compile(r"\d{6}\.safetensors")
"""Names of round files."""

_ANEW = "See fedscape verify --repair."


@dataclass(frozen=True)
class Header:
    """What a file states beside its models.

    Args:
        file: Its path inside the run's folder.
        index: Number of the round; of the state, the next round.
        run, before: Identity of its run, and link of the round before it.
        link: Link of the round, by which the next file names it.
        arrays: `ids`, `sizes`, `weights` (m,), `gram` (m + 3, m + 3), `metric.NAME` () and small `extras.NAME`.
    """

    file: str
    index: int
    run: str
    before: str
    link: str
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    @property
    def state(self) -> bool:
        """Whether it is the run's state."""
        return self.file == paths.STATE

    def misplaced(self, index: int) -> str:
        """Why it is not of round `index`; "" if it is."""
        return "" if self.index == index else f"holds round {self.index}, not {index}; it was renamed or copied"

    def foreign(self, run: str) -> str:
        """Why it is not of a run; "" if it is."""
        return "" if self.run == run else f"is of run {self.run or 'no name'}, and this is run {run}"

    def broken(self, link: str) -> str:
        """Why it does not follow from the round of a link; "" if it does."""
        return "" if self.before == link else "does not follow from the round before it"

    def numbers(self) -> dict[str, float]:
        """Metrics by name, and what the method recorded as one number."""
        named = {name.partition(".")[2]: value for name, value in self.arrays.items() if value.ndim == 0}
        return {name: float(value) for name, value in named.items()}


def has_buffers(folder: Path, index: int) -> bool:
    """Whether a round states floating buffers of its global model; its models are not read."""
    with open(paths.round_path(folder, index), "rb") as file:
        span = read_header(file).spans.get("end_buffers")
    return span is None or span.end > span.begin


def read_small_arrays(path: Path) -> Header:
    """Header and small arrays of a round file.

    Raises:
        Damaged: If it is absent, truncated, altered, no round file, or in another format.
    """
    header = _read(path, f"{path.parent.name}/{path.name}", path.parent.parent, "round")
    if not set(LINKED) <= set(header.arrays):
        raise Damaged(path, "cannot be read (it has no cohort); it is not a round of a run", _ANEW)
    return header


def read_state(folder: Path) -> Header:
    """Header of the state of a run.

    Raises:
        Damaged: If it is absent, truncated, altered, no state of a run, or in another format.
    """
    return _read(folder / paths.STATE, paths.STATE, folder, "next")


def read_client(folder: Path, path: Path) -> Header:
    """Header of the file of a client's state.

    Raises:
        Damaged: If it is absent, truncated, altered, no file of a client, or in another format.
    """
    return _read(path, path.relative_to(folder).as_posix(), folder, "round")


def _read(path: Path, name: str, folder: Path, number: str) -> Header:
    with reading(path, _ANEW, folder) as file:
        stated = read_header(file)
        require_known(path, stated.metadata.get("format"), _ANEW)
        small = {name: span for name, span in stated.spans.items() if is_small(name, (span.dtype, span.shape))}
        values = arrays(file, stated, small)
        digests = small_digests(contents(values))
        if stated.metadata.get("small") != small_digest(stated.metadata.get("about", ""), *digests):
            raise Damaged(path, "was altered: its small arrays do not match their digest", _ANEW)
        about = description(path, stated.metadata, _ANEW)
        index, run, before = int(about[number]), str(about.get("run", "")), str(about.get("before", ""))
        return Header(name, index, run, before, links.link_by(index, digests[0]), values)


def read_round(folder: Path, index: int) -> Header | None:
    """Header and small arrays of a round; None where they cannot be read, or state another number."""
    with suppress(Damaged):
        header = read_small_arrays(paths.round_path(folder, index))
        return header if header.index == index else None
    return None


def is_intact(path: Path) -> bool:
    """Whether a file that is not compressed has the content that was written; False also where that is not known.

    False is no verdict: compressed files are decompressed by `drift.store.files.read_tensors`, which names the damage.
    """
    with suppress(*UNREADABLE), open(path, "rb") as file:
        metadata, spans, _ = read_header(file)
        if metadata.get("format") != FORMAT or "packed" in metadata:
            return False
        memory = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        stored = {name: Content(span.dtype, span.shape, memory[span.begin : span.end]) for name, span in spans.items()}
        return digest_contents(stored, metadata.get("about", "")) == metadata.get("digest")
    return False


def round_numbers(folder: Path) -> list[int]:
    """Numbers of the round files, ascending."""
    rounds = folder / "rounds"
    names = os.listdir(rounds) if rounds.is_dir() else []
    return sorted(int(name.partition(".")[0]) for name in names if ROUND_FILE.fullmatch(name))


def lacks_state(folder: Path) -> bool:
    """Whether there is no state, but a round after round 0, as no process leaves that is stopped before a commit."""
    return not (folder / paths.STATE).exists() and any(round_numbers(folder)[-1:])


def uncommitted(folder: Path) -> str:
    """What lies in a run's folder that no state counts, and what to do; "" where there is a state, or nothing."""
    numbers = [] if (folder / paths.STATE).exists() else round_numbers(folder)
    remedy = "as where a training stops before its first round is complete. Train again: the same bits are made anew"
    return f"; {paths.round_file(numbers[0])} is on disk without {paths.STATE}, {remedy}" if numbers else ""


def following_round(folder: Path) -> int:
    """Number of the round after the last complete one, by the state; 0 where none was committed.

    Raises:
        Damaged: If the state is missing beside rounds, altered, no state of a run, or in another format.
    """
    if lacks_state(folder):
        numbers = round_numbers(folder)
        what = f"is missing, which says how many rounds are complete; {len(numbers)} round files, "
        what += f"{numbers[0]} to {numbers[-1]}, are on disk"
        raise Damaged(folder / paths.STATE, what, "Put it back from a copy, or train again: that gives the same bits.")
    return read_state(folder).index if (folder / paths.STATE).exists() else 0


def complete_rounds(folder: Path, following: int, *, gaps: bool) -> list[int]:
    """Numbers of the round files before round `following`, ascending.

    Raises:
        Damaged: If one is missing, unless there may be gaps.
    """
    present = [index for index in round_numbers(folder) if index < following]
    if not gaps and len(present) < following:
        raise Damaged(paths.round_path(folder, min({*range(following)} - {*present})), "is missing", _ANEW)
    return present


def link_before(folder: Path, following: int) -> str:
    """Link of the last round before round `following`, from its file; "" where there is none."""
    before = [index for index in round_numbers(folder) if index < following]
    header = read_round(folder, before[-1]) if before else None
    return "" if header is None else header.link
