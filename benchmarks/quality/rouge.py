"""ROUGE-N and ROUGE-W as precision, recall and F1 (Lin 2004), for the paper's Tables 7 and 8."""

from __future__ import annotations

from collections import Counter

from movers.quality.facts import split_words, stem

__all__ = ["rouge_n", "rouge_w", "stems"]

Triple = tuple[float, float, float]


def stems(text: str) -> list[str]:
    return [stem(word) for word in split_words(text)]


def _triple(precision: float, recall: float) -> Triple:
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def rouge_n(summary: list[str], reference: list[str], n: int) -> Triple:
    """Shared n-grams.

    >>> rouge_n(list("abc"), list("abd"), 2)
    (0.5, 0.5, 0.5)
    """
    first, second = (Counter(zip(*(words[k:] for k in range(n)), strict=False)) for words in (summary, reference))
    shared = sum((first & second).values())
    return _triple(shared / max(1, sum(first.values())), shared / max(1, sum(second.values())))


def rouge_w(summary: list[str], reference: list[str], weight: float = 1.2) -> Triple:
    """The weighted longest common subsequence: a run of k words counts k ** weight.

    >>> [round(rouge_w(list(text), list("abcdefg"), 2)[0], 3) for text in ("abcdhik", "ahbkcid")]  # Lin's example
    [0.571, 0.286]
    """
    if not summary or not reference:
        return 0.0, 0.0, 0.0
    power = [k**weight for k in range(min(len(summary), len(reference)) + 2)]
    values, runs = [0.0] * (len(reference) + 1), [0] * (len(reference) + 1)
    for word in summary:
        diagonal, run = values[0], runs[0]
        for place, other in enumerate(reference, 1):
            above, above_run = values[place], runs[place]
            if word == other:
                values[place], runs[place] = diagonal + power[run + 1] - power[run], run + 1
            else:
                values[place], runs[place] = max(above, values[place - 1]), 0
            diagonal, run = above, above_run
    found = values[-1]
    return _triple(*((found / len(words) ** weight) ** (1 / weight) for words in (summary, reference)))
