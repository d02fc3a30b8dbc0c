"""Every public function that takes a model, compared with the module itself; CHECKS by name of the function."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from reference.normalised_models import (
    OTHER,
    TASK,
    THETA,
    A,
    B,
    C,
    at,
    between,
    by_magnitude,
    hessian,
    logits,
    loss,
    marked,
    slices,
    trained,
)
from reference.registry import agree

import landscape


def check_hessian(form):
    ds = landscape.hessian(TASK, form(A), k=3, tolerance=1e-6)
    agree("landscape.hessian", ds.eigenvalue, by_magnitude(hessian(), 3), relative=1e-8)
    return ds


def check_top_eigenvalues(form):
    ds = landscape.top_eigenvalues(TASK, form(A), k=1, curvature="gauss_newton", tolerance=1e-6)
    outputs = torch.autograd.functional.jacobian(lambda theta: logits(A, theta), THETA)
    probabilities = torch.softmax(logits(A, THETA), 1)
    middle = torch.diag_embed(probabilities) - probabilities[:, :, None] * probabilities[:, None]
    matrix = torch.einsum("nci,nce,nej->ij", outputs, middle, outputs) / len(outputs)
    agree("landscape.top_eigenvalues", ds.eigenvalue, by_magnitude(matrix.detach().numpy(), 1), relative=1e-8)
    return ds


def check_trace(form):
    ds = landscape.trace(TASK, form(A))
    agree("landscape.trace", ds.trace, np.trace(hessian()), relative=1e-9)
    return ds


def check_density(form):
    ds = landscape.density(TASK, form(A), steps=len(THETA), probes=3, seed=4)
    generator = torch.Generator().manual_seed(4)
    signs = (2 * torch.randint(2, (3, len(THETA)), generator=generator) - 1).double().numpy()
    agree("landscape.density", ds["mean"], np.mean(signs * (signs @ hessian())), relative=1e-6)
    agree("landscape.density", ds["mean_square"], np.mean((signs @ hessian()) ** 2), relative=1e-6)
    return ds


def check_layer_eigenvalues(form):
    ds = landscape.layer_eigenvalues(TASK, form(A), tolerance=1e-6)
    expected = [by_magnitude(hessian()[place, place], 1)[0] for place in TASK.layout.slices().values()]
    agree("landscape.layer_eigenvalues", ds.eigenvalue, expected, relative=1e-6)
    return ds


def check_minibatch_sharpness(form):
    ds = landscape.minibatch_sharpness(TASK, form(A), batch=23, tolerance=1e-6)
    agree("landscape.minibatch_sharpness", ds["median"], by_magnitude(hessian(), 1)[0], relative=1e-6)
    return ds


def check_ntk(form):
    samples = TASK.split("train")[:5]
    gradients = torch.autograd.functional.jacobian(lambda theta: logits(A, theta)[:5], THETA)
    expected = torch.einsum("nci,mci->nm", gradients, gradients) / 3
    agree("landscape.ntk", landscape.ntk(TASK, form(A), samples), expected, relative=1e-9)


def check_noise_robustness(form):
    ds = landscape.noise_robustness(TASK, form(A), mean=(0.5,), std=(0.05,), levels=(0.1,), draws=1)
    samples = TASK.split("test")
    agree(
        "landscape.noise_robustness",
        ds.accuracy,
        float((A(samples.inputs).argmax(1) == samples.targets).double().mean()),
        relative=1e-9,
    )
    return ds


def check_ball_sharpness(form):
    ds = landscape.ball_sharpness(TASK, form(A), radius=0.1, steps=1, directions=2)
    theta = THETA.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits(A, theta), TASK.split("train").targets), theta)
    step = THETA + 0.1 * gradient / gradient.norm()
    agree("landscape.ball_sharpness", ds.loss, loss(A, "train"), relative=1e-9)
    agree("landscape.ball_sharpness", ds.one_step, loss(at(step, A), "train") - loss(A, "train"), relative=1e-6)
    return ds


def check_evaluate(form):
    values = landscape.evaluate(TASK, [form(A), form(B)], np.eye(2))
    agree("landscape.evaluate", values["loss"], [loss(A), loss(B)], relative=1e-9)
    point = landscape.evaluate(TASK, [form(A), form(B)], [[0.4, 0.6]], statistics="recomputed")
    agree("landscape.evaluate", point["loss"], [loss(at(0.4 * THETA + 0.6 * OTHER, None))], relative=1e-9)


def check_loss(form):
    agree("landscape.loss", float(landscape.loss(TASK, form(A))), loss(A), relative=1e-9)


def check_step_cost(form):
    return landscape.step_cost(TASK, form(A), repeats=1)


def check_random_directions(form):
    slices("landscape.random_directions", landscape.random_directions(TASK, form(A), count=1, points=3))


def check_random_plane(form):
    slices("landscape.random_plane", landscape.random_plane(TASK, form(A), points=(2, 3)))


def check_slice_along(form):
    slices("landscape.slice_along", landscape.slice_along(form(A), OTHER, points=3, task=TASK))


def check_scaling(form):
    between("landscape.scaling", landscape.scaling(form(A), points=2, task=TASK), [A])


def check_line(form):
    between("landscape.line", landscape.line(form(A), form(B), points=4, task=TASK), [A, B])


def check_plane(form):
    between("landscape.plane", landscape.plane(form(A), form(B), form(C), points=(2, 3), task=TASK), [A, B, C])


def check_simplex(form):
    sweep = landscape.simplex([form(A), form(B), form(C)], step=0.5, task=TASK)
    ds = landscape.surface(TASK, sweep)
    agree("landscape.simplex", ds.mark_loss[:3], [loss(A), loss(B), loss(C)], relative=1e-9)
    middle = sum(TASK.layout.theta(module) for module in (A, B, C)) / 3
    agree("landscape.simplex", ds.mark_loss[3], loss(at(middle, None)), relative=1e-9)


def check_principal_plane(form):
    models = [form(trained(seed)) for seed in range(1, 5)]
    between("landscape.principal_plane", landscape.principal_plane(models, points=(2, 3), task=TASK), [A, B, C])


def check_surface(form):
    between("landscape.surface", landscape.plane(form(A), form(B), form(C), points=2, task=TASK), [A, B, C])
    ds = landscape.surface(TASK, form(A), form(B))
    agree("landscape.surface", ds.mark_loss[:2], [loss(A), loss(B)], relative=1e-9)


def check_interpolated_surface(form):
    sweep = landscape.plane(form(A), form(B), form(C), points=17, task=TASK)
    marked("landscape.interpolated_surface", landscape.interpolated_surface(TASK, sweep), [A, B, C])


def check_sampled_surface(form):
    sweep = landscape.plane(form(A), form(B), form(C), points=17, task=TASK)
    marked("landscape.sampled_surface", landscape.sampled_surface(TASK, sweep, samples=25), [A, B, C])


def check_barrier(form):
    ds = landscape.barrier(TASK, form(A), form(B), points=5)
    t = np.linspace(0, 1, 5)
    losses = np.array([loss(A), *(loss(at((1 - s) * THETA + s * OTHER, None)) for s in t[1:-1]), loss(B)])
    agree("landscape.barrier", ds.loss, losses, relative=1e-9)
    above = losses - (1 - t) * losses[0] - t * losses[-1]
    agree("landscape.barrier", ds.barrier, max(0.0, above.max()), relative=1e-9, absolute=1e-12)
    return ds


def check_pairwise_barriers(form):
    ds = landscape.pairwise_barriers(TASK, [form(A), form(B)], points=3)
    agree("landscape.pairwise_barriers", ds.mark_loss, [loss(A), loss(B)], relative=1e-9)
    halfway = loss(at((THETA + OTHER) / 2, None)) - (loss(A) + loss(B)) / 2
    agree("landscape.pairwise_barriers", ds.midpoint, [[0, halfway], [halfway, 0]], relative=1e-9)
    return ds


def check_simplex_losses(form):
    ds = landscape.simplex_losses(TASK, [form(A), form(B)], count=3, seed=1)
    generator = torch.Generator().manual_seed(1)
    shares = -torch.rand(3, 2, generator=generator, dtype=torch.float64).log()
    shares /= shares.sum(1, keepdim=True)
    expected = [loss(at(row @ torch.stack([THETA, OTHER]), None)) for row in shares]
    agree("landscape.simplex_losses", ds.loss, expected, relative=1e-9)
    return ds


def check_connecting_curve(form):
    curve = landscape.connecting_curve(TASK, form(A), form(B), steps=3, batch=8)
    agree(
        "landscape.connecting_curve",
        curve.buffers,
        torch.stack([TASK.layout.buffer_vector(m) for m in (A, B)]),
        relative=0,
    )
    return check_along(form, curve)


def check_along(form, curve=None):
    curve = curve or landscape.connecting_curve(TASK, form(A), form(B), steps=0)
    ds = landscape.along(TASK, curve, points=3)
    middle = loss(at(torch.from_numpy(curve.coefficients(0.5)[0]) @ curve.points, None))
    agree("landscape.along", ds.loss, [loss(A), middle, loss(B)], relative=1e-9)
    straight = loss(at((THETA + OTHER) / 2, None))
    agree("landscape.along", ds.straight_loss, [loss(A), straight, loss(B)], relative=1e-9)
    return ds


CHECKS = {name.removeprefix("check_"): check for name, check in dict(globals()).items() if name.startswith("check_")}
