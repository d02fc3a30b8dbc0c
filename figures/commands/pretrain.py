"""fedscape pretrain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.options import Data, ExperimentName, Json, Settings, arguments, require_file, require_names


def pretrain(
    experiment: ExperimentName,
    /,
    *,
    dataset: Annotated[str | None, Parameter(help="What to train on; the experiment's own where not given.")] = None,
    dataset_options: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, negative="", help="Options of that dataset: KEY=VALUE ..., as in size=32."),
    ] = None,
    classes: Annotated[
        list[int] | None, Parameter(consume_multiple=True, negative="", help="Classes to train on; all if not given.")
    ] = None,
    epochs: Annotated[int, Parameter(help="Epochs over all samples.")] = 5,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Checkpoint; pretrained/DATASET-MODEL-sSEED.safetensors.")
    ] = None,
    set: Settings = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a pre-trained start for an experiment: train its model in one place on other data.

    The experiment then starts from it by --set init=CHECKPOINT (with init.head=new where the classes differ). Data that
    its clients train on are refused: name another dataset, or other classes than its task.classes.

    Args:
        experiment: Name of a preset (fedscape list experiments) or path of a TOML file.
    """
    require_names(experiment, set, None if dataset is None else [f"task.dataset={dataset}"])
    from drift.pretrain import pretrain as trained
    from drift.read import read

    wanted = read(experiment, *(set or ()), init=None)
    source = dataset or wanted.task.dataset
    path = out or Path("pretrained") / f"{source}-{wanted.task.model.replace(':', '-')}-s{wanted.seed}.safetensors"
    require_file(path)
    with console.progress(f"training {wanted.task.model} on {source}", epochs) as step:

        def report(done: int, loss: float, accuracy: float) -> None:
            step(done, "")
            console.say(f"epoch {done} of {epochs}  loss {loss:.4g} nats  accuracy {accuracy:.4g}")

        about = trained(
            wanted,
            path,
            dataset=dataset,
            dataset_options=arguments(dataset_options),
            classes=classes,
            epochs=epochs,
            data=data,
            progress=report,
        )
    if json:
        console.put_json({"checkpoint": str(path), **about})
        return
    console.put(str(path))
    console.say(
        f"accuracy {about['accuracy']:.4f} on {about['test_samples']} test samples of {source}\n"
        f"start from it:  fedscape train {experiment} --set init={path}"
    )
