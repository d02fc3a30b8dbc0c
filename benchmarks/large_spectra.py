"""Largest Hessian eigenvalues of a transformer of 66 or 86 million random parameters: time and memory.

    python -m benchmarks.large_spectra [--model vit_b] [--samples 2] [--k 5] [--products 60]

vit_b has the sizes of ViT-B/16 (12 layers of width 768) on images of 96 x 96, distilbert those of DistilBERT (6 layers,
30,522 words) on texts of 32 words. Prints the processor, CPU seconds, products and the largest resident memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import torch
from torch import Tensor, nn

from landscape.curvature.hessian import top_eigenvalues
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["vit_b", "distilbert"], default="vit_b")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--products", type=int, default=60, help="Hessian-vector products at most")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    count = arguments.samples
    if arguments.model == "vit_b":
        model, inputs = Transformer(nn.Conv2d(3, 768, 16, 16), 12, 36, 1000), torch.randn(count, 3, 96, 96)
    else:
        model, inputs = Transformer(nn.Embedding(30_522, 768), 6, 32, 2), torch.randint(30_522, (count, 32))
    task = Task(model.eval(), {"train": Samples(inputs, torch.randint(2, (count,)))})
    print(f"{processor_line()}; {task.layout.size / 1e6:.1f} million parameters", flush=True)
    begun, most = time.process_time(), arguments.products
    ds = top_eigenvalues(task, task.theta, arguments.k, tolerance=1e-2, max_products=most, block=count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    residuals = " ".join(f"{value:.1e}" for value in ds.residual.values)
    print(f"values {ds.eigenvalue.values.round(5)}, residuals {residuals}")
    print(
        f"{ds.attrs['products']} products, converged {ds.converged.values.tolist()}, "
        f"{time.process_time() - begun:.0f} CPU s, at most {peak:.2f} GB resident"
    )


if __name__ == "__main__":
    main()
