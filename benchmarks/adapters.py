"""What do five ways to average low-rank adapters, and full fine-tuning, reach from one pre-trained model?

    python -m benchmarks.adapters train [MODEL]   pre-train, fine-tune and measure (minutes; needs pip install '.[hf]')
    python -m benchmarks.adapters table           the table of docs/howto-adapters.md, from the stored numbers

A decoder (GPT-2's form, next byte) and an encoder (RoFormer's form, masked bytes) are pre-trained on the sources of
some installed packages. Other packages, a client each, fine-tune them in rounds: by the variants of `fedlora`, and by
FedAvg of the whole model, three seeds each. The seed decides the first adapters and the minibatches; the pre-trained
model is one for all. RoFormer is BERT with rotary positions: with BERT's learned ones, attention does not find the
neighbours in this many steps, and the model predicts the most frequent byte. Recorded by round are loss and accuracy on
windows that nobody trains on, and `drift.product_gap`. Numbers go to docs/results/adapters.json, with the digest of the
texts: package versions differ between machines. The gaps of the decoder go to figures/pictures/stored/product-gap.nc.
Runs are stored in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

import drift
from drift.analyses.over_seeds import estimate
from landscape.datasets._dataset import Dataset, Groups, fingerprint
from landscape.model.products import with_residuals
from landscape.model.samples import Samples
from landscape.sweep.processor import processor_line

ROOT = Path(__file__).resolve().parents[1]
STORED, NUMBERS = ROOT / "docs/results/adapters.json", ROOT / "figures/pictures/stored/product-gap.nc"

BASE = ("numpy", "pandas", "scipy", "xarray")
CLIENTS = ("h5py", "plotly", "pydantic", "rich")
LENGTH, WINDOWS = 64, {"base": 3000, "client": 96}
"""Bytes of a text, and texts of a package."""
MASK, MASKED = 256, 0.15
"""The token of a masked byte, and the share of bytes that are masked."""
MODELS = {"decoder": ["c_attn"], "encoder": ["query", "value"]}
"""Adapted layers by model: those of the attention that make queries and values, in GPT-2's form also keys."""

WIDTH, LAYERS, HEADS = 208, 4, 4
PRETRAINING = {
    "decoder": {"steps": 250, "batch": 12, "rate": 2e-3, "rise": 0.3},
    "encoder": {"steps": 600, "batch": 16, "rate": 1e-3, "rise": 0.1},
}
"""By AdamW; the rate rises linearly for a share of the steps, then falls linearly."""

VARIANTS = {"fedit": "FedIT", "ffa": "FFA-LoRA", "rolora": "RoLoRA", "fedex": "FedEx-LoRA", "flora": "FLoRA"}
FULL = "full"
SEEDS, ROUNDS, RANK = (0, 1, 2), 4, 4
LOCAL = {"optimizer": "adam", "steps": 3, "batch": 8}
RATES = {"lora": 1e-2, FULL: 3e-4}
"""Of the encoder the best of three, a factor of about 3 between them, by FedIT and by FedAvg with seed 3."""


def windows(package: str, count: int) -> Tensor:
    """Texts (count, LENGTH + 1) of a package, at equal distances in its sorted sources."""
    (folder,) = find_spec(package).submodule_search_locations
    files = sorted(path for path in Path(folder).rglob("*.py") if "tests" not in path.parts)
    text = torch.frombuffer(bytearray(b"".join(path.read_bytes() for path in files)), dtype=torch.uint8)
    return text.unfold(0, LENGTH + 1, len(text) // (count + 1))[:count].long()


def task_of(ids: Tensor, kind: str, source: torch.Generator) -> Samples:
    """Inputs and labels: of the decoder the next bytes, of the encoder those that the inputs mask."""
    if kind == "decoder":
        return Samples(ids[:, :-1], ids[:, 1:])
    ids, hidden = ids[:, :-1], torch.rand(len(ids), LENGTH, generator=source) < MASKED
    return Samples(ids.masked_fill(hidden, MASK), ids.masked_fill(~hidden, -100))


def packages(folder: Path | None = None, *, kind: str = "decoder") -> Dataset:
    """The clients' texts; every sixth window is a test sample."""
    count, source = WINDOWS["client"], torch.Generator().manual_seed(0)
    samples = task_of(torch.cat([windows(name, count) for name in CLIENTS]), kind, source)
    user, test = torch.arange(len(samples)) // count, torch.arange(len(samples)) % 6 == 0
    splits = [Samples(samples.inputs[rows], samples.targets[rows]) for rows in (~test, test)]
    groups = {"user": Groups(CLIENTS, user[~test], user[test])}
    about = tuple(map(str, range(MASK + 1))), (LENGTH,), fingerprint(*splits, groups)
    return Dataset(kind, *splits, *about, scale="default", levels=None, groups=groups, loss="tokens")


class Model(nn.Module):
    """Logits (n, T, V) of tokens (n, T), by a model of transformers whose attention has second derivatives."""

    def __init__(self, shape: Any, classes: int, kind: str = "decoder", base: str = "", lora: int = 0) -> None:
        super().__init__()
        import transformers

        common: Any = {"vocab_size": classes, "attn_implementation": "eager"}
        common |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
        if kind == "decoder":
            sizes = {"n_positions": shape[0], "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
            known: Any = transformers.GPT2LMHeadModel
            new: Any = transformers.GPT2Config(**common, **sizes)
        else:
            sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
            sizes |= {"max_position_embeddings": shape[0], "intermediate_size": 4 * WIDTH}
            sizes |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
            known, new = transformers.RoFormerForMaskedLM, transformers.RoFormerConfig(**common, **sizes)
        self.model = known.from_pretrained(base, attn_implementation="eager") if base else known(new)
        for name, value in self.model.named_parameters():
            value.requires_grad_("embed_positions" not in name)  # RoFormer's are constants, which reading it forgets
        if lora:
            import peft

            sizes = {"r": lora, "lora_alpha": 2 * lora, "fan_in_fan_out": kind == "decoder"}
            self.model = peft.get_peft_model(self.model, peft.LoraConfig(**sizes, target_modules=MODELS[kind]))
            with_residuals(self)

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(input_ids=ids).logits


def pretrain(kind: str, folder: Path) -> dict[str, Any]:
    """Train a base on the packages of BASE into a folder; its size, and its scores on the clients' texts."""
    torch.manual_seed(0)
    model, source = Model((LENGTH,), MASK + 1, kind).train(), torch.Generator().manual_seed(1)
    ids, how = torch.cat([windows(name, WINDOWS["base"]) for name in BASE]), PRETRAINING[kind]
    rate, steps, rise = how["rate"], int(how["steps"]), how["rise"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps, pct_start=rise, anneal_strategy="linear")
    for _ in range(steps):
        batch = task_of(ids[torch.randint(len(ids), (int(how["batch"]),), generator=source)], kind, source)
        loss = nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.model.save_pretrained(folder)
    texts, read = packages(kind=kind), Samples(ids, ids)
    with torch.no_grad():
        outputs, labels = model.eval()(texts.test.inputs).flatten(0, 1), texts.test.targets.flatten()
    digests = {"digest": texts.fingerprint, "base_digest": fingerprint(read, read[:0])}
    parameters = sum(value.numel() for value in model.parameters())
    return {**digests, "parameters": parameters, "frequencies": frequencies(ids, labels), **scores(outputs, labels)}


def scores(outputs: Tensor, labels: Tensor) -> dict[str, float | None]:
    """Mean loss and accuracy of logits (n, V) where a label (n,) is not negative."""
    loss, right = nn.functional.cross_entropy(outputs, labels), (outputs.argmax(1) == labels)[labels >= 0]
    return {"loss": _short(float(loss)), "accuracy": _short(float(right.float().mean()))}


def frequencies(ids: Tensor, labels: Tensor) -> dict[str, float | None]:
    """Scores of a model that knows how often each byte is in the texts of the base, and nothing else."""
    counts = ids.flatten().bincount(minlength=MASK) + 1.0
    return scores((counts / counts.sum()).log().expand(len(labels), -1), labels)


def tune(kind: str, variant: str, seed: int, base: Path, folder: Path) -> drift.Run:
    """A run of rounds from the base."""
    full = variant == FULL
    options = {"kind": kind, "base": str(base), "lora": 0 if full else RANK}
    task = {"dataset": "benchmarks.adapters:packages", "dataset_options": {"kind": kind}}
    experiment = drift.Experiment(
        rounds=ROUNDS,
        seed=seed,
        task={**task, "model": "benchmarks.adapters:Model", "model_options": options},
        clients={"number": len(CLIENTS), "per_round": len(CLIENTS), "partition": "users"},
        local={**LOCAL, "lr": RATES[FULL if full else "lora"]},
        method="fedavg" if full else {"name": "fedlora", "variant": variant},
        keep={"clients": "none" if full else "all"},
    )
    return drift.simulate(experiment, runs=folder)


def measured(run: drift.Run, variant: str) -> dict[str, Any]:
    """Loss and accuracy after every round, and the gap of the products by round."""
    row: dict[str, Any] = {"variant": variant, "seed": run.seed, "trained": run.layout.size}
    for name in ("loss", "accuracy"):
        row[name] = [_short(run.round(index).metrics[name]) for index in run.rounds()]
    if variant != FULL:
        ds = run.cached(drift.product_gap)
        row |= {name: [_short(value) for value in ds[name].values] for name in ("relative", "of_step", "missed")}
    return row


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def train(kind: str) -> dict[str, Any]:
    """Every run of a model, measured."""
    from figures.pictures.draw_files import draw

    begun, rows, runs = time.process_time(), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        about = pretrain(kind, folder / "base")
        for seed, variant in product(SEEDS, (*VARIANTS, FULL)):
            runs.append(tune(kind, variant, seed, folder / "base", folder / "runs"))
            rows.append(measured(runs[-1], variant))
            print(json.dumps(rows[-1]), f"{time.process_time() - begun:.0f} s", flush=True)
        if kind == "decoder":
            adapted = [run for run in runs if run.method.name() == "fedlora"]
            paths = draw("product-gap", adapted, folder / "figures", formats=("png",))
            shutil.copyfile(next(path for path in paths if path.suffix == ".nc"), NUMBERS)
    return {kind: about | {"seconds": round(time.process_time() - begun), "runs": rows}}


COLUMNS = ("trained by", "loss, nats", "accuracy, %", "loss minus FedIT's", "gap/product, %", "gap/step, %")


def table(content: dict[str, Any]) -> str:
    """By model and variant: loss and accuracy after the last round, and gaps, means of the rounds; over the seeds."""
    lines = [f"|{'|'.join(('model', *COLUMNS))}|", "|---" * (1 + len(COLUMNS)) + "|"]
    for kind, about in content["models"].items():
        rows = {(row["variant"], row["seed"]): row for row in about["runs"]}
        for label, own in (("frequencies", about["frequencies"]), ("pre-training", about)):
            lines.append(f"|{kind}|{label}|{own['loss']:.3f}|{100 * own['accuracy']:.1f}||||")
            kind = ""
        for variant, label in (VARIANTS | {FULL: "all weights, FedAvg"}).items():
            own = [rows[variant, seed] for seed in SEEDS]
            cells = [_cell([row["loss"][-1] for row in own]), _cell([100 * row["accuracy"][-1] for row in own], 1)]
            ahead = [row["loss"][-1] - rows["fedit", row["seed"]]["loss"][-1] for row in own]
            cells.append("" if variant == "fedit" else _cell(ahead, sign="+"))
            for name in ("relative", "of_step"):
                cells.append(_cell([100 * np.mean(row[name]) for row in own], 1) if name in own[0] else "")
            lines.append(f"||{'|'.join((label, *cells))}|")
    return "\n".join(lines)


def _cell(values: list[float], digits: int = 3, sign: str = "") -> str:
    """Mean and half of Student's 95 % interval."""
    value = estimate(values)
    half = "" if len(set(values)) == 1 else f"±{value.high - value.value:.{digits}f}"
    return f"{value.value:{sign}.{digits}f}{half}"


def main() -> None:
    """Train and measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("train").add_argument("model", nargs="?", choices=tuple(MODELS))
    commands.add_parser("table")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for kind in () if asked.command == "table" else (asked.model,) if asked.model else MODELS:
        fresh = train(kind)
        content = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {"models": {}}
        versions = {name: version(name) for name in ("torch", "transformers", "peft", *BASE, *CLIENTS)}
        content = {"processor": processor_line(), "versions": versions, "models": content["models"] | fresh}
        STORED.write_text(re.sub(r'(?=\{"variant")', "\n", json.dumps(content)) + "\n", encoding="utf-8")
    content = json.loads(STORED.read_text(encoding="utf-8"))
    print(table(content))


if __name__ == "__main__":
    main()
