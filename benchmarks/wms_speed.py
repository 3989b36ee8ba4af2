"""Transport of `wms` against gensim's `wmdistance`, and `wms` from text against the bare kernel.

    MOVERS_DATA=… python benchmarks/wms_speed.py

Same token lists, vectors and pairs on both sides (the 2,085 judged summaries of Chaganty et al. 2018 with their
references); gensim is warmed by one call, because it imports POT inside its first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from common import chaganty, interleaved, machine, seconds, write

import movers
from movers._pot.kernel import emd_kernel
from movers.encoders.static import WordLlama
from movers.registry import find_metric
from movers.texts import WordRules, stop_words
from movers.threads import default_threads, one_blas_thread, threaded_map
from movers.transport import emd_of_normalised, pairwise_distances


def main() -> None:
    from gensim.models import KeyedVectors

    rows = chaganty()
    predictions = [row["candidate"] for row in rows]
    references = [row["references"][0] for row in rows]
    rules = WordRules(stop_words("english"))
    documents = {text: rules.words(text) for text in dict.fromkeys([*predictions, *references])}
    pairs = [
        (documents[a], documents[b])
        for a, b in zip(predictions, references, strict=True)
        if documents[a] and documents[b]
    ]
    vocabulary = list(dict.fromkeys(word for words in documents.values() for word in words))
    vectors, _ = WordLlama().vectors(vocabulary)
    row_of = {word: row for row, word in enumerate(vocabulary)}
    peer = KeyedVectors(vector_size=vectors.shape[1])
    peer.add_vectors(vocabulary, vectors)
    peer.wmdistance(*pairs[0], norm=False)

    def bag(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        counts = Counter(words)
        masses = np.array([*counts.values()], dtype=np.float64)
        return vectors[[row_of[word] for word in counts]], masses / masses.sum()

    def ours(chosen: list[tuple[list[str], list[str]]]) -> list[float]:
        # as `wms` does it: costs on this thread, plans on the pool
        with one_blas_thread():
            bags = [(bag(a), bag(b)) for a, b in chosen]
            problems = [(a, b, pairwise_distances(x, y)) for (x, a), (y, b) in bags]
        return list(threaded_map(lambda problem: emd_of_normalised(*problem).cost, problems))

    sample = pairs[: len(pairs) // 4]  # the peer is slow; a quarter of the pairs tells as much

    def theirs() -> list[float]:
        return [peer.wmdistance(a, b, norm=False) for a, b in sample]

    difference = max(abs(x - y) for x, y in zip(ours(sample), theirs(), strict=True))
    transport = interleaved(lambda: ours(sample), theirs)

    # From text, against nothing but the kernel on ready masses and costs.
    spec = find_metric("wms")
    metric = spec.build(spec.parse({}))
    texts = list(documents)
    bags = {texts[index]: found.bag for index, found in metric.read(texts)}
    ready = [
        (bags[a], bags[b])
        for a, b in zip(predictions, references, strict=True)
        if bags[a] is not None and bags[b] is not None
    ]

    def costs() -> list[Any]:
        with one_blas_thread():
            return [pairwise_distances(a.units.vectors(), b.units.vectors()) for a, b in ready]

    problems = [(a.masses, b.masses, matrix) for (a, b), matrix in zip(ready, costs(), strict=True)]
    kernel = emd_kernel()

    def bare() -> Any:
        return list(threaded_map(lambda problem: kernel(*problem)[1], problems))

    def from_text() -> Any:
        return movers.wms(predictions, references)

    bare()
    from_text()
    end_to_end = interleaved(bare, from_text)
    parts = {
        "reading texts into bags": min(seconds(lambda: list(metric.read(texts))) for _ in range(3)),
        "cost matrices, one thread": min(seconds(costs) for _ in range(3)),
        "kernel, one thread": min(seconds(lambda: [kernel(*problem) for problem in problems]) for _ in range(3)),
        f"kernel, {default_threads()} threads": min(seconds(bare) for _ in range(3)),
        "wms from text": min(seconds(from_text) for _ in range(3)),
    }
    sizes = np.mean([problem[2].shape for problem in problems], axis=0)
    write(
        "wms_speed",
        [
            "# Speed of wms",
            "",
            f"{machine(('gensim', 'POT', 'numpy'))}",
            "",
            f"{len(pairs)} pairs of Chaganty et al. 2018, {sizes[0]:.0f} × {sizes[1]:.0f} word types on average, "
            f"{default_threads()} threads.",
            "",
            f"- {transport.describe('gensim wmdistance ÷ movers, same tokens, vectors and pairs')}",
            f"- largest difference of the distances: {difference:.1e}",
            f"- {end_to_end.describe('wms from text ÷ bare kernel on ready costs')}",
            "",
            "| where the time goes | seconds (best of 3) |",
            "|---|---|",
            *(f"| {name} | {value:.3f} |" for name, value in parts.items()),
        ],
    )


if __name__ == "__main__":
    main()
