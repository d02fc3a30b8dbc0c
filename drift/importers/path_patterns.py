"""Patterns of the paths of checkpoints, and those of other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from landscape.plugins import unknown


@dataclass(frozen=True)
class Patterns:
    """Paths below a folder, with `{round}` and `{client}` for numbers and names, and `*` for any part of a name.

    A path is that of a file or of a folder that `save_pretrained` wrote; keys at its end, as in
    `round{round}/client{client}.pt[ema]`, choose one of several state dicts.

    Args:
        clients: Client models; None: there are none.
        globals: Global models after the rounds; None: `global.pt` or `server.pt` in the folder of the clients.
        starts: Models that the clients of a round received; None: the global model of the previous round.

    Raises:
        ValueError: If a pattern leads out of the folder, lacks `{round}`, or has another field.
    """

    clients: str | None = None
    globals: str | None = None
    starts: str | None = None

    def __post_init__(self) -> None:
        if self.clients is None and self.globals is None:
            raise ValueError(
                "give a pattern of client models or of global models, as in round{round}/client{client}.pt."
            )
        for text, client in ((self.clients, True), (self.globals, False), (self.starts, False)):
            if text is not None:
                _require(text, client)

    def global_patterns(self) -> tuple[str, ...]:
        """Patterns of global models, in the order in which they are tried."""
        if self.globals is not None:
            return (self.globals,)
        path = PurePosixPath(self.clients or "")
        if "{round}" not in str(path.parent):
            return ()
        end = "".join(path.suffixes[-2:]) if path.suffix == ".tar" else path.suffix
        return tuple(str(path.parent / f"{name}{end}") for name in ("global", "server", "global_model"))

    def __str__(self) -> str:
        return ", ".join(text for text in (self.clients, *self.global_patterns(), self.starts) if text)


def expression(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern; a repeated field matches the same text."""
    seen: set[str] = set()
    parts = []
    for piece in re.split(r"(\{round\}|\{client\}|\*)", pattern):
        name = piece.strip("{}")
        if piece == "*":
            parts.append("[^/]*?")
        elif piece in ("{round}", "{client}"):
            body = r"\d{1,6}" if name == "round" else "[^/]+?"
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{body})")
            seen.add(name)
        else:
            parts.append(re.escape(piece))
    return re.compile("".join(parts))


def _require(text: str, client: bool) -> None:
    parts = PurePosixPath(text).parts
    if text.startswith("/") or ".." in parts or "\\" in text:
        raise ValueError(f"pattern {text!r} leads out of the folder; write it below the folder that is imported.")
    fields = set(re.findall(r"\{(.*?)\}", text))
    accepted = {"round", "client"} if client else {"round"}
    if fields != accepted:
        wanted = " and ".join(f"{{{name}}}" for name in sorted(accepted, reverse=True))
        raise ValueError(
            f"pattern {text!r} has {', '.join(sorted(fields)) or 'no field'}; it takes {wanted}. Models without rounds "
            "need no import: docs/howto-checkpoints.md."
        )


SHIPPED: Mapping[str, Patterns] = {
    "fedscape": Patterns("round*{round}/client_{client}.*", "round*{round}/global.*", "round*{round}/start.*"),
    "flower": Patterns(None, "round-{round}-weights.npz"),
    "pfllib": Patterns("client_{client}_model_{round}.pt", "server_model_{round}.pt"),
    "fl-bench": Patterns(None, "*_{round}_*.pt"),
    "fedlab": Patterns("round_{round}/client_{client}.pt", "round_{round}/server.pt"),
}
"""Patterns by name of the program."""


ASSUMED: Mapping[str, str] = {
    "flower": (
        "np.savez(f'round-{server_round}-weights.npz', *arrays) in every round, as Flower's guide on checkpoints has "
        "it; arrays have no names there, so --task or --model is needed"
    ),
    "pfllib": (
        "PFLlib saves a whole module once, over the one before. Call in every round, in server and clients, "
        "save_item(model.state_dict(), f'model_{round}'), which writes server_model_3.pt and client_0_model_3.pt"
    ),
    "fl-bench": (
        "FL-bench saves DATASET_ROUNDS_MODEL.pt once, at the end (common.save_model). Call in every round, at the end "
        "of train_one_round, torch.save(self.public_model_params, self.output_dir / "
        "f'{dataset}_{self.current_epoch}_{model}.pt'); clients are not saved"
    ),
    "fedlab": (
        "FedLab writes no models and names no files. Call in every round, with a folder of your own, "
        "torch.save(handler.model_parameters, f'round_{handler.round}/server.pt') and for each client "
        "torch.save(parameters, f'round_{handler.round}/client_{id}.pt'): vectors of the whole state dict, so "
        "--task or --model is needed"
    ),
}
"""Code that a program needs to write the files of its patterns, where it does not write them by default.

Sources: github adap/flower, how-to-save-and-load-model-checkpoints.rst; TsingZ0/PFLlib, system/flcore, save_item in
serverbase.py and clientbase.py; KarhouTam/FL-bench, src/server/fedavg.py, run; SMILELab-FL/FedLab,
fedlab/utils/serialization.py and fedlab/contrib/algorithm/basic_server.py.
"""


def parse_patterns(text: str) -> Patterns:
    """Shipped patterns of a program by its name, else the pattern of client or global models.

    Raises:
        ValueError: If the text is neither; the message lists the programs.
    """
    if text in SHIPPED:
        return SHIPPED[text]
    if "{" not in text:
        raise ValueError(f"{unknown('pattern', text, SHIPPED)} Or write one, as round{{round}}/client{{client}}.pt.")
    return Patterns(text) if "{client}" in text else Patterns(None, text)
