"""fedscape pretrain."""

from pathlib import Path
from typing import Annotated

from figures.commands.options import OUT, Data, ExperimentName, Integer, Json, Positive, Settings, arguments, several
from figures.commands.requirements import require_file, require_names
from figures.texts import console
from landscape.plugins import outside


def pretrain(
    experiment: ExperimentName,
    /,
    *,
    dataset: str | None = None,
    dataset_options: Annotated[list[str] | None, several("--dataset-options", "OPTION=VALUE")] = None,
    classes: Annotated[list[Integer] | None, several("--classes", "INT")] = None,
    epochs: Positive = 5,
    out: Annotated[Path | None, OUT] = None,
    set: Settings = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Pre-train the initial model of an experiment, without clients, on other data.

    To start the experiment from this model, train it with --set init=FILE, and init.head=new if the classes differ.
    fedscape refuses the data of the experiment's clients: name another dataset, or classes that are not in its
    task.classes.

    Example: `fedscape pretrain ima-fmnist-shards2 --dataset mnist --epochs 5`

    Args:
        dataset: Dataset to train on (fedscape list datasets). By default the experiment's own.
        epochs: Number of passes over all samples.
        out: File for the trained model, .safetensors. By default pretrained/DATASET-MODEL-sSEED.safetensors.
        dataset_options: Options of that dataset, one or more, such as size=32. By default its own values.
        classes: Classes to train on, as whole numbers from 0. By default all of the dataset.
    """
    require_names(experiment, set, None if dataset is None else [f"task.dataset={dataset}"])
    from drift.config.load import read
    from drift.simulation.pretrain import pretrain as trained

    spec = read(experiment, *(set or ()), init=None)
    source = dataset or spec.task.dataset
    path = out or Path("pretrained") / f"{outside.file_text(source, spec.task.model, f's{spec.seed}')}.safetensors"
    require_file(path)
    with console.progress(f"training {spec.task.model} on {source}", epochs) as step:

        def report(done: int, loss: float, accuracy: float) -> None:
            step(done, "")
            console.say(f"epoch {done} of {epochs}  loss {loss:.4g} nats  accuracy {accuracy:.4g}")

        about = trained(
            spec,
            path,
            dataset=dataset,
            dataset_options=arguments(dataset_options, example="size=32"),
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
