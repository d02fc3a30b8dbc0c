"""Files of a run: written whole or not at all, checked by a digest when read, never unpickled."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from drift.store import compression, digests, large_tensors, links, memory_budget, numpy_files
from drift.store.digests import FORMAT as FORMAT
from drift.store.digests import Content
from drift.store.keep import Keep
from drift.store.numpy_files import Damaged as Damaged
from drift.store.numpy_files import Newer as Newer
from drift.store.numpy_files import description, require_known
from drift.store.numpy_files import read_json as read_json
from drift.store.numpy_files import require_inside as require_inside
from drift.store.numpy_files import write_json as write_json
from drift.store.paths import STATE as STATE
from drift.store.paths import round_path as round_path
from drift.store.paths import stamp as file_stamp
from drift.store.round_record import Round
from drift.store.row_matrices import release
from landscape.model.mapped_files import incomplete_file, is_mapped
from landscape.results.parsed_text import json_table


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], *, compress: bool = False
) -> str:
    """Write named tensors and a JSON-able description as one safetensors file; returns the digest in its header.

    The digest is that of the tensors, whether they are compressed (`drift.store.compression`) or not.

    Raises:
        ValueError: If the format has no name for the type of a tensor.
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    stored, text = _contents(tensors), json.dumps(about, sort_keys=True)
    head = digests.metadata(stored, text)
    if compress:
        smaller, table = compression.compress({name: tensor.detach().cpu() for name, tensor in tensors.items()})
        if table:
            head["packed"] = json.dumps(table, sort_keys=True)
            stored = _contents(smaller)
    numpy_files.write_contents(path, stored, head)
    return head["digest"]


def read_tensors(path: Path, digest: str | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a file written by `write_tensors`.

    Args:
        digest: That which the file must state, where it is known.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    stamp = file_stamp(path)
    large = stamp is not None and not memory_budget.fits(torch.uint8, (stamp.size,))
    with numpy_files.reading(path, ANEW) as file:
        header, tensors = large_tensors.read(path, file)
    require_known(path, header.get("format"), ANEW)
    if digest not in (None, header.get("digest")):
        raise Damaged(path, "has other content than the state that names it; it was copied", ANEW)
    if "packed" in header:
        try:
            tensors = compression.decompress(tensors, json_table(header["packed"]))
        except ValueError as reason:
            raise Damaged(path, f"was altered: it cannot be decompressed ({reason})", ANEW) from reason
    if not large_tensors.is_verified(stamp):
        stated = digests.metadata(_contents(tensors), header.get("about", ""))
        if any(header.get(name) != value for name, value in stated.items()):
            raise Damaged(path, "was altered: its content does not match its digest", ANEW)
    if large:
        large_tensors.remember(stamp)
    return tensors, description(path, header, ANEW)


ANEW = (
    "To have it again, delete it together with the run's state.safetensors and train again with the same settings: "
    "the same bits are computed anew from round 0."
)
"""How to recover a lost round or state: resuming needs the server's state, and only the last one is stored."""


def digest(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of tensors, and a text."""
    return digests.digest_contents(_contents(tensors), text)


def _contents(tensors: Mapping[str, Tensor]) -> dict[str, Content]:
    stored = {}
    for name, tensor in tensors.items():
        data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        mapped = tensor.is_contiguous() and is_mapped(tensor)
        in_file = (partial(release, tensor), incomplete_file(tensor)) if mapped else ()
        stored[name] = Content(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data, *in_file)
    return stored


def link(record: Round) -> str:
    """The link of a round, by which the next round or the state names it (`drift.store.links.link`)."""
    return links.link(record.index, {name: value.numpy() for name, value in _numbers(record).items()})


def _numbers(record: Round) -> dict[str, Tensor]:
    """Tensors that are stored of every round."""
    tensors = {"ids": record.ids, "sizes": record.sizes, "weights": record.weights, "gram": record.gram}
    return tensors | {
        f"metric.{name}": torch.tensor(value, dtype=torch.float64) for name, value in record.metrics.items()
    }


def write_round(
    folder: Path, record: Round, keep: Keep, rounds: int, origin: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write a round: its numbers always, its models where the policy keeps them.

    Args:
        folder: Folder of the run.
        record: The round.
        keep: Which rounds keep which models.
        rounds: Number of rounds of the run, from which "last 3" counts.
        origin: Its run and the link of the previous round, as `drift.store.links.origin` returns them.
    """
    tensors, about = round_content(record, keep, rounds)
    write_tensors(round_path(folder, record.index), tensors, about | dict(origin), compress=keep.compress)


def round_content(record: Round, keep: Keep, rounds: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a round as they are stored, without the origin."""
    tensors = _numbers(record)
    all_models = keep.keeps_globals(record.index, rounds)
    size = len(record.kept("end"))
    tensors |= {f"extras.{name}": value for name, value in record.extras.items() if all_models or value.numel() < size}
    if all_models:
        tensors |= {"start": record.kept("start"), "end": record.kept("end")}
        tensors |= {"start_buffers": record.start_buffers, "end_buffers": record.end_buffers}
    if keep.keeps_clients(record.index, rounds):
        tensors |= {f"sent.{name}": value for name, value in record.sent.items()}
        tensors |= {f"carried.{name}": value for name, value in record.carried.items()}
        tensors["client_buffers"] = record.client_buffers
        if keep.dtype == "bfloat16 deltas":
            tensors["client_deltas"] = large_tensors.rounded_updates(record.kept("clients"), record.kept("start"))
        else:
            tensors["clients"] = record.kept("clients")
    return tensors, {"round": record.index}


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
        tensors["clients"] = large_tensors.models_of_updates(tensors["start"], tensors.pop("client_deltas"))
    grouped: dict[str, dict[str, Any]] = {"metric": {}, "extras": {}, "sent": {}, "carried": {}, "": {}}
    for name, tensor in tensors.items():
        group, _, rest = name.partition(".")
        grouped[group if rest else ""][rest or name] = tensor
    metrics = {name: float(value) for name, value in grouped["metric"].items()}
    fields: dict[str, Any] = {name: grouped[name] for name in ("extras", "sent", "carried")} | grouped[""]
    try:
        return Round(index=index, metrics=metrics, **fields)
    except (TypeError, ValueError) as reason:
        raise Damaged(path, f"holds no round ({reason})", ANEW) from reason


def require_number(path: Path, about: Mapping[str, Any], index: int) -> None:
    """Raise Damaged for a file whose header states another round."""
    if about.get("round") != index:
        raise Damaged(path, f"holds round {about.get('round')}, not {index}; it was renamed or copied", ANEW)


def write_state(
    folder: Path, tensors: Mapping[str, Tensor], following: int, origin: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write the commit point: its tensors, number of the next round, and the origin."""
    write_tensors(folder / STATE, tensors, {"next": following, **origin})


def read_state(folder: Path) -> tuple[dict[str, Tensor], int]:
    """Tensors of the server, and number of the next round.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    path = folder / STATE
    require_inside(path, folder)
    tensors, about = read_tensors(path)
    if not isinstance(about.get("next"), int) or "theta" not in tensors:
        raise Damaged(path, "holds no state of a run; it was renamed or copied", ANEW)
    return tensors, about["next"]
