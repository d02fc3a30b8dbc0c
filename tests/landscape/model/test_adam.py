"""Adam and its rates without torch's optimiser classes: their bits, and no compiler loaded by a method that trains."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch
from torch.optim import lr_scheduler
from torch.optim.swa_utils import SWALR

from drift.methods._learned_weights import Schedule
from landscape.model.adam import Adam


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6, 0.0])
def test_steps_have_the_bits_of_torchs_adam(dtype, scale):
    shapes, draw = ((3,), (), (2, 5), (1001,)), torch.Generator().manual_seed(0)
    first = [torch.randn(shape, generator=draw, dtype=dtype) for shape in shapes]
    theirs = [torch.nn.Parameter(each.clone()) for each in first]
    ours, rate = Adam(each.clone() for each in first), 0.01
    ours.betas = (0.5, 0.999)
    reference = torch.optim.Adam(theirs, lr=rate, betas=(0.5, 0.999))
    for _ in range(7):
        for each in theirs:
            each.grad = scale * torch.randn(each.shape, generator=draw, dtype=dtype)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        ours.step([each.grad for each in theirs], rate)
        rate *= 0.9
        assert all(torch.equal(own, other) for own, other in zip(ours.tensors, theirs, strict=True))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("halve_every", "average_after"), [(20, 6), (1, 0), (3, 130)])
def test_rates_have_the_bits_of_torchs_schedulers(average, halve_every, average_after):
    schedule = Schedule(0.013, (0.9, 0.999), halve_every, 0.05, average_after)
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=schedule.lr)
    if average:
        cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
        constant = SWALR(optimizer, swa_lr=schedule.average_lr, anneal_epochs=10, anneal_strategy="cos")
    else:
        halving = lr_scheduler.StepLR(optimizer, step_size=halve_every, gamma=0.5)
    rates = schedule.rates(average)
    for epoch in range(160):
        assert next(rates) == optimizer.param_groups[0]["lr"], epoch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the optimiser itself does not step here
            (halving if not average else constant if epoch >= average_after else cosine).step()


TRAINS = """
import sys
import tiny
from pathlib import Path
from drift.simulation.simulate import simulate
from landscape.geometry.curves import connecting_curve
from oracles import mlp_task, thetas
names = ("fedlaw", "feddf", "fedbe", "server_ft", "fedfa", "lss", "fedadam")
few = ["task.model_options.hidden=[8]"]
for name in names:
    simulate(tiny.experiment("rounds=2", f"method={name}", "task.model=mlp", *few), runs=Path(sys.argv[1]) / name)
simulate(tiny.experiment("method=feddf", "method.server_optimizer=sgd"), runs=Path(sys.argv[1]) / "sgd")
swa = ["method=fedlaw", "method.variant=swa", "method.server_epochs=9"]
simulate(tiny.experiment("rounds=1", *swa), runs=Path(sys.argv[1]))
task = mlp_task()
a, b = thetas(task, 2)
connecting_curve(task, a, b, split="test", steps=2, batch=3)
print(sorted({"torch._dynamo", "torch._inductor", "sympy"} & set(sys.modules)))
"""


@pytest.mark.seconds
def test_no_method_that_trains_on_the_server_loads_a_compiler(tmp_path):
    words, known = [sys.executable, "-c", TRAINS, str(tmp_path)], os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(words, env=known, capture_output=True, text=True, check=False)
    assert shown.stdout.splitlines()[-1:] == ["[]"], shown.stderr[-2000:]
