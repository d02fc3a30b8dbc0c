"""Patterns of the files that known programs write."""

from __future__ import annotations

from collections.abc import Mapping

from drift.importers.patterns import Patterns

SHIPPED: Mapping[str, Patterns] = {
    "fedscape": Patterns("round*{round}/client_{client}.*", "round*{round}/global.*", "round*{round}/start.*"),
    # PFLlib (github TsingZ0/PFLlib, serverbase.py and clientbase.py: save_item) writes server_NAME.pt and
    # client_ID_NAME.pt into its save folder, overwriting them in each round, and whole modules, which are not
    # unpickled here. Assumed: save_item(model.state_dict(), f"model_{round}") is called in every round.
    "pfllib": Patterns("client_{client}_model_{round}.pt", "server_model_{round}.pt"),
    # FL-bench (github KarhouTam/FL-bench, src/server/fedavg.py: run) writes DATASET_ROUNDS_MODEL.pt once, at the end
    # of training, parameters without buffers. Assumed: the same line is called with current_epoch as the number.
    "fl-bench": Patterns(None, "*_{round}_*.pt"),
    # FedLab (github SMILELab-FL/FedLab) names no files; handlers and trainers exchange `model_parameters`, one vector
    # by SerializationTool.serialize_model. Assumed: it is saved by torch.save in every round.
    "fedlab": Patterns("round_{round}/client_{client}.pt", "round_{round}/server.pt"),
}
"""Patterns by name of the program."""


def named(text: str) -> Patterns:
    """Shipped patterns by the name of a program, else a pattern of client or of global models."""
    if text in SHIPPED:
        return SHIPPED[text]
    if "{" not in text:
        raise ValueError(
            f"no pattern named {text!r}; known: {', '.join(SHIPPED)}. Or write one, as "
            "round{round}/client{client}.pt."
        )
    return Patterns(text) if "{client}" in text else Patterns(None, text)
