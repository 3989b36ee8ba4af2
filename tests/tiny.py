"""Tiny vectors, tokenizers and transformers, made for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
VectorTable = Mapping[str, Sequence[float]]
TINY_WORDS = "a the cat dog snow man sells online runs red big old sat mat on it is box ships in".split()


def tiny_table(words: Sequence[str], dimension: int = 4, seed: int = 7) -> dict[str, list[float]]:
    """Seeded float32 vectors."""
    rows = np.random.default_rng(seed).normal(size=(len(words), dimension)).astype(np.float32)
    return dict(zip(words, rows.tolist(), strict=True))


def vector_bytes(table: VectorTable, form: str) -> bytes:
    """A file's content: "glove" (no header), "word2vec" (header), "fasttext" (header, trailing blanks) or "binary"."""
    dimension = len(next(iter(table.values())))
    header = f"{len(table)} {dimension}\n".encode()
    if form == "binary":
        return header + b"".join(
            word.encode() + b" " + struct.pack(f"<{dimension}f", *row) + b"\n" for word, row in table.items()
        )
    end = " \n" if form == "fasttext" else "\n"
    lines = "".join(f"{word} {' '.join(repr(float(value)) for value in row)}{end}" for word, row in table.items())
    return lines.encode() if form == "glove" else header + lines.encode()


def tiny_tokenizer(kind: str = "bert", max_length: int = 10**30) -> Any:
    """A fast word-piece tokenizer: known words, then letters; `kind` decides the special tokens around a text."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    first, last, pad = {"bert": ("[CLS]", "[SEP]", "[PAD]"), "roberta": ("<s>", "</s>", "<pad>")}.get(
        kind, ("<s>", "</s>", "<pad>")
    )
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    # Roberta's padding has id 1, so that its positions begin at 2.
    specials = [first, pad, last, "[UNK]"] if kind == "roberta" else [pad, first, last, "[UNK]"]
    marks = [*".,!?'", *"0123456789"]
    vocabulary = dict.fromkeys([*specials, *marks, *TINY_WORDS, *letters, *(f"##{letter}" for letter in letters)])
    numbers = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    template = f"$A {last}" if kind == "t5" else f"{first} $A {last}"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(first, numbers[first]), (last, numbers[last])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token=pad, model_max_length=max_length
    )


def tiny_model(kind: str = "bert", positions: int = 32, layers: int = 6, seed: int = 3) -> Any:
    """A transformer of 16 dimensions with seeded weights."""
    import torch
    import transformers

    torch.manual_seed(seed)
    size = len(tiny_tokenizer(kind))
    if kind == "t5":
        config = transformers.T5Config(
            vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=layers, num_heads=2, decoder_start_token_id=0
        )
        return transformers.T5Model(config).eval()
    shape = {
        "vocab_size": size,
        "hidden_size": 16,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "initializer_range": 0.5,  # far enough from zero for context to show
    }
    if kind == "roberta":
        config = transformers.RobertaConfig(max_position_embeddings=positions, pad_token_id=1, **shape)
        return transformers.RobertaModel(config, add_pooling_layer=False).eval()
    config = transformers.BertConfig(max_position_embeddings=positions, pad_token_id=0, **shape)
    return transformers.BertModel(config, add_pooling_layer=False).eval()


class Passes:
    """The number of texts (or windows) in each forward pass of a model from now on."""

    def __init__(self, model: Any) -> None:
        self.sizes: list[int] = []
        model.register_forward_pre_hook(
            lambda module, arguments, keywords: self.sizes.append(len(keywords["input_ids"])), with_kwargs=True
        )
