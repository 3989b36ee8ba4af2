"""What all pairwise metrics share: from checked texts to results, in blocks of bounded size.

Each distinct text of a block is read and encoded once; a pair is compared on the thread pool as soon as both of its
texts are ready, while the encoder goes on with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.transport import default_threads, one_blas_thread

__all__ = [
    "Comparison",
    "Example",
    "MultiRef",
    "Scorer",
    "collect",
    "list_flows",
    "no_flows",
    "one_by_one",
    "score_stream",
]

MultiRef = Literal["max", "mean"]
Reduction = Literal["max", "mean", "sum"]  # `sum` for documents that a summary covers together
_CHUNK = 32  # pairs handed to a thread at a time: handing over one costs as much as comparing one


class Comparison(NamedTuple):
    """One prediction against one reference.

    Attributes
    ----------
    score : float
    parts : mapping
        Further numbers of the pair (`precision`, `recall`), reduced over references like the score's best.
    empty : bool
        A side had no token at all.
    unfiltered : bool
        Filtering left a side without units, so the pair was compared on all its tokens.
    alignment : dict or None
        Units, masses and flows, if asked for.
    """

    score: float
    parts: Mapping[str, float] = {}
    empty: bool = False
    unfiltered: bool = False
    alignment: dict[str, Any] | None = None


class Example(NamedTuple):
    """One prediction against all its references."""

    score: float
    parts: Mapping[str, float]
    empty: bool
    unfiltered: bool
    truncated: bool
    alignments: list[dict[str, Any]] | None


@dataclass(frozen=True)
class Scorer:
    """A metric with all its options settled.

    Parameters
    ----------
    name, signature : str
    represent : function
        Distinct texts → `(index, representation)` for each, in any order, as soon as it is ready.
    compare : function
        Pairs of representations and whether to keep their alignments → a Comparison each. Runs in threads.
    prepare : function, optional
        Pairs of representations → groups of what `compare` takes in their place, each group small enough to be in
        memory at once. Without `overlap` it runs on the calling thread, and the threads compare a whole group while
        the calling thread waits: small array steps hold Python's lock, and threads would only take it from each other.
    was_cut : function
        Whether a representation left tokens of its text out.
    multi_ref : {"max", "mean", "sum"}
    threads : int, optional
        Threads that compare; all processors if not given.
    overlap : bool
        Compare the first pairs while later texts are still being represented. An encoder's arithmetic leaves Python's
        lock free for that; reading texts in plain Python does not, and threads would only take it from each other.
    block : int
        Pairs in memory at once.
    also : mapping
        What the result holds beside what every metric returns.
    """

    name: str
    signature: str
    represent: Callable[[Sequence[str]], Iterable[tuple[int, Any]]]
    compare: Callable[[Sequence[Any], bool], Sequence[Comparison]]
    prepare: Callable[[Sequence[tuple[Any, Any]]], Iterable[Sequence[Any]]] | None = None
    multi_ref: Reduction = "max"
    was_cut: Callable[[Any], bool] = field(default=lambda representation: False)
    threads: int | None = None
    overlap: bool = True
    block: int = 1024
    progress: bool | None = None
    also: Mapping[str, Any] = field(default_factory=dict)

    def score(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]], return_alignment: bool = False
    ) -> dict[str, Any]:
        """Score checked texts and return the result every metric returns."""
        pairs = zip(predictions, references, strict=True)
        examples = list(score_stream(self, pairs, total=len(predictions), return_alignment=return_alignment))
        return collect(self, examples)


def one_by_one(
    compare: Callable[[Any, Any, bool], Comparison],
) -> Callable[[Sequence[tuple[Any, Any]], bool], list[Comparison]]:
    """The `compare` of a Scorer from a function of a single pair."""
    return lambda pairs, aligned: [compare(first, second, aligned) for first, second in pairs]


def score_stream(
    scorer: Scorer,
    pairs: Iterable[tuple[str, Sequence[str]]],
    total: int | None = None,
    return_alignment: bool = False,
) -> Iterator[Example]:
    """Examples in the order of the pairs, holding no more than a block of them in memory."""
    from tqdm import tqdm

    disable = None if scorer.progress is None else not scorer.progress
    threads = default_threads() if scorer.threads is None else scorer.threads
    bar = tqdm(total=total, desc=scorer.name, unit=" texts", disable=disable, delay=2, leave=False)
    with bar, one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="movers") as pool:
        for block in _blocks(pairs, scorer.block):
            yield from _score_block(scorer, block, pool if threads > 1 else None, return_alignment, bar.update)


def _blocks(pairs: Iterable[tuple[str, Sequence[str]]], size: int) -> Iterator[list[tuple[str, Sequence[str]]]]:
    block: list[tuple[str, Sequence[str]]] = []
    count = 0
    for pair in pairs:
        block.append(pair)
        count += len(pair[1])
        if count >= size:
            yield block
            block, count = [], 0
    if block:
        yield block


def _score_block(
    scorer: Scorer,
    block: list[tuple[str, Sequence[str]]],
    pool: ThreadPoolExecutor | None,
    return_alignment: bool,
    advance: Callable[[int], Any],
) -> Iterator[Example]:
    numbers: dict[str, int] = {}
    for prediction, references in block:
        for text in (prediction, *references):
            numbers.setdefault(text, len(numbers))
    # Pairs wait for their second text; equal pairs are compared once.
    pairs = dict.fromkeys((numbers[prediction], numbers[text]) for prediction, texts in block for text in texts)
    waiting: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        for number in set(pair):
            waiting.setdefault(number, []).append(pair)
    ready: dict[int, Any] = {}
    cut: set[int] = set()
    compared: dict[tuple[int, int], Comparison] = {}
    under_way: list[Future[list[tuple[tuple[int, int], Comparison]]]] = []

    def compare(keys: Sequence[tuple[int, int]], problems: Sequence[Any]) -> list[tuple[tuple[int, int], Comparison]]:
        return list(zip(keys, scorer.compare(problems, return_alignment), strict=True))

    def prepare_and_compare(
        keys: Sequence[tuple[int, int]], pairs: Sequence[tuple[Any, Any]]
    ) -> list[tuple[tuple[int, int], Comparison]]:
        return compare(keys, pairs if scorer.prepare is None else list(chain.from_iterable(scorer.prepare(pairs))))

    def hand_over(function: Callable[..., Any], keys: Sequence[tuple[int, int]], items: Sequence[Any]) -> None:
        if pool is None:
            compared.update(function(keys, items))
        else:
            under_way.append(pool.submit(function, keys, items))

    def wait() -> None:
        while under_way:
            compared.update(under_way.pop(0).result())

    def done(pair: tuple[int, int], number: int) -> bool:
        return pair[0] in ready and pair[1] in ready and (pair[0] == number or pair[1] == number)

    keys: list[tuple[int, int]] = []
    items: list[tuple[Any, Any]] = []
    left = {number: len(owners) for number, owners in waiting.items()}
    try:
        for number, representation in scorer.represent(list(numbers)):
            ready[number] = representation
            if scorer.was_cut(representation):
                cut.add(number)
            for pair in waiting[number]:
                if not done(pair, number):
                    continue
                keys.append(pair)
                items.append((ready[pair[0]], ready[pair[1]]))
                for member in set(pair):
                    left[member] -= 1
                    if not left[member] and member != number:
                        ready[member] = None  # its last pair is under way: free the vectors
                if scorer.overlap and len(keys) == _CHUNK:
                    hand_over(prepare_and_compare, keys, items)
                    keys, items = [], []
        if scorer.overlap or scorer.prepare is None:
            for begin in range(0, len(keys), _CHUNK):
                end = begin + _CHUNK
                hand_over(prepare_and_compare, keys[begin:end], items[begin:end])
        else:
            place = 0
            for group in scorer.prepare(items):
                for begin in range(0, len(group), _CHUNK):
                    part = group[begin : begin + _CHUNK]
                    hand_over(compare, keys[place : place + len(part)], part)
                    place += len(part)
                wait()
        wait()
    except BaseException:
        for future in under_way:
            future.cancel()
        raise
    for prediction, references in block:
        first = numbers[prediction]
        members = [numbers[text] for text in references]
        yield _reduce(
            scorer.multi_ref,
            [compared[first, member] for member in members],
            truncated=bool(cut.intersection([first, *members])),
            aligned=return_alignment,
        )
        advance(1)


def _reduce(multi_ref: Reduction, comparisons: list[Comparison], truncated: bool, aligned: bool) -> Example:
    if multi_ref == "max":
        best = max(comparisons, key=lambda comparison: comparison.score)
        score, parts = best.score, best.parts
    else:
        count = 1 if multi_ref == "sum" else len(comparisons)
        score = math.fsum(comparison.score for comparison in comparisons) / count
        names = comparisons[0].parts
        parts = {name: math.fsum(comparison.parts[name] for comparison in comparisons) / count for name in names}
    alignments = None
    if aligned:
        alignments = [
            {"reference_index": index, "score": comparison.score, **(comparison.alignment or {})}
            for index, comparison in enumerate(comparisons)
        ]
    return Example(
        score,
        parts,
        any(comparison.empty for comparison in comparisons),
        any(comparison.unfiltered for comparison in comparisons),
        truncated,
        alignments,
    )


def no_flows() -> dict[str, Any]:
    """The alignment of a pair without units."""
    return {"distance": None, "prediction": [], "reference": [], "flows": []}


def list_flows(flow: NDArray[Any], costs: NDArray[Any]) -> list[dict[str, Any]]:
    """The non-zero entries of a plan (m, n) with their costs."""
    rows, columns = np.nonzero(flow)
    return [
        {"i": i, "j": j, "mass": float(flow[i, j]), "cost": float(costs[i, j])}
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]


def collect(scorer: Scorer, examples: Sequence[Example]) -> dict[str, Any]:
    """The result every metric returns: plain Python values only."""
    scores = [example.score for example in examples]
    result: dict[str, Any] = {
        "score": math.fsum(scores) / len(scores),
        "scores": scores,
        "signature": scorer.signature,
        "n_empty": sum(example.empty for example in examples),
        "n_unfiltered": sum(example.unfiltered for example in examples),
        "n_truncated": sum(example.truncated for example in examples),
    }
    for name in examples[0].parts:
        result[name] = [example.parts[name] for example in examples]
    result.update(scorer.also)
    if examples[0].alignments is not None:
        result["alignments"] = [example.alignments for example in examples]
    return result
