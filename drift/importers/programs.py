"""Patterns of the checkpoint files of other programs."""

from __future__ import annotations

from collections.abc import Mapping

from drift.importers.patterns import Patterns
from landscape.plugins import unknown

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
