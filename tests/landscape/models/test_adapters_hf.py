"""Adapters of peft in products, and out again in peft's format."""

from __future__ import annotations

import adapted
import pytest
import torch

import drift
import landscape
from drift.record.recorder import Recorder
from drift.runs.export_model import save_transformers, state_dict
from landscape.model.products import with_residuals

IDS = torch.randint(0, 13, (6, 5), generator=torch.Generator().manual_seed(1))

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Input and output embeddings are no longer tied:UserWarning"),  # of what goes out
]

KINDS = {
    "linear": {"target_modules": ["c_attn"], "fan_in_fan_out": True, "lora_alpha": 16},
    "rslora": {"target_modules": ["c_attn", "c_fc"], "fan_in_fan_out": True, "use_rslora": True},
    "tied embedding": {"target_modules": ["wte"]},
    "tied adapters": {"target_modules": ["wte", "lm_head"], "ensure_weight_tying": True},
    "head": {"target_modules": ["c_attn"], "fan_in_fan_out": True, "modules_to_save": ["ln_f"]},
}


def base():
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
    torch.manual_seed(0)
    sizes = {"vocab_size": 13, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)).eval()


def lora(**options):
    peft = pytest.importorskip("peft", reason="the extra hf is not installed")
    net = base()
    torch.manual_seed(1)
    model = peft.get_peft_model(net, peft.LoraConfig(r=2, **options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_the_merged_model_and_a_twin_has_distance_zero(kind):
    model = lora(**KINDS[kind])
    task = landscape.make_task(model, None, (IDS, IDS))
    view = landscape.products(task)
    a = view.model(model)
    assert landscape.loss(view.task, a) == pytest.approx(landscape.loss(task, model), rel=1e-6)
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(view.task.outputs(a, "test"), model(IDS).logits, **close)
    if not kind.startswith("tied"):  # whose factors have other names, and which peft merges into the output layer too
        b = view.model(adapted.twin(task.model, task.theta).float())
        assert (a - b).norm() < 1e-6 * a.norm()
        merged = model.merge_and_unload().eval()
        torch.testing.assert_close(view.task.outputs(a, "test"), merged(IDS).logits, **close)


@pytest.mark.parametrize("kind", ["linear", "rslora", "tied embedding", "head"])
@pytest.mark.parametrize("residual", [False, True])
def test_an_adapter_goes_out_in_the_format_of_peft_and_changed_weights_go_out_merged(residual, kind, tmp_path):
    model = lora(**KINDS[kind])
    task = landscape.make_task(with_residuals(model) if residual else model, None, (IDS, IDS))
    recorder = Recorder(tmp_path / "run", task.model)
    end = {
        name: value + 0.1 if any(word in name for word in ("lora", "residual", "to_save")) else value
        for name, value in task.model.state_dict().items()
    }
    recorder.round(start=task.model.state_dict(), clients={0: (end, 1)}, end=end)
    run = drift.open(tmp_path / "run", task=task)
    logits = run.task.outputs(run.round(0).end, "test")
    save_transformers(run, state_dict(run), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    if residual:
        import transformers

        back = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "out")
        assert "adapter_config.json" not in names
    else:
        import peft

        back = peft.PeftModel.from_pretrained(base(), tmp_path / "out")
        assert {"adapter_config.json", "adapter_model.safetensors"} <= names
        assert landscape.loss(task, tmp_path / "out") == pytest.approx(landscape.loss(task, run.round(0).end), rel=1e-6)
    torch.testing.assert_close(back.eval()(IDS).logits, logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(run.task.outputs(run.round(0).end, "test"), logits)  # what was written changed nothing
