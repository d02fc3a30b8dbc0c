"""A user's loss as numerators and weights of samples: the first form that all batches of a trial agree with."""

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.binary_losses import binary_cross_entropy
from landscape.model.loss_adapters import BatchNumber, LossOutput, SampleMeans, Weighted
from landscape.model.loss_failures import require_no_failure
from landscape.model.loss_trial import Loss, Trial
from landscape.model.loss_weights import Counted, candidate_weights, require_unweighted
from landscape.model.losses import (
    PerSample,
    PerSampleLoss,
    SampleLoss,
    Weigh,
    WholeBatch,
    cross_entropy,
    is_coupled,
    loss_name,
    squared_error,
)

KNOWN: tuple[Any, ...] = (cross_entropy, squared_error, binary_cross_entropy)
"""Losses that are not tried."""

_MODULES: dict[Any, type[nn.Module]] = {F.cross_entropy: nn.CrossEntropyLoss, F.nll_loss: nn.NLLLoss}
"""Losses of torch whose weights are known, and their modules."""


@torch.no_grad()
def found_loss(loss: Loss, trial: Trial, *, weight: Weigh | Tensor | None = None, coupled: bool = False) -> PerSample:
    """The loss as numerators and weights of samples; as it is if it returns one value per sample.

    Args:
        weight: Weights (n,) of samples by their targets, or of classes, shape (C,).
        coupled: Take the loss of all samples as one batch.

    Raises:
        ValueError: If the loss is random, broadcasts, or is not a mean over samples; says what to do.
    """
    if weight is None and not coupled and (isinstance(loss, SampleLoss) or loss in KNOWN):
        return loss
    loss = as_module(loss)
    with torch.random.fork_rng(devices=[trial.outputs.device] if trial.outputs.is_cuda else []):
        value = trial.called(loss)
        if coupled:
            name = f"{loss_name(loss)}, all samples as one batch"
            return SampleLoss(WholeBatch(loss), kind="coupled", name=name, original=loss)
        weigh = Counted(None, weight) if isinstance(weight, Tensor) else weight
        if weigh is not None:
            _check_weights(weigh, trial.targets)
        sample_form = _pair(loss, trial) if isinstance(value, tuple | list) else _by_shape(loss, value, trial, weigh)
    if isinstance(sample_form, SampleLoss):
        return replace(sample_form, original=loss)
    if sample_form is not None:
        return sample_form
    if not isinstance(value, tuple | list) and bool(value.isnan().any()):
        why = "some of the outputs are" if trial.outputs.isnan().any() else "no target counts, or its terms are"
        raise ValueError(f"the loss {loss_name(loss)} is NaN on {trial.shapes}: {why}.")
    require_no_failure(loss, map(trial.rows, trial.large_batches()))
    raise ValueError(
        f"the loss {loss_name(loss)} is not a mean over samples with {'the usual' if weigh is None else 'the given'} "
        f"weights: its value for a batch does not follow from its samples ({trial.shapes}). If samples count by their "
        "targets, give that as a function, such as weight=lambda t: (t != -999).sum(1); or return one value per sample "
        "as with reduction='none', or a pair (numerators, weights), each (n,); or give coupled=True, which takes all "
        "samples as one batch."
    )


@torch.no_grad()
def require_same_loss(form: PerSample, trial: Trial) -> None:
    """Refuse samples of other shapes than those that a loss was found with, if the form is not the loss of them.

    Raises:
        ValueError: As `found_loss`, or if a batch of them has another loss than its form says.
    """
    original: Any = form.original if isinstance(form, SampleLoss) and form.original is not None else form
    values = form.values if isinstance(form, SampleLoss) and original is not form else form
    with torch.random.fork_rng(devices=[trial.outputs.device] if trial.outputs.is_cuda else []):
        value, n = trial.called(original), len(trial.outputs)
        if is_coupled(form):
            return
        if isinstance(value, tuple | list):
            same = trial.agrees(form, _paired(original))
        elif isinstance(form, SampleLoss) and (value.shape == () or (value.shape == (1,) and n > 1)):
            same = trial.agrees(form, BatchNumber(original))
        else:
            same = form(*trial.first).shape == (n,) and trial.agrees(values, None, small=form not in KNOWN)
    if not same:
        other = ", found with the samples of the task, is another one of"
        what = " gives no value to each of" if form in KNOWN else other
        raise ValueError(
            f"the loss {loss_name(form)}{what} these samples "
            f"({trial.shapes}); make a task with them: landscape.make_task(model, loss, samples)."
        )


def require_metric(name: str, metric: PerSample, trial: Trial) -> None:
    """Refuse a metric that is random, or whose values depend on the other samples of a batch.

    Raises:
        ValueError: With what a metric is.
    """
    if not trial.agrees(lambda *batch: metric(*batch).double(), None):
        raise ValueError(
            f"the metric {name!r} is random, fails, or gives a sample other values in another batch ({trial.shapes}); "
            "a metric takes (outputs, targets) and gives values (n,) or (n, v), each of its own sample alone."
        )


def _by_shape(loss: Loss, value: Any, trial: Trial, weigh: Weigh | None) -> PerSample | None:
    n = len(trial.outputs)
    shape: Any = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if shape == () or (shape == (1,) and n > 1):
        return _mean(loss, trial, weigh)
    if isinstance(loss, nn.Module) and isinstance(value, Tensor) and value.ndim > 1 and len(value) == n:
        loss, shape = SampleMeans(loss, mean=True), (n,)
    if shape != (n,):
        raise ValueError(
            f"the loss {loss_name(loss)} gives {shape} for {n} samples ({trial.shapes}); it must give one value per "
            "sample, as with reduction='none', or one number."
        )
    if not trial.agrees(loss, None):
        return None
    if weigh is not None:
        require_unweighted(loss, weigh)
        return SampleLoss(Weighted(loss, weigh), weigh, name=f"{loss_name(loss)}, weighted as given")
    _warn_of_unweighted(loss, trial)
    return cross_entropy if _is_plain_cross_entropy(loss, trial) else SampleLoss(loss, name=loss_name(loss))


def _mean(loss: Loss, trial: Trial, weigh: Weigh | None) -> PerSample | None:
    """A loss of one number, as the first mean over samples, or sum, that fits."""
    if weigh is None and _is_plain_cross_entropy(loss, trial):
        return cross_entropy
    number, entries = BatchNumber(loss), _unreduced(loss)
    labels = isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) and not trial.targets.is_floating_point()
    candidates: Iterable[tuple[Weigh | None, str]] = candidate_weights(loss, trial.outputs, trial.targets)
    if weigh is not None:
        candidates = [(weigh, "weighted as given")]
    elif labels:
        known: Any = loss
        candidates = [(Counted(known.ignore_index, known.weight), _words(known))]
    for weights, words in candidates:
        name = ", ".join([loss_name(loss), *([words] if words else [])])
        forms = [SampleLoss(PerSampleLoss(number, weights), weights, number, name=name)]
        if entries is not None:
            forms.insert(0, SampleLoss(SampleMeans(entries, mean=weights is None), weights, name=name))
        for form in forms:
            if trial.agrees(form, number):
                _warn_of_logits(loss, trial.outputs)
                return form
    values = PerSampleLoss(number) if entries is None else SampleMeans(entries, mean=False)
    total = SampleLoss(values, None, number, "sum", f"{loss_name(loss)}, summed over samples")
    return total if weigh is None and trial.agrees(total, number) else None


def _pair(loss: Loss, trial: Trial) -> PerSample | None:
    weights = LossOutput(loss, 1, tuple(trial.outputs.shape[1:]), trial.outputs.dtype)
    pair = SampleLoss(LossOutput(loss, 0), weights, name=f"{loss_name(loss)}, weights of its own")
    return pair if trial.agrees(pair, _paired(loss)) else None


def _paired(loss: Loss) -> Loss:
    """The mean () of a loss that returns (numerators (n,), weights (n,))."""

    def number(outputs: Tensor, targets: Tensor) -> Tensor:
        values, weights = loss(outputs, targets)
        return (values.sum() / weights.double().sum()).to(values.dtype)

    return number


def as_module(loss: Loss) -> Loss:
    """A loss of torch whose weights are known as a module, also where it is given as a function."""
    if isinstance(loss, partial) and not loss.args and loss.func in _MODULES:
        return _MODULES[loss.func](**loss.keywords)
    return _MODULES[loss]() if loss in _MODULES else loss


def _unreduced(loss: Any) -> nn.Module | None:
    if not isinstance(loss, nn.Module) or getattr(loss, "reduction", None) not in ("mean", "sum"):
        return None
    unreduced = copy(loss)
    unreduced.reduction = "none"  # type: ignore[assignment]
    return unreduced


def _is_plain_cross_entropy(loss: Any, trial: Trial) -> bool:
    classes = trial.outputs.ndim == 2 and trial.targets.ndim == 1 and not trial.targets.is_floating_point()
    plain = type(loss) is nn.CrossEntropyLoss and loss.reduction in ("mean", "none") and loss.weight is None
    return classes and plain and (loss.ignore_index, loss.label_smoothing) == (-100, 0.0)


def _words(loss: Any) -> str:
    words = [] if loss.weight is None else ["mean by class weights"]
    return ", ".join(words + ([f"label {loss.ignore_index} not counted"] if loss.ignore_index != -100 else []))


def _check_weights(weigh: Weigh, targets: Tensor) -> None:
    stated: Any = weigh(targets)
    if (
        not isinstance(stated, Tensor)
        or stated.shape != (len(targets),)
        or not bool((stated >= 0).all() & (stated > 0).any())
    ):
        what = tuple(stated.shape) if isinstance(stated, Tensor) else type(stated).__name__
        raise ValueError(
            f"weight= gave {what} for {len(targets)} targets; give (n,) weights, none below and some above 0."
        )


def _warn_of_unweighted(loss: Any, trial: Trial) -> None:
    """Say so where values without reduction have another mean than torch's own, which divides by weights."""
    loss = getattr(loss, "loss", loss)
    if not isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or trial.targets.is_floating_point():
        return
    outputs, targets = trial.first
    reduced = copy(loss)
    reduced.reduction = "mean"
    mean, value = float(loss(outputs, targets).mean()), float(reduced(outputs, targets))
    if abs(mean - value) > 1e-4 * abs(value) and not _is_plain_cross_entropy(loss, trial):
        warnings.warn(
            f"{loss_name(loss)} with reduction='none' is averaged over all {len(outputs)} samples tried ({mean:.4g}); "
            f"with reduction='mean' it is divided by the weights of what counts, which is another number "
            f"({value:.4g}). Give it with reduction='mean' for the number of torch; the plain mean is taken here.",
            stacklevel=2,
        )


def _warn_of_logits(loss: Any, outputs: Tensor) -> None:
    """Say so where NLLLoss or KLDivLoss is given outputs that are no log-probabilities."""
    known = isinstance(loss, nn.NLLLoss | nn.KLDivLoss)
    if known and outputs.ndim > 1 and float(outputs.logsumexp(1).abs().max()) > 1e-3:
        warnings.warn(
            f"{loss_name(loss)} takes log-probabilities, but the outputs of the model are not (their exponentials do "
            "not sum to 1); end the model with LogSoftmax, or use CrossEntropyLoss.",
            stacklevel=2,
        )
