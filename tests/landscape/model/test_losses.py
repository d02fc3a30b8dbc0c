"""What is found of a loss, and what is refused: in one line that says what to do."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import landscape
from landscape.model.loss_trial import Trial
from landscape.model.losses import SampleLoss
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.task import cross_entropy

DRAW = torch.Generator().manual_seed(1)
X = torch.randn(60, 5, generator=DRAW)
Y = X[:, :3].argmax(1)
WEIGHTS = torch.tensor([1.0, 2.0, 5.0])


def net(outputs: int = 3) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, outputs))


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.dropout(torch.relu(self.first(x)), 0.5))


class Noisy(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 1e-3 * torch.randn_like(x))


def dice(outputs: Tensor, targets: Tensor) -> Tensor:
    chance, own = outputs.softmax(1)[:, 1], (targets == 1).to(outputs)
    return 1 - 2 * (chance * own).sum() / (chance.sum() + own.sum())


def contrast(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs @ outputs.T, torch.arange(len(outputs)), reduction="none")


SUM = X.sum(1)
CE = nn.CrossEntropyLoss()
IDS = torch.randint(0, 11, (20, 7), generator=DRAW)
REFUSED: dict[str, tuple[Any, str]] = {
    "dropout in eval mode": (
        (Dropping(), CE, (X, Y)),
        r"Dropping is random in eval mode \(seen first in layer 'second'\).*training=self.training",
    ),
    "noise in eval mode": ((Noisy(5, 3), CE, (X, Y)), "Noisy is random in eval mode"),
    "a random loss": ((net(), lambda o, t: F.cross_entropy(F.dropout(o), t), (X, Y)), "the loss <lambda> is random"),
    "a column against a row": (
        (net(1), nn.MSELoss(), (X, SUM)),
        r"compares every output with every target \(outputs \(60, 1\), targets \(60,\)\); give targets\[:, None\]",
    ),
    "own column against a row": ((net(1), lambda o, t: (o - t).abs().mean(), (X, SUM)), r"give targets\[:, None\]"),
    "column by values": ((net(1), nn.MSELoss(reduction="none"), (X, SUM)), r"give targets\[:, None\]"),
    "Dice": ((net(), dice, (X, Y)), "dice is not a mean over samples.*coupled=True"),
    "contrast": ((net(), contrast, (X, Y)), "contrast is not a mean over samples.*reduction='none'.*coupled=True"),
    "statistics of the batch": (
        (nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 3)), CE, (X, Y)),
        "depends on others of its batch in eval mode .layer 1 keeps no running statistics.*coupled=True",
    ),
    "classes last": (
        (nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11)), CE, (IDS, IDS.roll(-1, 1))),
        r"fails on outputs \(20, 7, 11\), targets \(20, 7\).*outputs.flatten\(0, -2\), targets.flatten",
    ),
    "a loss of pairs of words": ((net(), lambda o, t: "small", (X, Y)), "the loss <lambda> gives str for 60 samples"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_mean_is_refused_in_one_line(what):
    arguments, message = REFUSED[what]
    before = torch.random.get_rng_state()
    with pytest.raises(ValueError, match=message) as refused:
        landscape.make_task(*arguments)
    assert "\n" not in str(refused.value)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_broadcast_is_refused_also_where_samples_may_be_coupled():
    with pytest.raises(ValueError, match=r"give targets\[:, None\]"):
        landscape.make_task(net(1), nn.MSELoss(), (X, SUM), coupled=True)


def test_a_loss_that_removes_a_dimension_itself_is_no_broadcast():
    task = landscape.make_task(net(1), lambda o, t: (o.squeeze(1) - t).square().mean(), (X, SUM))
    assert landscape.loss(task, net(1)) == pytest.approx(F.mse_loss(net(1)(X)[:, 0], SUM).item(), rel=1e-6)


def test_one_missing_value_among_thousands_is_noticed():
    inputs, targets = torch.randn(6000, 5, generator=DRAW), torch.randn(6000, 2, generator=DRAW)
    targets[4001, 1] = torch.nan
    task = landscape.make_task(
        net(2),
        lambda o, t: ((o - t)[~t.isnan()] ** 2).mean(),
        {"train": (inputs[:9], targets[:9]), "test": (inputs, targets)},
    )
    assert isinstance(task.loss, SampleLoss) and task.loss.weigh is not None
    assert task.loss.weigh(targets).sum() == 11999


def test_one_ignored_label_among_thousands_is_noticed():
    inputs, targets = torch.randn(6000, 5, generator=DRAW), torch.randint(0, 3, (6000,), generator=DRAW)
    targets[4001] = 255
    loss = lambda o, t: F.cross_entropy(o, t, ignore_index=255)  # noqa: E731
    task = landscape.make_task(net(), loss, (inputs, targets))
    assert landscape.loss(task, net()) == pytest.approx(loss(net()(inputs), targets).item(), rel=1e-6)
    assert "label 255 not counted" in repr(task)


def test_unreduced_class_weights_say_that_their_mean_is_another_number():
    loss = nn.CrossEntropyLoss(weight=WEIGHTS, reduction="none")
    with pytest.warns(UserWarning, match="another number") as told:
        task = landscape.make_task(net(), loss, (X, Y))
    (said,) = [str(warning.message) for warning in told]
    assert "\n" not in said and "Give it with reduction='mean' for the number of torch" in said
    rows = -net()(X).detach().double().log_softmax(1)[torch.arange(len(Y)), Y] * WEIGHTS[Y].double()
    plain, divided = float(rows.mean()), float(rows.sum() / WEIGHTS[Y].double().sum())
    stated = [float(number) for number in re.findall(r"\((\d\.\d+)\)", said)]
    assert stated == pytest.approx([plain, divided], abs=5e-4) and f"all {len(Y)} samples tried" in said
    assert (plain, divided) == pytest.approx((2.794, 1.197), abs=5e-4)
    assert landscape.loss(task, net()) == pytest.approx(plain, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told_to = landscape.make_task(net(), nn.CrossEntropyLoss(weight=WEIGHTS), (X, Y))
    assert landscape.loss(told_to, net()) == pytest.approx(divided, rel=1e-6)


def test_given_weights_are_those_of_the_mean():
    def opaque(outputs: Tensor, targets: Tensor) -> Tensor:
        counted = targets > 0.3
        return (outputs - targets)[counted].square().mean()

    with pytest.raises(ValueError, match=r"opaque is not a mean over samples.*weight=lambda t: \(t != -999\).sum\(1\)"):
        landscape.make_task(net(), opaque, (X, X[:, :3]))
    task = landscape.make_task(net(), opaque, (X, X[:, :3]), weight=lambda targets: (targets > 0.3).sum(1))
    assert landscape.loss(task, net()) == pytest.approx(opaque(net()(X), X[:, :3]).item(), rel=1e-6)
    by_sample = landscape.make_task(net(), nn.CrossEntropyLoss(reduction="none"), (X, Y), weight=WEIGHTS)
    expected = F.cross_entropy(net()(X), Y, weight=WEIGHTS).item()
    assert landscape.loss(by_sample, net()) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="not a mean over samples with the given weights"):
        landscape.make_task(net(), nn.CrossEntropyLoss(), (X, Y), weight=WEIGHTS)
    with pytest.raises(ValueError, match=r"weight= gave \(60, 1\) for 60 targets|weight= gave \(1"):
        landscape.make_task(net(), nn.CrossEntropyLoss(), (X, Y), weight=lambda targets: targets[:, None].double())


@pytest.mark.parametrize("sentinel", [-999.0, -1.0, 0.0, 7.25])
def test_one_marked_value_among_thousands_is_noticed(sentinel):
    inputs, targets = torch.randn(6000, 5, generator=DRAW), torch.randn(6000, 2, generator=DRAW).abs() + 8
    targets[4001, 1] = sentinel
    own = lambda o, t: ((o - t)[t > 7.5] ** 2).mean()  # noqa: E731
    task = landscape.make_task(net(2), own, {"train": (inputs[:9], targets[:9]), "test": (inputs, targets)})
    assert f"mean of the targets that are not {sentinel:g}" in repr(task)
    assert landscape.loss(task, net(2)) == pytest.approx(own(net(2)(inputs), targets).item(), rel=1e-6)


def test_a_small_number_in_the_denominator_is_no_other_mean():
    targets = torch.stack([X[:, :3], (X[:, :3] > 0.2).float()], -1)

    def own(o: Tensor, t: Tensor) -> Tensor:
        return ((o - t[..., 0]).abs() * t[..., 1]).sum() / (t[..., 1].sum() + 1e-8)

    task = landscape.make_task(net(), own, (X, targets))
    assert landscape.loss(task, net()) == pytest.approx(own(net()(X).double(), targets.double()).item(), rel=3e-7)


def test_weights_of_no_sample_agree_with_no_loss():
    def own(o: Tensor, t: Tensor) -> Tensor:
        weights = torch.where(t == 1, 10.0, 1.0)
        return (weights * F.binary_cross_entropy_with_logits(o, t.float(), reduction="none")).sum() / weights.sum()

    targets = (X[:, :1] > 0).long()
    task = landscape.make_task(net(1), own, (X, targets))
    assert landscape.loss(task, net(1)) == pytest.approx(own(net(1)(X), targets).item(), rel=1e-6)


def test_values_of_single_samples_are_their_own_losses():
    task = landscape.make_task(net(), nn.CrossEntropyLoss(weight=WEIGHTS), (X, Y))
    from landscape.measures.predictions import predictions

    expected = F.cross_entropy(net()(X), Y, reduction="none").double().detach()
    np.testing.assert_allclose(predictions(task, task.theta).loss, expected, rtol=1e-5)


def test_the_repr_states_outputs_targets_loss_samples_and_parameters(capsys):
    task = landscape.make_task(net(), nn.CrossEntropyLoss(weight=WEIGHTS), {"train": (X, Y), "test": (X[:7], Y[:7])})
    assert repr(task) == (
        "Task(model Sequential, parameters 75, outputs (3,), targets () int64, loss CrossEntropyLoss, mean by class "
        "weights, samples of test 7, samples of train 60, metrics error)"
    )
    assert capsys.readouterr() == ("", "")


def test_outputs_that_are_no_log_probabilities_are_remarked():
    with pytest.warns(UserWarning, match="NLLLoss takes log-probabilities"):
        landscape.make_task(net(), nn.NLLLoss(), (X, Y))
    landscape.make_task(nn.Sequential(net(), nn.LogSoftmax(1)), nn.NLLLoss(), (X, Y))
    shares = F.one_hot(Y, 3).float()
    with pytest.warns(UserWarning, match="KLDivLoss takes log-probabilities"):
        landscape.make_task(net(), nn.KLDivLoss(reduction="batchmean"), (X, shares))


def test_a_loss_below_zero_is_evaluated_and_drawn_on_linear_levels():
    def likelihood(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.gaussian_nll_loss(outputs[:, :1], targets[:, None], outputs[:, 1:].exp() * 1e-3)

    task = landscape.make_task(net(2), likelihood, (X, 0.01 * SUM))
    own = likelihood(net(2)(X), 0.01 * SUM).item()
    assert landscape.loss(task, net(2)) == pytest.approx(own, rel=1e-5)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x).mean(1))


def test_encoders_of_torch_are_evaluated_in_eval_mode():
    inputs = torch.randn(60, 6, 8, generator=DRAW)
    task = landscape.make_task(Encoder(), CE, (inputs, Y))
    expected = F.cross_entropy(Encoder().eval()(inputs), Y).item()
    assert landscape.loss(task, Encoder()) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(landscape.hessian(task, task.theta, k=1).eigenvalue).all()
    assert task.model.encoder.layers[0].activation_relu_or_gelu  # the user's and the task's own module stay


class Transformer(nn.Module):
    """With the interface of models of transformers: named inputs, `labels`, an object with loss and logits."""

    def __init__(self, loss: Any = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.loss, self.embedding, self.head = loss, nn.Embedding(11, 8), nn.Linear(8, 11)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None) -> Any:
        hidden = self.embedding(input_ids)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        before = (hidden * mask[..., None]).cumsum(1) / mask.cumsum(1).clamp(min=1)[..., None]
        logits = self.head(torch.tanh(before))
        own = self.loss or (lambda o, t: F.cross_entropy(o[:, :-1].flatten(0, 1), t[:, 1:].flatten()))
        return SimpleNamespace(logits=logits, loss=None if labels is None else own(logits, labels))


LENGTHS = torch.randint(3, 8, (20, 1), generator=DRAW)
MASK = (torch.arange(7)[None] < LENGTHS).long()
LABELS = IDS.where(MASK == 1, -100)


def test_a_model_of_transformers_has_its_own_loss():
    batch = {"input_ids": IDS, "attention_mask": MASK}
    task = landscape.make_task(Transformer(), None, {**batch, "labels": LABELS})
    own = Transformer()(**batch, labels=LABELS).loss.item()
    assert landscape.loss(task, Transformer()) == pytest.approx(own, rel=1e-6)
    assert "next_token_loss" in repr(task)
    same = Transformer(lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()))
    task = landscape.make_task(same, None, {**batch, "labels": LABELS})
    assert landscape.loss(task, same) == pytest.approx(same(**batch, labels=LABELS).loss.item(), rel=1e-6)
    with pytest.raises(
        ValueError, match=r"the loss of Transformer is not one of next_token_loss.*give it as a function of"
    ):
        landscape.make_task(Transformer(lambda o, t: o.square().mean()), None, {**batch, "labels": LABELS})
    with pytest.raises(ValueError, match="the loss is None; give a function"):
        landscape.make_task(net(), None, (X, Y))


def test_a_model_whose_class_names_no_loss_is_not_warned_of():
    class Unnamed(Transformer):
        loss_type = None

        def forward(self, *args: Any, **named: Any) -> Any:
            if self.loss_type is None and "labels" in named:
                raise UserWarning("`loss_type=None` is unrecognized. Using the default loss: `ForCausalLMLoss`")
            return super().forward(*args, **named)

    model = Unnamed()
    task = landscape.make_task(model, None, {"input_ids": IDS, "labels": LABELS})
    assert "next_token_loss" in repr(task) and model.loss_type is None, "the user's model stays"


def test_batches_padded_to_their_own_length_are_one_split():
    def collate(rows: list[int]) -> dict[str, Tensor]:
        longest = int(LENGTHS[rows].max())
        return {
            name: full[rows, :longest]
            for name, full in (("input_ids", IDS), ("attention_mask", MASK), ("labels", LABELS))
        }

    loader = torch.utils.data.DataLoader(range(20), batch_size=3, collate_fn=collate)  # type: ignore[arg-type]
    task = landscape.make_task(Transformer(), None, loader)
    own = Transformer()(input_ids=IDS, attention_mask=MASK, labels=LABELS).loss.item()
    assert landscape.loss(task, Transformer()) == pytest.approx(own, rel=1e-5)


def test_plain_cross_entropy_stays_itself():
    for loss in (CE, F.cross_entropy, nn.CrossEntropyLoss(reduction="none")):
        assert landscape.make_task(net(), loss, (X, Y)).loss is cross_entropy


def test_a_loss_that_asks_a_model_of_transformers_for_its_logits_is_told_that_it_has_them():
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()

        def forward(self, x: Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=self.inner(x))

    with pytest.raises(
        ValueError, match=r"no attribute 'logits'\. The loss gets the logits .* write outputs in place of"
    ):
        landscape.make_task(Wrapped(), lambda outputs, targets: F.cross_entropy(outputs.logits, targets), (X, Y))
    task = landscape.make_task(Wrapped(), lambda outputs, targets: F.cross_entropy(outputs, targets), (X, Y))
    assert landscape.loss(task, task.theta) == pytest.approx(F.cross_entropy(net()(X), Y).item(), rel=1e-6)


def test_a_shipped_loss_is_tried_on_all_samples_and_on_no_small_batches(monkeypatch):
    """That its values do not depend on the batch needs no trial; that it has one for each target does."""
    monkeypatch.setattr(Trial, "_small_batches", lambda trial: pytest.fail("it was tried on small batches"))
    assert len(landscape.make_task(net(), cross_entropy, (X, Y)).split("test")) == 60
    x, y = X.repeat(20, 1), Y.repeat(20)
    y[1100] = 7
    with pytest.raises(ValueError, match="gives no value to each of these samples"):
        Task(net(), {"test": Samples(x, y)}).split("test")
