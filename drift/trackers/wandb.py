"""Weights & Biases runs in a local folder, offline; `wandb sync` sends them if you wish."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGE = "wandb"


class Files:
    """History by round, and the settings as config."""

    def __init__(self, folder: Path) -> None:
        import wandb

        self._wandb, self._settings, self._folder = wandb, wandb.Settings(silent=True, console="off"), folder

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._only_run = self._wandb.run is None
        self._run = self._wandb.init(
            project="fedscape",
            name=name,
            dir=str(self._folder),
            mode="offline",
            config=dict(settings),
            settings=self._settings,
        )

    def log(self, index: int, numbers: Mapping[str, float]) -> None:
        self._run.log({**numbers, "round": index}, step=index)

    def end(self) -> None:
        self._run.finish()
        if self._only_run:  # finish() returns while wandb's own process still writes; it would end runs of the caller
            self._wandb.teardown()
