"""ResNet, ViT and others by name from a folder or the Hugging Face hub, with LoRA (LSS; papers.md 5.3)."""

import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.products import with_residuals
from landscape.models._blocks import Classifier, check_image, flat_size

LEAST = 8
"""Smallest side of an image."""

ATTENTION = ({"q_proj", "v_proj"}, {"query", "value"})
"""How transformers calls the layers that LoRA adapts by default, queries and values (Hu et al. 2021, section 4.2)."""


def build(
    shape: tuple[int, ...],
    classes: int,
    *,
    source: str,
    revision: str | None = None,
    pretrained: bool = True,
    size: int | None = None,
    lora: int = 0,
    lora_alpha: float | None = None,
    lora_targets: Sequence[str] | None = None,
    residual: bool = False,
) -> nn.Module:
    """A pre-trained image model of `transformers` with a fresh FC classes as its head.

    ResNet-18 and -50 (`microsoft/resnet-18`, `microsoft/resnet-50`) have 11,181,642 and 23,528,522 parameters for 10
    classes, ViT-B/16 (`google/vit-base-patch16-224`) has 85,806,346. Features are the pooled output where there is one,
    else that of the class token. Attention is plain matrix products (eager), which have second derivatives. Grey images
    are repeated over the channels, as in the LSS code; the scaling of pixels is the dataset's (`task.scale`). Position
    embeddings are interpolated where the image has another size than in training.

    With `lora` > 0 the model's own values are frozen, and low-rank adapters of that rank (Hu et al. 2021) and the head
    are what is trained: they are theta. The frozen values are read from `source` by each experiment; give a
    revision, or a permanent folder, if the same bits matter. Attention takes its softmax in float32 also where
    the model is float64.

    Args:
        shape, classes: Of one image, and number of outputs.
        source: A local folder (config.json and its weights) or a name on the hub.
        revision: Of a model on the hub: a branch, tag or commit.
        pretrained: Read the weights; else only the architecture, with random values.
        size: Images are resized to this side first, as 224 for a ViT; bilinear.
        lora: Rank of the adapters; 0 trains everything.
        lora_alpha: The adapters' output is multiplied by lora_alpha / lora; by default 2 lora.
        lora_targets: Ends of the names of adapted layers; by default queries and values, or every convolution
            in a network without attention.
        residual: Adapted layers have a buffer that is added to their frozen weight.

    Raises:
        ValueError: If the image or an option does not suit the model.
        LookupError: If the extra `hf` is not installed, or there is no such model.
    """
    check_image("hf", shape, LEAST)
    if size is not None and size < LEAST:
        raise ValueError(f"size is {size}; hf takes a side of {LEAST} pixels or more.")
    if lora < 0:
        raise ValueError(f"lora is {lora}; hf takes a rank of 1 or more, or 0 for none.")
    if residual and not lora:
        raise ValueError("residual is true and lora 0; residuals are those of adapted layers, give lora=4.")
    backbone, config = _backbone(source, revision, pretrained)
    channels = getattr(config, "num_channels", 3)
    if shape[0] not in (1, channels):
        raise ValueError(f"inputs have shape {shape}; {source} takes images of {channels} channels, or grey ones.")
    if lora > 0:
        _adapt(backbone, lora, 2.0 * lora if lora_alpha is None else lora_alpha, lora_targets, source)
    if residual:
        with_residuals(backbone)
    body = nn.Sequential(Features(backbone, config, channels, size))
    return Classifier(body, nn.Linear(flat_size(body.eval(), shape), classes)).train()


class Features(nn.Module):
    """Features (n, f) of images (n, C, h, w): what the model puts out for its head."""

    def __init__(self, model: nn.Module, config: Any, channels: int, size: int | None) -> None:
        super().__init__()
        self.model = model
        self.channels, self.size = channels, size
        trained = getattr(config, "image_size", None)
        self.trained = (trained, trained) if isinstance(trained, int) else trained and tuple(trained)
        self.interpolates = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.shape[1] != self.channels:
            inputs = inputs.expand(-1, self.channels, -1, -1)
        if self.size is not None:
            inputs = F.interpolate(inputs, size=(self.size, self.size), mode="bilinear", align_corners=False)
        resized = self.trained is not None and tuple(inputs.shape[-2:]) != self.trained
        options = {"interpolate_pos_encoding": True} if self.interpolates and resized else {}
        output = self.model(inputs, **options)
        pooled = getattr(output, "pooler_output", None)
        return pooled.flatten(1) if pooled is not None else output.last_hidden_state[:, 0]


def _backbone(source: str, revision: str | None, pretrained: bool) -> tuple[nn.Module, Any]:
    """The model without its head, and its configuration."""
    transformers = _extra("transformers")
    folder = Path(source).expanduser()
    origin = str(folder) if folder.is_dir() else source
    options = {"revision": revision or "main", "trust_remote_code": False}
    classifier = transformers.AutoModelForImageClassification
    with _quiet(transformers):
        try:
            if folder.is_dir() and not (folder / "config.json").is_file():
                raise FileNotFoundError(f"{folder} has no config.json")
            config = transformers.AutoConfig.from_pretrained(origin, **options)
            if pretrained:
                model = classifier.from_pretrained(origin, config=config, attn_implementation="eager", **options)
            else:
                model = classifier.from_config(config, attn_implementation="eager")
        except OSError as reason:
            message = " ".join(str(reason).split())
            raise LookupError(
                f"no model {source!r}: it is not a folder with config.json and model.safetensors, and the hub did not "
                f"give it ({message[:200]}). Download it once and give its folder as task.model_options.source."
            ) from reason
    if model.base_model is model:
        raise ValueError(f"{source} has no part without its head; hf takes models such as ResNet, ConvNeXt, ViT, Swin.")
    return model.base_model.float(), config


def _adapt(model: nn.Module, rank: int, alpha: float, targets: Sequence[str] | None, source: str) -> None:
    """Add adapters to the targets, in place, and freeze everything else."""
    peft = _extra("peft")
    ends = {path.rpartition(".")[2] for path, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    usual = next((names for names in ATTENTION if names <= ends), {"convolution"})
    try:
        config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=sorted(targets or usual))
        peft.inject_adapter_in_model(config, model)
    except ValueError as reason:
        raise ValueError(
            f"lora_targets is {sorted(targets or usual)}; {source} has no such layers, give ends of names of its "
            f"linear or convolutional layers, such as {', '.join(sorted(ends)[:6])}."
        ) from reason


def _extra(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as reason:
        raise LookupError(
            f"model 'hf' needs the package {reason.name!r}, which is not installed; "
            'install it with pip install "fedscape[hf]".'
        ) from reason


@contextmanager
def _quiet(transformers: ModuleType) -> Iterator[None]:
    """Without progress bars and notes: a head that is replaced is no news."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
