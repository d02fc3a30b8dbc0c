"""The loss around a model to second order, its sharpest directions, and the clients of a round as moves of a mean."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_models
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.round_record import Round
from drift.store.row_matrices import rows
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.hessian_products import linearise
from landscape.curvature.lanczos import Product
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.model.task import Task

NEAR = 1e-2
"""Relative distance of eigenvalues k and k + 1 up to which the eigenspace counts as not unique."""


@dataclass(frozen=True)
class Surroundings:
    """Loss around a model (d,) to second order, with the batch statistics that the model carries.

    Attributes:
        product: The Hessian H, v (d,) -> H v (d,).
        gradient: Shape (d,).
        eigenvalues: The k of largest magnitude, shape (k,), float64; NaN where one did not converge.
        span: Their unit eigenvectors, shape (k, d); NaN where one did not converge. The whole space if k >= d.
        residual: Largest |Hv - lambda v| / |lambda| of those that converged.
        cut: (|lambda_k| - |lambda_(k+1)|) / |lambda_k|; 0 where lambda_k is 0, NaN where lambda_(k+1) is not known.
        products: Products that the search took.
    """

    run: Run
    samples: Samples
    model: Tensor
    product: Product
    gradient: Tensor
    eigenvalues: Tensor
    span: Tensor
    residual: float
    cut: float
    products: int

    @classmethod
    def around(cls, run: Run, model: Tensor, k: int, samples: Samples) -> Self:
        """The surroundings of a model on some samples, with its k sharpest directions."""
        product, gradient = _linearised(run.task, model, samples)
        number = min(k + 1, model.numel())
        pairs = top_eigenvalues(run.task, model, number, split=samples, tolerance=NEAR, max_products=100, vectors=True)
        leading = pairs.isel(rank=slice(k))
        sizes = abs(pairs["eigenvalue"]).values
        vectors = torch.from_numpy(leading["eigenvector"].values).to(gradient)
        gap = float("nan") if len(sizes) <= k else 0.0 if sizes[k - 1] == 0 else 1 - sizes[k] / sizes[k - 1]
        return cls(
            *(run, samples, model, product, gradient),
            torch.from_numpy(leading["eigenvalue"].values).double(),
            vectors if k < len(gradient) else torch.eye(len(gradient)).to(gradient),
            float((leading["residual"] / abs(leading["eigenvalue"]).where(leading["eigenvalue"] != 0)).max()),
            *(float(gap), int(pairs.attrs["products"])),
        )

    @property
    def undetermined(self) -> bool:
        """Whether an eigenpair did not converge, or eigenvalues k and k + 1 are near, so that no eigenspace is unique,
        or are not known to be apart."""
        return bool(self.span.isnan().any()) or (len(self.span) < len(self.gradient) and not self.cut > NEAR)

    def losses(self, moves: Tensor) -> Tensor:
        """Losses of the model and of the model moved by `moves` (n, d), shape (1 + n,), float64."""
        basis = torch.cat([plain(self.model)[None], self.model + moves])
        fixed = buffers_of(self.model)
        buffers = None if fixed is None else fixed.expand(len(basis), -1)
        return evaluate_models(self.run, basis, self.samples, buffers=buffers)["loss"].double()

    def curved(self, moves: Tensor) -> Tensor:
        """d'Hd of moves (n, d), shape (n,), float64."""
        return torch.stack([move @ self.product(move) for move in moves]).double()

    def gradient_at(self, move: Tensor) -> Tensor:
        """Gradient (d,) at the model moved by d (d,)."""
        return _linearised(self.run.task, self.model + move, self.samples, buffers_of(self.model))[1]


@dataclass(frozen=True)
class WeightedClients:
    """The clients of a round that have a weight, and their mean (d,).

    Attributes:
        numbers: Their rows in `clients` (m, d).
        weights: p_k, sum 1, shape (len(numbers),), float64.
    """

    mean: Tensor
    clients: Tensor
    numbers: list[int]
    weights: Tensor

    def drifts(self) -> Iterator[Tensor]:
        """w_k - mean, one after the other."""
        return (client - self.mean for client in rows(self.clients, self.numbers))


def cohort_of(run: Run, record: Round) -> WeightedClients | None:
    """The cohort of a round; None where no client has samples, or all diverged.

    Raises:
        LookupError: If the round kept no clients.
    """
    clients, weights = record.kept("clients"), run.experiment.cohort_weights(record.sizes)
    if not bool((record.sizes > 0).any()):
        return None
    used = weights > 0
    return WeightedClients(weighted_models(weights, clients), clients, used.nonzero().flatten().tolist(), weights[used])


def principal_directions(cohort: WeightedClients, inner: Tensor, k: int) -> Tensor:
    """Orthonormal leading directions (r, d) of the drifts, r <= k, in float64; those within rounding are left out.

    Args:
        inner: Inner products of the updates of all clients of the round, shape (m, m).
    """
    p, scale = cohort.weights, cohort.weights.sqrt()
    products = inner[cohort.numbers][:, cohort.numbers].double()
    cross = products @ p
    centred = products - cross - cross[:, None] + p @ cross
    values, columns = torch.linalg.eigh(scale[:, None] * centred * scale)
    above = int((values.clamp(min=0).sqrt() > rounding_of(cohort.mean)).sum())
    real = min(k, len(p) - 1, above)  # weighted drifts sum to zero
    mixing = columns.flip(1)[:, :real] * scale[:, None]
    directions = cohort.mean.new_zeros(real, len(cohort.mean), dtype=torch.float64)
    for row, drift in zip(mixing, cohort.drifts(), strict=True):
        directions += torch.outer(row, drift.double())
    return torch.linalg.qr(directions.T).Q.T


def rounding_of(model: Tensor) -> float:
    """Length up to which moves of a model are rounding, as among equal clients."""
    return 4 * torch.finfo(model.dtype).eps * float(plain(model).double().norm())


def first_test_samples(run: Run, k: int, samples: int) -> Samples:
    """The first test samples of a run.

    Raises:
        ValueError: If their number, or that of eigenvectors, k, is not positive.
    """
    if k < 1 or samples < 1:
        raise ValueError(f"k is {k} and samples is {samples}; both are 1 or more.")
    return run.task.split("test")[:samples]


def unsure_rounds(indices: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rounds whose eigenspace is `Surroundings.undetermined`, as a text such as "3, 7"."""
    return ", ".join(str(index) for index, row in zip(indices, rows, strict=True) if row.get("undetermined"))


def _linearised(task: Task, model: Tensor, samples: Samples, buffers: Tensor | None = None) -> tuple[Product, Tensor]:
    theta = plain(model)
    flat = task.flat(theta)
    flat.load(theta, buffers_of(model) if buffers is None else buffers)
    return linearise(flat, theta, samples)
