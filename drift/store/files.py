"""Files of a run: written whole or not at all, checked by a digest when read, never unpickled."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from drift.store import links
from drift.store.atomic_write import write_bytes
from drift.store.compression import packed, unpacked
from drift.store.keep import Keep
from drift.store.round_record import Round
from drift.store.safetensors_layout import pieces
from landscape.results.parsed_text import from_json, json_table

FORMAT = "fedscape-1"
PACKED = "fedscape-2"
"""Format of files with packed tensors, which earlier versions cannot read."""


STATE = "state.safetensors"
"""Name of the commit point in a run's folder."""

NEWEST = 2
"""Number of the newest format that is read."""


class Damaged(LookupError):
    """A file of a run that is absent, truncated, altered or foreign.

    Args:
        path: The file; None where the message says all.
        what: What is wrong with it.
        remedy: What to do about it.
    """

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path} {what}. {remedy}")
        self.path, self.what = path, what


class Newer(Damaged):
    """A file in a format of a later version: refused, and never repaired, as nothing shows that it is damaged."""

    remedy = "Read it with the version of fedscape that wrote it; keep the file as it is."


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], *, compress: bool = False
) -> None:
    """Write named tensors and a JSON-able description as one safetensors file with a digest in its header.

    The digest is that of the tensors given, whether they are packed (`drift.store.compression`) or not.
    """
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(about, sort_keys=True)
    header = {"format": FORMAT, "about": text, "digest": digest(held, text)}
    if compress:
        held, table = packed(held)
        if table:
            header |= {"format": PACKED, "packed": json.dumps(table, sort_keys=True)}
    write_bytes(path, *pieces(held, header))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a file written by `write_tensors`.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    with _opened(path) as file:
        header = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    require_known(path, header.get("format"))
    if header.get("format") not in (FORMAT, PACKED):
        raise Damaged(path, f"was not written by fedscape (format {header.get('format')!r})", ANEW)
    if header["format"] == PACKED:
        try:
            tensors = unpacked(tensors, json_table(header.get("packed", "")))
        except ValueError as reason:
            raise Damaged(path, f"was altered: it cannot be unpacked ({reason})", ANEW) from reason
    if header.get("digest") != digest(tensors, header.get("about", "")):
        raise Damaged(path, "was altered: its content does not match its digest", ANEW)
    try:
        return tensors, json_table(header.get("about", ""))
    except ValueError as reason:
        raise Damaged(path, f"was altered: its description is {reason}", ANEW) from reason


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file of tensors, whose header is read and whose length is checked.

    Raises:
        Damaged: If it is absent or truncated.
    """
    if not path.is_file():
        raise Damaged(path, "is missing", ANEW)
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError) as reason:
        raise Damaged(path, f"cannot be read ({reason}); it is truncated or no file of a run", ANEW) from reason


ANEW = (
    "To have it again, delete it together with the run's state.safetensors and train again with the same settings: "
    "the same bits are computed anew from round 0."
)
"""How a lost round or state comes back; going on needs the server's state, and only that of the last round is kept."""


def digest(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of tensors, and a text."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with a digest of its content."""
    body = {**content, "format": FORMAT}
    body["digest"] = _json_digest(body)
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any]:
    """Content of a file written by `write_json`.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    require_inside(path, path.parent)
    try:
        body = from_json(path.read_bytes())
    except FileNotFoundError as reason:
        raise Damaged(path, "is missing", f"Is {path.parent} the folder of a run?") from reason
    except (ValueError, OSError) as reason:
        raise Damaged(path, f"cannot be read ({reason}); it is truncated or no file of a run", _DESCRIBE) from reason
    if isinstance(body, dict):
        require_known(path, body.get("format"), above=1)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise Damaged(path, "was not written by fedscape", _DESCRIBE)
    if body.pop("digest", None) != _json_digest(body):
        raise Damaged(path, "was altered: its content does not match its digest", _DESCRIBE)
    return body


def require_known(path: Path, stated: Any, above: int = NEWEST) -> None:
    """Refuse a format of a later version.

    Raises:
        Newer: If it is one.
    """
    match = re.fullmatch(r"fedscape-(\d{1,9})", str(stated))
    if match and int(match[1]) > above:
        raise Newer(path, f"was written by a newer version of fedscape (format {stated!r})", Newer.remedy)


_DESCRIBE = "Restore it from a copy, or delete it and train again with the same settings: it is written anew."


def _json_digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def require_inside(path: Path, folder: Path) -> None:
    """Refuse a file of a run that is a link out of its folder: a run from elsewhere reads nothing but itself.

    Raises:
        Damaged: If it is one.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Damaged(path, f"leads out of {folder}, which is not followed", "Put the file itself in its place.")


def round_path(folder: Path, index: int) -> Path:
    """File of round `index`."""
    return folder / "rounds" / f"{index:06d}.safetensors"


def link(record: Round) -> str:
    """What the round after this one, or the state, names it by (`drift.store.links.link`)."""
    return links.link(record.index, {name: getattr(record, name).numpy() for name in links.LINKED})


def write_round(
    folder: Path, record: Round, keep: Keep, rounds: int, origin: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write a round as far as the policy keeps it.

    Args:
        folder: Of the run.
        record: The round.
        keep: The policy.
        rounds: Rounds of the run, from which "last 3" counts.
        origin: Its run and the link of the round before it, as `drift.store.links.origin` returns them.
    """
    tensors = {"ids": record.ids, "sizes": record.sizes, "weights": record.weights, "gram": record.gram}
    tensors |= {f"metric.{name}": torch.tensor(value, dtype=torch.float64) for name, value in record.metrics.items()}
    about: dict[str, Any] = {"round": record.index, **origin}
    whole = keep.keeps_globals(record.index, rounds)
    size = len(record.kept("end"))
    tensors |= {f"extras.{name}": value for name, value in record.extras.items() if whole or value.numel() < size}
    if whole:
        tensors |= {"start": record.kept("start"), "end": record.kept("end")}
        tensors |= {"start_buffers": record.start_buffers, "end_buffers": record.end_buffers}
    if keep.keeps_clients(record.index, rounds):
        tensors |= {f"sent.{name}": value for name, value in record.sent.items()}
        tensors |= {f"carried.{name}": value for name, value in record.carried.items()}
        tensors["client_buffers"] = record.client_buffers
        if keep.dtype == "bfloat16 deltas":
            tensors["client_deltas"] = record.deltas.to(torch.bfloat16)
        else:
            tensors["clients"] = record.kept("clients")
    write_tensors(round_path(folder, record.index), tensors, about, compress=keep.compress)


def read_round(folder: Path, index: int) -> Round:
    """The record of round `index`.

    Raises:
        Damaged: If its file is absent, truncated, altered or foreign.
    """
    path = round_path(folder, index)
    require_inside(path, folder)
    tensors, about = read_tensors(path)
    require_number(path, about, index)
    if "client_deltas" in tensors:
        tensors["clients"] = tensors["start"] + tensors.pop("client_deltas").to(tensors["start"])
    grouped: dict[str, dict[str, Any]] = {"metric": {}, "extras": {}, "sent": {}, "carried": {}, "": {}}
    for name, tensor in tensors.items():
        group, _, rest = name.partition(".")
        received = group in ("sent", "carried")  # what a client trains with again
        grouped[group if rest else ""][rest or name] = aligned(tensor) if received else tensor
    metrics = {name: float(value) for name, value in grouped["metric"].items()}
    parts: dict[str, Any] = {name: grouped[name] for name in ("extras", "sent", "carried")} | grouped[""]
    try:
        return Round(index=index, metrics=metrics, **parts)
    except TypeError as reason:
        raise Damaged(path, f"holds no round ({reason})", ANEW) from reason


def require_number(path: Path, about: Mapping[str, Any], index: int) -> None:
    """Refuse the file of another round.

    Raises:
        Damaged: If its header states another number.
    """
    if about.get("round") != index:
        raise Damaged(path, f"holds round {about.get('round')}, not {index}; it was renamed or copied", ANEW)


def write_state(
    folder: Path, tensors: Mapping[str, Tensor], following: int, origin: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write what going on needs, the commit point: tensors of the server, the next round, and the origin."""
    write_tensors(folder / STATE, tensors, {"next": following, **origin})


def read_next(folder: Path) -> int:
    """The next round by the state's header: the commit point, read without the server's tensors.

    Raises:
        Damaged: If the file is absent, truncated or foreign; `read_state` notices altered tensors too.
    """
    path = folder / STATE
    require_inside(path, folder)
    with _opened(path) as file:
        header, names = file.metadata() or {}, set(file.keys())
    require_known(path, header.get("format"))
    try:
        following = json_table(header.get("about", "")).get("next")
    except ValueError as reason:
        raise Damaged(path, f"was altered: its description is {reason}", ANEW) from reason
    if header.get("format") not in (FORMAT, PACKED) or not isinstance(following, int) or "theta" not in names:
        raise Damaged(path, "holds no state of a run; it was renamed or copied", ANEW)
    return following


def read_state(folder: Path) -> tuple[dict[str, Tensor], int]:
    """Tensors of the server, and the next round.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    path = folder / STATE
    require_inside(path, folder)
    tensors, about = read_tensors(path)
    if not isinstance(about.get("next"), int) or "theta" not in tensors:
        raise Damaged(path, "holds no state of a run; it was renamed or copied", ANEW)
    return {name: aligned(tensor) for name, tensor in tensors.items()}, about["next"]


ALIGNMENT = 64
"""Bytes; torch's own allocations begin at multiples of it, tensors in a mapped file anywhere."""


def aligned(tensor: Tensor) -> Tensor:
    """The tensor in memory that begins as torch's own does: products and sums of it then have the bits of training."""
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()


def require_rounds(folder: Path, done: int) -> None:
    """Refuse a run that lacks a round before its commit point, as going on would never write it.

    Raises:
        Damaged: With the first round that is missing.
    """
    for index in range(done):
        if not (path := round_path(folder, index)).is_file():
            raise Damaged(path, "is missing", ANEW)
