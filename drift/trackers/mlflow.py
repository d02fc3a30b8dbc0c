"""MLflow runs in a local file: `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGE = "mlflow"


class Files:
    """Metrics by round, and the settings as parameters."""

    def __init__(self, folder: Path) -> None:
        from mlflow import MlflowClient

        folder.mkdir(parents=True, exist_ok=True)
        self._client = MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}")

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        existing = self._client.get_experiment_by_name("fedscape")
        experiment = existing.experiment_id if existing else self._client.create_experiment("fedscape")
        self._run = self._client.create_run(experiment, run_name=name).info.run_id
        for key, value in settings.items():
            self._client.log_param(self._run, _name(key), str(value)[:6000])

    def log(self, index: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._client.log_metric(self._run, _name(name), value, step=index)

    def end(self) -> None:
        self._client.set_terminated(self._run)


def _name(text: str) -> str:
    return re.sub(r"[^\w\-. /]", "_", text).strip("/. ")[:250] or "_"
