"""The own losses of models of transformers: the number that the model returns for the whole split."""

from __future__ import annotations

import pytest
import torch

import landscape

IDS = torch.randint(1, 13, (12, 6), generator=torch.Generator().manual_seed(1))
PLACES = torch.arange(12)


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers", reason="the extra hf is not installed")


def t5(transformers):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=13, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def bart(transformers):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 16}
    return transformers.BartForConditionalGeneration(transformers.BartConfig(vocab_size=13, **sizes)).eval()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [t5, bart])
def test_an_encoder_with_decoder_has_its_own_loss(made, transformers):
    model, labels = made(transformers), IDS.flip(1).clone()
    labels[::3, 4:] = -100
    with torch.no_grad():
        expected = model(input_ids=IDS, labels=labels).loss.item()
    for data in (({"input_ids": IDS}, labels), (IDS, labels), {"input_ids": IDS, "labels": labels}):
        assert landscape.loss(landscape.make_task(model, None, data), model) == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_texts_and_answers_of_many_lengths_are_padded_each_by_its_own(transformers):
    model, batches, total, count = t5(transformers), [], 0.0, 0
    for length, answer in ((6, 3), (4, 5), (6, 2)):
        ids, labels = IDS[:4, :length], IDS[4:8, :answer].contiguous()
        batches.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels})
        with torch.no_grad():
            total += model(**batches[-1]).loss.item() * labels.numel()
        count += labels.numel()
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    task = landscape.make_task(model, None, loader)
    assert landscape.loss(task, model) == pytest.approx(total / count, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("masked", [False, True])
def test_a_model_that_answers_questions_has_the_loss_of_both_ends(masked, transformers):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.BertForQuestionAnswering(transformers.BertConfig(vocab_size=13, **sizes)).eval()
    given = {"input_ids": IDS, **({"attention_mask": torch.ones_like(IDS)} if masked else {})}
    ends = {"start_positions": PLACES % 6, "end_positions": PLACES % 5}
    rows = [{name: column[place] for name, column in (given | ends).items()} for place in range(12)]
    task = landscape.make_task(model, None, torch.utils.data.DataLoader(rows, 5))
    with torch.no_grad():
        expected = model(**given, **ends).loss.item()
    assert landscape.loss(task, model) == pytest.approx(expected, rel=1e-5)
    assert landscape.hessian(task, model, k=1).converged.all()
    with pytest.raises(ValueError, match="the loss span_loss is not a mean over samples"):
        landscape.make_task(model, None, {**given, "start_positions": PLACES, "end_positions": PLACES % 5})


@pytest.mark.filterwarnings("ignore")
def test_prompt_tuning_has_its_own_loss_of_the_places_after_the_prompt(transformers):
    peft = pytest.importorskip("peft", reason="the extra hf is not installed")
    torch.manual_seed(0)
    sizes = {"n_positions": 12, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": None, "eos_token_id": None}
    base = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=13, **sizes))
    model = peft.get_peft_model(base, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)).eval()
    labels = IDS.clone()
    labels[::3, 4:] = -100
    with torch.no_grad():
        expected = model(input_ids=IDS, labels=labels).loss.item()
    task = landscape.make_task(model, None, {"input_ids": IDS, "labels": labels})
    assert landscape.loss(task, model) == pytest.approx(expected, rel=1e-5)
