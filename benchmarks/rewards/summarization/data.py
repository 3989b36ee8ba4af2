"""News articles with summaries as numbers: words of the vocabulary, and words that only the article has."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from movers import load_encoder
from movers.encoders.static import StaticEncoder
from movers.io import read_records

sys.path.insert(0, str(Path(__file__).parents[2]))
from rewards.summarization.network import END, UNKNOWN

SETS = ("train_cnndm", "train_bbc_lead")
_WORD = re.compile(r"\w+(?:[-'’.]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Article:
    """A document and its summary, in lower-case tokens."""

    document: list[str]
    summary: list[str]


@dataclass(frozen=True)
class Batch:
    """Documents (B, S), summaries as ids, and each document's own words after the vocabulary."""

    ids: Tensor
    lengths: Tensor
    targets: list[list[int]]
    new_words: list[list[str]]

    @property
    def extra(self) -> int:
        return max(map(len, self.new_words))


def words_of(text: str) -> list[str]:
    """
    >>> words_of("The BBC's report, 1.5 pages.")
    ['the', "bbc's", 'report', ',', '1.5', 'pages', '.']
    """
    return _WORD.findall(text.lower())


def text_of(words: Sequence[str]) -> str:
    """
    >>> text_of(["snow", ",", "again", "."])
    'snow, again.'
    """
    return re.sub(r" ([.,;:!?%)])", r"\1", " ".join(words))


def read(folder: Path, longest_document: int, longest_summary: int) -> dict[str, list[Article]]:
    """Articles for training, validation (200) and test (200), the same for every seed; beginnings of documents."""
    rows = [row for name in SETS for row in read_records(folder / f"{name}.jsonl.gz")]
    rows.sort(key=lambda row: hashlib.sha256(str(row["source"]).encode()).hexdigest())
    articles = [
        Article(words_of(str(row["source"]))[:longest_document], words_of(str(row["summary"]))[:longest_summary])
        for row in rows
    ]
    articles = [article for article in articles if len(article.document) >= 20 and len(article.summary) >= 5]
    return {"test": articles[:200], "validation": articles[200:400], "train": articles[400:]}


class Vocabulary:
    """The most frequent words of the training part, with vectors to begin with."""

    def __init__(self, articles: Sequence[Article], size: int) -> None:
        counts = Counter(word for article in articles for word in (*article.document, *article.summary))
        self.words = ["<pad>", "<unknown>", "<begin>", "<end>"] + [word for word, _ in counts.most_common(size)]
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def vectors(self, dimensions: int) -> Tensor:
        """Static vectors of the words, reduced to their principal components (V, dimensions)."""
        encoder = load_encoder("wordllama")
        assert isinstance(encoder, StaticEncoder)
        vectors, _ = encoder.vectors(self.words)
        centred = np.asarray(vectors, dtype=np.float64) - vectors.mean(axis=0)
        _, _, axes = np.linalg.svd(centred, full_matrices=False)
        reduced = centred @ axes[:dimensions].T
        reduced *= 0.1 / reduced.std()
        reduced[0] = 0.0
        return torch.tensor(reduced, dtype=torch.float32)

    def batch(self, articles: Sequence[Article]) -> Batch:
        new_words: list[list[str]] = []
        rows, targets = [], []
        for article in articles:
            new = list(dict.fromkeys(word for word in article.document if word not in self.numbers))
            local = {word: len(self.words) + place for place, word in enumerate(new)}
            new_words.append(new)
            rows.append([self.numbers.get(word) or local[word] for word in article.document])
            targets.append([self.numbers.get(word) or local.get(word, UNKNOWN) for word in article.summary])
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        return Batch(ids, torch.tensor([len(row) for row in rows]), targets, new_words)

    def text(self, output: Sequence[int], new_words: Sequence[str]) -> str:
        return text_of([(self.words + list(new_words))[number] for number in output if number != END])
