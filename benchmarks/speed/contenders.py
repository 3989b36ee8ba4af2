"""What `bench.py` measures: our metrics, what a user would pick instead, and the floor below which none can go.

Every function takes texts and returns a call without arguments; what happens before that call is not measured.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from common import judged, minilm_folder, seconds  # noqa: E402, I001

import movers
from movers.encoders import load_encoder
from movers.scorer import Scorer
from movers.texts import WordRules, split_sentences, stop_words
from movers.transport import emd, pairwise_distances

Call = Callable[[], object]
Problem = tuple[Any, Any, Any]  # masses, masses, costs
BATCHES = (8, 16, 32, 64)  # texts at a time; the floor is the fastest


class Pairs(NamedTuple):
    predictions: list[str]
    references: list[str]

    def first(self, count: int) -> Pairs:
        return Pairs(self.predictions[:count], self.references[:count])


def summaries(count: int) -> Pairs:
    """Distinct pairs made of the judged summaries of Chaganty et al. 2018: in each text one sentence is exchanged."""
    draw = random.Random(1)
    rows = [
        [split_sentences(text) for text in (row["candidate"], row["references"][0])]
        for row in judged("chaganty18_cnndm")
        if not row["is_reference"] and row["scores"]["overall"] is not None
    ]
    rows = [sides for sides in rows if all(sides)]
    pool = [sentence for sides in rows for side in sides for sentence in side]

    def changed(sentences: list[str]) -> str:
        place = draw.randrange(len(sentences))
        return " ".join([*sentences[:place], draw.choice(pool), *sentences[place + 1 :]])

    made = [tuple(map(changed, rows[number % len(rows)])) for number in range(count)]
    return Pairs([first for first, _ in made], [second for _, second in made])


def translations(count: int) -> Pairs:
    """Pairs of WMT17, of about 25 words a side."""
    rows = judged("wmt17_seg_da_to_en")[:count]
    return Pairs([row["candidate"] for row in rows], [row["references"][0] for row in rows])


# --- static vectors ---


def wms(pairs: Pairs, **options: Any) -> Call:
    movers.wms(*pairs.first(64))  # loads the vectors
    return lambda: movers.wms(*pairs, progress=False, **options)


def _vocabulary(pairs: Pairs) -> tuple[list[tuple[list[str], list[str]]], list[str], Any]:
    """Words of every pair as `wms` takes them with `preset="paper"`, all words, and their vectors."""
    rules = WordRules(stop_words("english"), stop_mass=0, alphabetic=True)
    tokens = [[rules.words(text) for text in side] for side in pairs]
    words = list(dict.fromkeys(word for side in tokens for text in side for word in text))
    vectors, _ = load_encoder("wordllama").vectors(words)  # type: ignore[union-attr]
    return list(zip(*tokens, strict=True)), words, vectors


def transport_problems(pairs: Pairs) -> list[Problem]:
    """Masses and costs of `wms`, computed from words and vectors."""
    documents, words, vectors = _vocabulary(pairs)
    places = {word: place for place, word in enumerate(words)}
    problems: list[Problem] = []
    for sides in documents:
        counts = [Counter(words) for words in sides]
        if all(counts):
            masses = [np.array([*count.values()], float) / sum(count.values()) for count in counts]
            rows = [vectors[[places[word] for word in count]] for count in counts]
            problems.append((masses[0], masses[1], pairwise_distances(*rows)))
    return problems


def kernel(problems: list[Problem], threads: int) -> Call:
    """The floor: nothing but the solver, on ready masses and costs."""

    def solve(part: list[Problem]) -> None:
        for problem in part:
            emd(*problem)

    def run() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(solve, [problems[begin::threads] for begin in range(threads)]))

    return run


def pot(problems: list[Problem]) -> Call:
    """`ot.emd2`, pair by pair."""
    import ot

    return lambda: [ot.emd2(*problem) for problem in problems]


def gensim(pairs: Pairs) -> Callable[[], list[float]]:
    """`KeyedVectors.wmdistance` on ready token lists and the same vectors, warmed: its first call imports POT."""
    from gensim.models import KeyedVectors

    documents, words, vectors = _vocabulary(pairs)
    peer = KeyedVectors(vector_size=vectors.shape[1])
    peer.add_vectors(words, vectors)
    peer.wmdistance(*documents[0], norm=False)
    return lambda: [peer.wmdistance(a, b, norm=False) for a, b in documents]


def largest_difference(pairs: Pairs) -> float:
    """Between our distances and gensim's, where both texts have words."""
    ours, theirs = movers.wms(*pairs, preset="paper")["distances"], gensim(pairs)()
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True) if a is not None and np.isfinite(b))


# --- contextual vectors ---


def contextual(names: str | Sequence[str], pairs: Pairs) -> Call:
    """One or more of our metrics, with nothing in the cache."""
    scorer = Scorer(names, progress=False)
    scorer.score(*pairs.first(32))

    def run() -> None:
        scorer.forget()
        scorer.score(*pairs)

    return run


@lru_cache(maxsize=2)
def _bare_encoder(folder: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def encoder(texts: Sequence[str], size: int, folder: str | None = None) -> Call:
    """The floor: the bare forward pass over the distinct texts, tokenized and sorted by length, `size` at a time."""
    import torch

    model, tokenizer = _bare_encoder(folder or minilm_folder())
    ids = sorted((tokenizer(text, truncation=False)["input_ids"] for text in dict.fromkeys(texts)), key=len)
    parts = [ids[begin : begin + size] for begin in range(0, len(ids), size)]
    batches = [tokenizer.pad({"input_ids": part}, return_tensors="pt") for part in parts]

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(**batch)

    return run


def best_batch(texts: Sequence[str]) -> int:
    """The fastest number of texts at a time for the floor, tried on the first of them."""
    calls = {size: encoder(texts[:512], size) for size in BATCHES}
    times = {size: min(seconds(call) for _ in range(2)) for size, call in calls.items()}
    return min(times, key=lambda size: times[size])


#: Code for `python -c`: bert-score on all pairs of two files, by repeated lists, as its users do it.
BERT_SCORE_ALL_PAIRS = """
import sys
from bert_score import BERTScorer
texts, others = ([line.rstrip("\\n") for line in open(path)] for path in sys.argv[1:3])
scorer = BERTScorer(model_type=sys.argv[3], num_layers=6, batch_size=64)
scorer.score([text for text in texts for _ in others], others * len(texts))
"""


def bert_score(pairs: Pairs) -> Call:
    """The `bert-score` package, loaded beforehand."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=minilm_folder(), num_layers=6, batch_size=64)
    scorer.score(*pairs.first(32))
    return lambda: scorer.score(*pairs)


def torchmetrics(pairs: Pairs) -> Call:
    """torchmetrics' BERTScore, loaded beforehand."""
    from torchmetrics.text.bert import BERTScore

    scorer = BERTScore(minilm_folder(), num_layers=6, batch_size=64, truncation=True)

    def run() -> None:
        scorer.reset()
        scorer.update(*pairs)
        scorer.compute()

    return run
