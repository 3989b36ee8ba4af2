"""What several tests share: an empty cache, no network, judged texts if they are there, tiny vectors and models."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Before any test module imports transformers or huggingface_hub, which read these once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for tiny models, waking threads costs more than the work
_CACHE = tempfile.TemporaryDirectory(prefix="movers-tests-")
os.environ["MOVERS_CACHE"] = _CACHE.name

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def session_cache() -> Iterator[Path]:
    """The folder that takes the place of the user's cache, for this session alone."""
    yield Path(_CACHE.name)
    _CACHE.cleanup()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MOVERS_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def judged() -> Callable[[str], list[dict[str, Any]]]:
    """Rows of a human-judged set by name."""

    def read(name: str) -> list[dict[str, Any]]:
        folder = os.environ.get("MOVERS_DATA")
        if not folder:
            pytest.skip("MOVERS_DATA is not set: it names the folder that holds human/<name>.jsonl.gz")
        path = Path(folder) / "human" / f"{name}.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"MOVERS_DATA is set, but there is no {path}")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Run code in a fresh interpreter that imports this checkout; returns what it prints."""

    def run(code: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


# ---------------------------------------------------------------------------------------------------------------------
# Tiny files of word vectors, written here byte by byte

VectorTable = Mapping[str, Sequence[float]]


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


@pytest.fixture
def vector_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a table of word vectors; a name that ends in .gz is compressed."""

    def write(table: VectorTable, form: str = "glove", name: str | None = None) -> Path:
        path = tmp_path / (name or f"tiny-{form}.{'bin' if form == 'binary' else 'txt'}")
        data = vector_bytes(table, form)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return write


# ---------------------------------------------------------------------------------------------------------------------
# Tiny transformers with random weights, and a tokenizer that cuts words into pieces

TINY_WORDS = "a the cat dog snow man sells online runs red big old sat mat on it is box ships in".split()


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


@pytest.fixture(scope="session")
def tiny_bert() -> tuple[Any, Any]:
    return tiny_model("bert"), tiny_tokenizer("bert")


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The default contextual encoder."""
    from movers import load_encoder

    return load_encoder("all-MiniLM-L6-v2", device="cpu")
