"""What the benchmark of curvature measures: trained models, and settings of every program from cheap to dear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks._planes import Transformer
from landscape import models
from landscape.curvature.density import density
from landscape.curvature.hessian import pose, top_eigenvalues
from landscape.curvature.hessian_products import hvp
from landscape.curvature.krylov import extreme, starting
from landscape.curvature.trace import trace
from landscape.datasets import open_dataset
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models._resnet import BasicBlock

RESULTS = Path(__file__).resolve().parent / "results"
GREY = {"cnn_fmnist": 28, "cnn_digits": 8, "small_cnn": 8, "lenet": 28, "lenet5": 28, "mlp": 28, "linear": 28}
"""Sides of grey images, by model; all others take colour images of 32 x 32."""

SAMPLES = {
    "cnn_fmnist": 64,
    "resnet8": 16,
    "transformer": 16,
    "small_cnn": 64,
    "small_resnet": 16,
    "small_transformer": 16,
}
"""Samples that the Hessian is of, by model, so that a product takes less than a tenth of a second."""

WIDTH = 0.01
"""Standard deviation of the Gaussian that smooths a density, as a share of the range of its nodes."""

Ladder = list[tuple[str, Callable[[int], Any]]]
"""Settings of a program from cheap to dear: words, and the call, which takes a seed."""


class Medium(Transformer):
    """Two layers of width 64."""

    WIDTH, HEADS, LAYERS = 64, 2, 2


class Small(Transformer):
    """A layer of width 16, so few parameters that all eigenvalues are computed."""

    WIDTH, HEADS, LAYERS = 16, 2, 1


def _small_cnn() -> nn.Module:
    layers = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def _small_resnet() -> nn.Module:
    layers = (nn.Conv2d(3, 8, 3, 2, 1), BasicBlock(8, 8, 1, "batch", 1), BasicBlock(8, 16, 2, "batch", 1))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


OWN: dict[str, Callable[[], nn.Module]] = {
    "transformer": Medium,
    "small_transformer": Small,
    "small_cnn": _small_cnn,
    "small_resnet": _small_resnet,
}
"""Models of this benchmark alone."""


@dataclass(frozen=True)
class Problem:
    """A trained model and the samples that its Hessian is of."""

    name: str
    task: Task

    @classmethod
    def of(cls, name: str, count: int | None, steps: int) -> Problem:
        """Real digits (enlarged, and repeated over channels where wanted); a model of `steps` of SGD, trained once."""
        count = SAMPLES.get(name, 64) if count is None else count
        digits = open_dataset("digits").train
        inputs: Any = digits.inputs
        if (side := GREY.get(name, 32)) != 8:
            inputs = F.interpolate(inputs, size=side, mode="bicubic")
        inputs = inputs if name in GREY else inputs.repeat(1, 3, 1, 1)
        everything = Samples(inputs, digits.targets)
        torch.manual_seed(0)
        shape = tuple(inputs.shape[1:])
        model = OWN[name]() if name in OWN else models.build_model(name, shape, 10, seed=0)
        path = RESULTS / f"model-{name}-{steps}-{torch.__version__}.pt"
        if path.exists():
            model.load_state_dict(torch.load(path, weights_only=True))
        else:
            _train(model, everything, steps)
            RESULTS.mkdir(exist_ok=True)
            torch.save(model.state_dict(), path)
        return cls(name, Task(model.eval(), {"train": everything[:count]}))

    @property
    def batch(self) -> tuple[Tensor, Tensor]:
        """All samples as other programs take them."""
        samples = self.task.split("train")
        return samples.inputs, samples.targets

    def eigenvalues(self, k: int) -> np.ndarray:
        """The k largest by absolute value, in float64 to 1e-8."""
        posed = pose(self.task, self.task.theta.double(), split="train")
        product = hvp(posed.flat, posed.theta, self.task.split("train"))
        return extreme(product, starting(posed.theta, 1), k, tolerance=1e-4).values.numpy()

    def spectrum(self) -> np.ndarray:
        """All eigenvalues, of the dense matrix in float32."""
        posed = pose(self.task, self.task.theta, split="train")
        product = hvp(posed.flat, posed.theta, self.task.split("train"))
        matrix = torch.stack([product(row) for row in torch.eye(posed.theta.numel())])
        return torch.linalg.eigvalsh((matrix + matrix.T) / 2).double().numpy()


def _train(model: nn.Module, samples: Samples, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        part = samples[torch.randint(len(samples), (32,), generator=generator)]
        optimizer.zero_grad()
        F.cross_entropy(model(part.inputs), part.targets).backward()
        optimizer.step()
    model.zero_grad(set_to_none=True)


@contextmanager
def differentiable() -> Iterator[None]:
    """Attention by the formula: torch's fast kernels have no second derivative on a CPU. fedscape does so itself."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


def eigenvalue_ladders(problem: Problem, k: int) -> dict[str, Ladder]:
    """The k largest eigenvalues: each call gives the values, the largest first."""
    task = problem.task
    ladders: dict[str, Ladder] = {
        "fedscape": [
            (f"tolerance {tolerance}", partial(_fedscape, task, k, tolerance))
            for tolerance in (0.5, 0.2, 0.05, 0.01, 1e-3)
        ],
        "PyHessian": [(f"tol {tol}", partial(_pyhessian, problem, k, tol)) for tol in (1e-3, 1e-4, 1e-6)],
    }
    if find_spec("curvlinops"):
        tolerances = (1e-1, 1e-2, 1e-3, 1e-5)
        ladders["curvlinops"] = [(f"eigsh, tol {tol}", partial(_curvlinops, problem, k, tol)) for tol in tolerances]
    if find_spec("hessian_eigenthings"):
        steps = [2 * k + more for more in (0, 4, 10, 20, 40, 80, 160)]
        ladders["hessian-eigenthings"] = [(f"{step} steps", partial(_eigenthings, problem, k, step)) for step in steps]
    return ladders


def trace_ladders(problem: Problem) -> dict[str, Ladder]:
    """The trace: each call gives an estimate."""
    counts, task = (24, 48, 99, 198, 396), problem.task

    def ours(products: int, seed: int) -> float:
        return float(trace(task, task.theta, products=products, seed=seed).trace)

    def eigenthings(products: int, seed: int) -> float:
        import hessian_eigenthings

        return hessian_eigenthings.trace(_operator(problem), num_matvecs=products, method="hutch++", seed=seed).estimate

    def curvlinops(products: int, seed: int) -> float:
        from curvlinops import hutchpp_trace

        torch.manual_seed(seed)
        return float(hutchpp_trace(_linear_operator(problem), products))

    def pyhessian(products: int, seed: int) -> float:
        torch.manual_seed(seed)
        return float(np.mean(_pyhessian_of(problem).trace(maxIter=products, tol=0.0)))

    programs: dict[str, Callable[[int, int], float]] = {"fedscape": ours, "PyHessian": pyhessian}
    programs |= {"curvlinops": curvlinops} if find_spec("curvlinops") else {}
    programs |= {"hessian-eigenthings": eigenthings} if find_spec("hessian_eigenthings") else {}
    return {
        name: [(f"{count} products", partial(program, count)) for count in counts] for name, program in programs.items()
    }


def density_ladders(problem: Problem) -> dict[str, Ladder]:
    """The density: each call gives a grid, the heights, and the sigma of the Gaussian. PyHessian's needs `torch.eig`,
    which torch no longer has; that of curvlinops has a width of its own."""
    sizes, task = ((10, 1), (20, 1), (20, 2), (40, 3), (60, 5), (80, 10)), problem.task

    def ours(steps: int, probes: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        ds = density(task, task.theta, steps=steps, probes=probes, width=WIDTH, seed=seed)
        return ds["value"].values, ds["density"].values, float(ds.attrs["sigma"])

    def eigenthings(steps: int, probes: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        import hessian_eigenthings

        raw = hessian_eigenthings.spectral_density(_operator(problem), num_runs=probes, lanczos_steps=steps, seed=seed)
        node, weight = raw.raw_eigenvalues.double().numpy().ravel(), raw.raw_weights.double().numpy().ravel()
        sigma = WIDTH * float(np.ptp(node))
        grid = np.linspace(node.min() - 6 * sigma, node.max() + 6 * sigma, 1001)
        return grid, smoothed(grid, node, weight / weight.sum(), sigma), sigma

    programs: dict[str, Callable[[int, int, int], Any]] = {"fedscape": ours}
    programs |= {"hessian-eigenthings": eigenthings} if find_spec("hessian_eigenthings") else {}
    return {
        name: [(f"{steps} steps x {probes}", partial(program, steps, probes)) for steps, probes in sizes]
        for name, program in programs.items()
    }


def smoothed(grid: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sigma: float) -> np.ndarray:
    """The density of weighted nodes under a Gaussian, on a grid."""
    heights = np.zeros(len(grid))
    for start in range(0, len(nodes), 512):
        part = slice(start, start + 512)
        heights += np.exp(-0.5 * ((grid[:, None] - nodes[part]) / sigma) ** 2) @ weights[part]
    return heights / (sigma * np.sqrt(2 * np.pi))


def _fedscape(task: Task, k: int, tolerance: float, seed: int) -> np.ndarray:
    return top_eigenvalues(task, task.theta, k, tolerance=tolerance, seed=seed).eigenvalue.values


def _pyhessian_of(problem: Problem) -> Any:
    """PyHessian on one batch, its fastest way."""
    from pyhessian import hessian

    return hessian(deepcopy(problem.task.model), nn.CrossEntropyLoss(), data=problem.batch, cuda=False)


def _pyhessian(problem: Problem, k: int, tol: float, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    values, _ = _pyhessian_of(problem).eigenvalues(top_n=k, tol=tol, maxIter=500)
    return np.array(sorted(values, key=abs, reverse=True))


def _linear_operator(problem: Problem) -> Any:
    from curvlinops import HessianLinearOperator

    model = problem.task.model
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return HessianLinearOperator(model, nn.CrossEntropyLoss(), parameters, [problem.batch], check_deterministic=False)


def _curvlinops(problem: Problem, k: int, tol: float, seed: int) -> np.ndarray:
    operator = _linear_operator(problem).to_scipy()
    start = np.random.default_rng(seed).standard_normal(operator.shape[0]).astype(np.float32)
    values = eigsh(operator, k=k, which="LM", tol=tol, v0=start, return_eigenvectors=False)
    return np.array(sorted(values, key=abs, reverse=True))


def _operator(problem: Problem) -> Any:
    from hessian_eigenthings import HessianOperator, supervised_loss

    return HessianOperator(problem.task.model, [problem.batch], supervised_loss(nn.CrossEntropyLoss()))


def _eigenthings(problem: Problem, k: int, steps: int, seed: int) -> np.ndarray:
    from hessian_eigenthings import lanczos

    found = lanczos(_operator(problem), k=k, max_iter=steps, seed=seed, reorthogonalize=True)
    return np.array(sorted(found.eigenvalues.tolist(), key=abs, reverse=True))
