"""What `bench.py` measures: our metrics, what a user would pick instead, and the floor below which none can go.

Every function here takes texts and returns a call without arguments; what happens before that call is not measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from common import chaganty, judged, seconds

import movers
from movers._pot.kernel import emd_kernel
from movers.encoders.cache import VECTORS
from movers.encoders.static import WordLlama
from movers.registry import find_metric
from movers.texts import WordRules, split_sentences, stop_words
from movers.threads import one_blas_thread, threaded_map
from movers.transport import pairwise_distances

Call = Callable[[], object]
BATCHES = (8, 16, 32, 64)  # texts at a time; the floor is the fastest


class Pairs(NamedTuple):
    predictions: list[str]
    references: list[str]

    def first(self, count: int) -> Pairs:
        return Pairs(self.predictions[:count], self.references[:count])


def summaries(count: int) -> Pairs:
    """Distinct pairs made of the judged summaries of Chaganty et al. 2018: in each text one sentence is exchanged."""
    draw = random.Random(1)
    rows = [[split_sentences(text) for text in (row["candidate"], row["references"][0])] for row in chaganty()]
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


# --- static vectors --------------------------------------------------------------------------------------------------


def wms(pairs: Pairs, **options: Any) -> Call:
    movers.wms(*pairs.first(64))  # loads the vectors
    return lambda: movers.wms(*pairs, progress=False, **options)


def transport_problems(pairs: Pairs) -> list[tuple[Any, Any, Any]]:
    """Masses and costs as `wms` has them."""
    spec = find_metric("wms")
    metric = spec.build(spec.parse({}))
    texts = list(dict.fromkeys([*pairs.predictions, *pairs.references]))
    bags: Any = {texts[index]: found.bag for index, found in metric.read(texts)}
    with one_blas_thread():
        return [
            (bags[a].masses, bags[b].masses, pairwise_distances(bags[a].units.vectors(), bags[b].units.vectors()))
            for a, b in zip(*pairs, strict=True)
            if bags[a] is not None and bags[b] is not None
        ]


def kernel(problems: list[tuple[Any, Any, Any]], threads: int) -> Call:
    """The floor: nothing but the solver, on ready masses and costs."""
    solve = emd_kernel()
    return lambda: list(threaded_map(lambda problem: solve(*problem)[1], problems, threads))


def pot(problems: list[tuple[Any, Any, Any]]) -> Call:
    """`ot.emd2`, pair by pair."""
    import ot

    return lambda: [ot.emd2(*problem) for problem in problems]


def gensim(pairs: Pairs) -> Call:
    """`KeyedVectors.wmdistance` on ready token lists and the same vectors, warmed: its first call imports POT."""
    from gensim.models import KeyedVectors

    rules = WordRules(stop_words("english"), keep_numbers=True)
    tokens = [[rules.words(text) for text in side] for side in pairs]
    vocabulary = list(dict.fromkeys(word for side in tokens for words in side for word in words))
    vectors, _ = WordLlama().vectors(vocabulary)
    peer = KeyedVectors(vector_size=vectors.shape[1])
    peer.add_vectors(vocabulary, vectors)
    documents = list(zip(*tokens, strict=True))
    peer.wmdistance(*documents[0], norm=False)
    return lambda: [peer.wmdistance(a, b, norm=False) for a, b in documents]


def largest_difference(pairs: Pairs) -> float:
    """Between our distances and gensim's, which leaves out that a text may have no words."""
    ours, theirs = movers.wms(*pairs)["distances"], gensim(pairs)()
    assert isinstance(theirs, list)
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True) if a is not None and np.isfinite(b))


# --- contextual vectors ----------------------------------------------------------------------------------------------


def contextual(name: str, pairs: Pairs) -> Call:
    """One of our metrics, with nothing in the cache."""
    function = getattr(movers, name)
    function(*pairs.first(32))

    def run() -> None:
        VECTORS.clear()
        function(*pairs, progress=False)

    return run


@lru_cache(maxsize=1)
def _bare_encoder() -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    from movers.encoders.embedded import minilm_folder

    folder = str(minilm_folder())
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def encoder(texts: Sequence[str], size: int) -> Call:
    """The floor: the bare forward pass over the distinct texts, tokenized and sorted by length, `size` at a time."""
    import torch

    model, tokenizer = _bare_encoder()
    ids = sorted((tokenizer(text, truncation=False)["input_ids"] for text in dict.fromkeys(texts)), key=len)
    batches = []
    for begin in range(0, len(ids), size):
        part = ids[begin : begin + size]
        width = max(map(len, part))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in part])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part])
        batches.append({"input_ids": padded, "attention_mask": mask})

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


def bert_score(pairs: Pairs) -> Call:
    """The `bert-score` package, loaded beforehand."""
    from bert_score import BERTScorer

    from movers.encoders.embedded import minilm_folder

    scorer = BERTScorer(model_type=str(minilm_folder()), num_layers=6, batch_size=64)
    scorer.score(*pairs.first(32))
    return lambda: scorer.score(*pairs)


def torchmetrics(pairs: Pairs) -> Call:
    """torchmetrics' BERTScore, loaded beforehand."""
    from torchmetrics.text.bert import BERTScore

    from movers.encoders.embedded import minilm_folder

    scorer = BERTScore(str(minilm_folder()), num_layers=6, batch_size=64, truncation=True)

    def run() -> None:
        scorer.reset()
        scorer.update(*pairs)
        scorer.compute()

    return run
