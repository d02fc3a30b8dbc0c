"""Checkpoints of transformers and peft: the loss at a file is that of the model which wrote it."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

import drift
import landscape
from drift.importers.bare import record_checkpoints
from drift.importers.path_patterns import Patterns
from drift.record.recorder import Recorder

IDS = torch.randint(0, 13, (6, 5), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def peft(transformers):
    return pytest.importorskip("peft", reason="the extra hf is not installed")


def gpt2(transformers, seed: int = 0):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=13, n_positions=8, n_embd=8, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None
    )
    return transformers.GPT2LMHeadModel(config).eval()


def llama(transformers, seed: int = 0):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "hidden_size": 8, "intermediate_size": 8}
    config = transformers.LlamaConfig(**sizes, num_hidden_layers=1, num_attention_heads=2)
    return transformers.LlamaForCausalLM(config).eval()


def tokens(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """One value per text, as every text has five tokens."""
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape).mean(1)


def task_of(model):
    return landscape.make_task(model, tokens, (IDS, IDS))


def loss(task, model) -> float:
    return landscape.evaluate(task, [model], [[1.0]])["loss"].item()


def own(model) -> float:
    with torch.no_grad():
        return tokens(model(IDS).logits, IDS).mean().item()


def adapted(peft, base, seed: int, **options):
    torch.manual_seed(seed)
    config = {"r": 2, "target_modules": ["c_attn"], "fan_in_fan_out": True} | options
    model = peft.get_peft_model(base, peft.LoraConfig(**config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


KINDS = {
    "plain": {},
    "dora": {"use_dora": True},
    "rslora": {"use_rslora": True, "lora_alpha": 3},
    "head": {"modules_to_save": ["lm_head"]},
    "embedding": {"target_modules": ["wte"], "fan_in_fan_out": False},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_is_read_from_folder_file_and_state_dict(kind, transformers, peft, tmp_path):
    model = adapted(peft, gpt2(transformers), 1, **KINDS[kind])
    task = task_of(adapted(peft, gpt2(transformers), 2, **KINDS[kind]))
    model.save_pretrained(tmp_path / "lora")
    torch.save(peft.get_peft_model_state_dict(model), tmp_path / "adapter_model.bin")
    given = [
        *(tmp_path / "lora", tmp_path / "lora" / "adapter_model.safetensors", tmp_path / "adapter_model.bin"),
        *(peft.get_peft_model_state_dict(model), model.state_dict(), model),
    ]
    for one in given:
        assert loss(task, one) == pytest.approx(own(model), rel=1e-5)
    assert abs(loss(task, task.theta) - own(model)) > 1e-4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", ["module", "long", "short"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_recorder_takes_what_peft_saves(kind, first, transformers, peft, tmp_path):
    models = [adapted(peft, gpt2(transformers), seed, **KINDS[kind]) for seed in range(4)]
    task = task_of(adapted(peft, gpt2(transformers), 99, **KINDS[kind]))
    short = [peft.get_peft_model_state_dict(model) for model in models]
    trained = {name: value for name, value in models[0].named_parameters() if value.requires_grad}
    recorder = Recorder(tmp_path / "run", models[0] if first == "module" else None)
    start = {"module": short[0], "long": trained, "short": short[0]}[first]
    recorder.round(start=start, clients={0: (short[1], 3), 5: (short[2], 4)}, end=short[3])
    record = drift.open(tmp_path / "run", task=task).round(0)
    assert record.extras.get("partial") is None
    for theta, model in zip((record.start, *record.clients, record.end), models, strict=True):
        assert torch.equal(torch.as_tensor(theta), task.layout.theta(model))
    assert loss(drift.open(tmp_path / "run", task=task).task, record.end) == pytest.approx(own(models[3]), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_of_other_settings_or_another_base_is_refused(transformers, peft, tmp_path):
    task = task_of(adapted(peft, gpt2(transformers), 2))
    adapted(peft, gpt2(transformers), 1, use_rslora=True).save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="use_rslora = True, the adapter of the task's model False"):
        loss(task, tmp_path / "other")
    with pytest.raises(ValueError, match="which is not trained in the task's model, has other values"):
        loss(task, adapted(peft, gpt2(transformers, 5), 1))
    adapted(peft, gpt2(transformers), 1, r=3).save_pretrained(tmp_path / "wide")
    with pytest.raises(ValueError, match=r"r = 3, the adapter of the task's model 2"):
        loss(task, tmp_path / "wide")


@pytest.mark.filterwarnings("ignore")
def test_a_model_in_memory_with_other_settings_of_its_adapter_is_refused(transformers, peft, tmp_path):
    task = task_of(adapted(peft, gpt2(transformers), 2, lora_alpha=8))

    def switched(change):
        model = adapted(peft, gpt2(transformers), 1, lora_alpha=8)
        model.add_adapter("b", peft.LoraConfig(r=2, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True))
        change(model)
        return model

    def scaled(model):
        model.base_model.model.transformer.h[1].attn.c_attn.set_scale("default", 7)

    others = {
        "lora_alpha = 64, the adapter of the task's model 8": adapted(peft, gpt2(transformers), 1, lora_alpha=64),
        "use_rslora = True": adapted(peft, gpt2(transformers), 1, lora_alpha=8, use_rslora=True),
        r"alpha_pattern = \{'c_attn': 3\}": adapted(
            peft, gpt2(transformers), 1, lora_alpha=8, alpha_pattern={"c_attn": 3}
        ),
        "active adapter = 'b', the adapter of the task's model 'default'": switched(
            lambda model: model.set_adapter("b")
        ),
        "disabled = True": switched(lambda model: model.base_model.disable_adapter_layers()),
        "scaling of layer 1": switched(scaled),
    }
    for message, model in others.items():
        with pytest.raises(ValueError, match=f"the model given has {message}"):
            loss(task, model)
        with pytest.raises(ValueError, match=f"the model given has {message}"):
            loss(task, torch.nn.DataParallel(model))
    same = switched(lambda model: None)
    del same.peft_config["b"]
    torch.save(same, tmp_path / "whole.pt")
    with pytest.raises(ValueError, match=r"whole\.pt: it has a model of peft saved whole, .* save_pretrained"):
        loss(task, tmp_path / "whole.pt")
    with pytest.raises(ValueError, match="the model given is an adapter, and the task's model has none"):
        loss(task_of(gpt2(transformers)), same)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["PrefixTuningConfig", "PromptTuningConfig"])
def test_prefixes_and_prompts_are_read_from_folder_and_dict(kind, transformers, peft, tmp_path):
    def prompted(seed):
        base = gpt2(transformers)
        torch.manual_seed(seed)
        config = getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=2)
        return peft.get_peft_model(base, config).eval()

    model, ids = prompted(1), IDS
    task = landscape.make_task(prompted(2), None, ({"input_ids": ids}, ids))
    model.save_pretrained(tmp_path / "p")
    with torch.no_grad():
        expected = model(input_ids=ids, labels=ids).loss.item()
    for given in (tmp_path / "p", peft.get_peft_model_state_dict(model), model):
        assert landscape.loss(task, given) == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_the_folder_of_a_named_adapter_is_found_and_an_adapter_is_none_of_the_base_model(transformers, peft, tmp_path):
    def named(seed):
        base = gpt2(transformers)
        torch.manual_seed(seed)
        options = {"r": 2, "target_modules": ["c_attn"], "fan_in_fan_out": True, "init_lora_weights": False}
        return peft.get_peft_model(base, peft.LoraConfig(**options), adapter_name="fed").eval()

    model, task = named(1), task_of(named(2))
    model.save_pretrained(tmp_path / "lo")
    for given in (tmp_path / "lo", tmp_path / "lo" / "fed"):
        assert loss(task, given) == pytest.approx(own(model), rel=1e-5)
    base = task_of(gpt2(transformers))
    for given in (tmp_path / "lo", model):
        with pytest.raises(ValueError, match=r"is an adapter, and the task's model has none\. Make the task of Peft"):
            loss(base, given)
    with pytest.raises(ValueError, match=r"It is an adapter: make the task of the PeftModel\."):
        loss(base, peft.get_peft_model_state_dict(model, adapter_name="fed"))
    model.save_pretrained(tmp_path / "two" / "a")
    (tmp_path / "two" / "a" / "fed").rename(tmp_path / "two" / "b")
    named(3).save_pretrained(tmp_path / "two")
    with pytest.raises(LookupError, match="it has b/, fed/; give the checkpoint file itself, or its folder"):
        loss(task, tmp_path / "two")


@pytest.mark.filterwarnings("ignore")
def test_rounds_of_adapter_folders_are_imported(transformers, peft, tmp_path):
    models = {}
    for index in range(2):
        for place, name in enumerate(("global", "client0", "client1")):
            models[index, name] = model = adapted(peft, gpt2(transformers), 10 * index + place)
            model.save_pretrained(tmp_path / "ck" / f"round{index}" / name)
    task = task_of(adapted(peft, gpt2(transformers), 99))
    run = record_checkpoints(
        tmp_path / "ck", Patterns("round{round}/client{client}"), task=task, runs=tmp_path / "runs"
    )
    assert torch.equal(run.round(1).clients[1], task.layout.theta(models[1, "client1"]))
    assert run.round(1).metrics["loss"] == pytest.approx(own(models[1, "global"]), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [gpt2, llama])
def test_folders_of_save_pretrained_whole_and_in_parts_are_read(make, transformers, tmp_path):
    model, task = make(transformers, 1), task_of(make(transformers, 2))
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "parts", max_shard_size="1KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    state = model.state_dict()
    (tmp_path / "bin").mkdir()
    table = {name: f"pytorch_model-{place % 3}.bin" for place, name in enumerate(state)}
    for file in set(table.values()):
        torch.save({name: state[name] for name in state if table[name] == file}, tmp_path / "bin" / file)
    (tmp_path / "bin" / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": table}))
    for given in (tmp_path / "whole", tmp_path / "parts", tmp_path / "bin", state, model):
        assert loss(task, given) == pytest.approx(own(model), rel=1e-5)
    body = {name.partition(".")[2]: value for name, value in state.items() if not name.startswith("lm_head")}
    if make is gpt2:  # its head is tied, and the hub has its files without "transformer."
        torch.save(body, tmp_path / "body.bin")
        assert loss(task, tmp_path / "body.bin") == pytest.approx(own(model), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_in_bfloat16_is_computed_in_float32(transformers, tmp_path):
    model = llama(transformers, 1).bfloat16()
    model.save_pretrained(tmp_path / "half")
    single = llama(transformers, 1).bfloat16().float()
    assert loss(task_of(model), tmp_path / "half") == pytest.approx(own(single), rel=1e-5)
