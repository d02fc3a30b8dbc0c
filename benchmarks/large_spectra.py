"""Largest Hessian eigenvalues of 11 to 86 million random parameters, by the own solver or by SciPy: time and memory.

    python -m benchmarks.large_spectra [--model vit_b] [--samples 2] [--k 5] [--products 60] [--solver eigsh]

vit_b has the sizes of ViT-B/16 (12 layers of width 768) on images of 96 x 96, distilbert those of DistilBERT (6 layers,
30,522 words) on texts of 32 words, resnet18_gn is a ResNet-18 with group norms on images of 32 x 32, wide_mlp a chain
of dense layers. Both solvers take the same float32 products and the same tolerance of the residual, which one product
per value measures after the search. SciPy's has vectors in float64. Prints the processor, CPU seconds, products, rows
of the basis and the largest resident memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor, nn

from landscape import models
from landscape.curvature.curvature_products import linearise_problem
from landscape.curvature.hessian import CurvatureProblem, pose
from landscape.curvature.krylov import Eigenpairs, accepted, default_rows, extreme, listed, measured, starting
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.processor import processor_line


class Transformer(nn.Module):
    """Embedding, layers of width 768 and a linear head on the mean."""

    def __init__(self, embed: nn.Module, layers: int, tokens: int, classes: int) -> None:
        super().__init__()
        self.embed, self.places = embed, nn.Parameter(0.02 * torch.randn(tokens, 768))
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(768, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs (n, classes) of images (n, 3, 96, 96) or words (n, tokens)."""
        embedded = self.embed(inputs)
        if embedded.ndim == 4:
            embedded = embedded.flatten(2).transpose(1, 2)
        return self.head(self.layers(embedded + self.places).mean(1))


def built(name: str, count: int) -> Task:
    """The task of `count` random samples for a model of random weights."""
    inputs = torch.randn(count, 3, 96, 96)
    if name == "vit_b":
        model: nn.Module = Transformer(nn.Conv2d(3, 768, 16, 16), 12, 36, 1000)
    elif name == "distilbert":
        model, inputs = Transformer(nn.Embedding(30_522, 768), 6, 32, 2), torch.randint(30_522, (count, 32))
    elif name == "resnet18_gn":
        model, inputs = models.build_model(name, (3, 32, 32), 10, seed=0), inputs[..., :32, :32].contiguous()
    else:
        layers = [nn.Linear(784, 2400), nn.ReLU(), nn.Linear(2400, 2400), nn.ReLU(), nn.Linear(2400, 1400), nn.ReLU()]
        model, inputs = nn.Sequential(*layers, nn.Linear(1400, 10)), torch.randn(count, 784)
    return Task(model.eval(), {"train": Samples(inputs, torch.randint(2, (count,)))})


def native(problem: CurvatureProblem, k: int, rows: int, tolerance: float, most: int) -> Eigenpairs:
    """Pairs by the own search, as `landscape.hessian` starts it."""
    product, gradient = linearise_problem(problem)
    start = [starting(problem.theta, 0, *([gradient] if k == 1 else []))]
    del gradient
    return extreme(product, start.pop(), k, tolerance=tolerance, max_products=most, rows=rows, vectors=False)


def scipy(problem: CurvatureProblem, k: int, rows: int, tolerance: float, most: int) -> Eigenpairs:
    """Pairs by ARPACK with vectors in float64, measured as the own ones are."""
    product, _ = linearise_problem(problem)
    size, spent = problem.theta.numel(), [0]

    def image(vector: np.ndarray) -> np.ndarray:
        spent[0] += 1
        return product(torch.from_numpy(vector.reshape(-1)).float()).numpy().astype(np.float64)

    start, rounds = np.random.default_rng(0).standard_normal(size), max(1, (most - rows) // max(1, rows - k))
    try:
        matrix = LinearOperator((size, size), matvec=image, dtype=np.float64)
        values, columns = eigsh(matrix, k, tol=tolerance, v0=start, ncv=rows, maxiter=rounds)
    except ArpackNoConvergence as stopped:
        values, columns = stopped.eigenvalues, stopped.eigenvectors
    order = listed(values, k, "magnitude") if len(values) else ()
    limit = accepted("magnitude", tolerance, float(np.abs(values).max(initial=0)), torch.float32)

    def vectors() -> Iterator[Tensor]:
        for index in order:
            yield nn.functional.normalize(torch.from_numpy(columns[:, index]), dim=0).float()

    return measured(product, vectors(), [True] * k, limit, spent=spent[0], empty=torch.empty(0, size))


SOLVERS = {"native": native, "eigsh": scipy}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["vit_b", "distilbert", "resnet18_gn", "wide_mlp"], default="vit_b")
    parser.add_argument("--solver", choices=list(SOLVERS), default="native")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--rows", type=int, help="vectors of the basis; by default those of landscape.hessian")
    parser.add_argument("--tolerance", type=float, default=1e-2, help="of the residual, relative to the value")
    parser.add_argument("--products", type=int, default=60, help="Hessian-vector products at most")
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    task = built(given.model, given.samples)
    print(f"{processor_line()}; {task.layout.size / 1e6:.1f} million parameters", flush=True)
    rows = default_rows(task.theta, given.k) if given.rows is None else given.rows
    begun, problem = time.process_time(), pose(task, task.theta, block=given.samples)
    pairs = SOLVERS[given.solver](problem, given.k, rows, given.tolerance, given.products)
    spent = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{given.model}, {given.solver}, k = {given.k}: {[round(value, 5) for value in pairs.values.tolist()]}")
    print(f"residuals {' '.join(f'{length:.1e}' for length in pairs.residuals.tolist())}")
    print(
        f"{pairs.products} products, {rows} rows, converged {pairs.converged.tolist()}, "
        f"{spent:.0f} CPU s, at most {peak:.2f} GiB resident"
    )


if __name__ == "__main__":
    main()
