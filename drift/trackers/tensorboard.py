"""TensorBoard event files: `tensorboard --logdir FOLDER`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGE = "tensorboard"


class Files:
    """Scalars by round, and the settings as a text."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._open, self._folder = SummaryWriter, folder

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        self._writer = self._open(str(self._folder / name))
        self._writer.add_text("settings", "\n".join(f"    {key} = {value}" for key, value in settings.items()))

    def log(self, index: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, index)

    def end(self) -> None:
        self._writer.close()
