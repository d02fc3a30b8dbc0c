"""Surveys of the explorer that are waited for, and the losses that they should have."""

from __future__ import annotations

import threading

import torch

from drift.analyses.landscapes.named_models import named_models
from figures.explore.plane.surveys import Survey
from landscape.sweep.evaluate import evaluate


def surveyed(jobs, run, grid, **options):
    """The survey once it has ended, and the shapes that it showed."""
    event, shapes = threading.Event(), []

    def change(survey):
        shapes.append(None if survey.surface is None else survey.surface.loss.shape)
        if survey.ended:
            event.set()

    survey = Survey(jobs, run, grid, on_change=change, **options)
    assert event.wait(60)
    return survey, shapes


def loss_at(run, name, split="test"):
    model = named_models(run, 1, [name]).models
    return float(evaluate(run.task, model, torch.ones(1, 1, dtype=torch.float64), split=split)["loss"][0])
