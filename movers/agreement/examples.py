"""Corpus statistics of a judged dataset, and examples with the quartiles of the metrics' scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from movers.agreement.columns import Floats, Scores, stack
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.rendering import Format, all_fields, check_format, plain_table
from movers.inputs import check_positive
from movers.texts import WordRules, split_sentences

__all__ = ["QuartileExample", "examples_by_quartile", "render_examples", "render_statistics", "text_statistics"]


def text_statistics(judged: JudgedSet) -> list[dict[str, object]]:
    """Corpus statistics (Clark et al. 2019, Table 7) of candidates, references and sources, each distinct text once.

    Tokens are words and numbers, types are distinct tokens in lower case; punctuation does not count.

    Examples
    --------
    >>> texts = (JudgedText("1", "It rains. We stay in 2 rooms.", ("Rain!",), {}),)
    >>> text_statistics(JudgedSet("two", texts))[0]
    {'texts of': 'candidates', 'texts': 1, 'tokens': 7, 'types': 7, 'tokens per text': 7.0, 'sentences per text': 2.0}
    """
    sources = [text.fields.get("source") for text in judged.texts]
    kinds: dict[str, list[str]] = {
        "candidates": [text.candidate for text in judged.texts],
        "references": list(dict.fromkeys(one for text in judged.texts for one in text.references)),
        "sources": list(dict.fromkeys(source for source in sources if isinstance(source, str))),
    }
    rules = WordRules(keep_numbers=True)
    rows: list[dict[str, object]] = []
    for kind, texts in kinds.items():
        if texts:
            words = [rules.words(text) for text in texts]
            tokens = sum(map(len, words))
            rows.append(
                {
                    "texts of": kind,
                    "texts": len(texts),
                    "tokens": tokens,
                    "types": len({word for own in words for word in own}),
                    "tokens per text": tokens / len(texts),
                    "sentences per text": sum(len(split_sentences(text)) for text in texts) / len(texts),
                }
            )
    return rows


def render_statistics(rows: Sequence[Mapping[str, object]], format: Format = "text") -> str:
    """:func:`text_statistics` as one string."""
    check_format(format)
    if format in ("csv", "json"):
        return all_fields(rows, format)
    columns = {name: [_number(row[name]) for row in rows] for name in rows[0]}
    return plain_table(columns, [], format, numbers=list(columns)[1:])


def _number(cell: object) -> str:
    return f"{cell:.1f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)


@dataclass(frozen=True)
class QuartileExample:
    """A judged text, its human scores, and for every metric its score and whether that is in an outer quartile.

    ``quartiles`` holds ``"top"``, ``"bottom"`` or ``""``.
    """

    text: JudgedText
    scores: Mapping[str, float]
    quartiles: Mapping[str, str]


def examples_by_quartile(
    judged: JudgedSet, metrics: Mapping[str, Scores], humans: Mapping[str, Scores], n: int
) -> list[QuartileExample]:
    """The ``n`` texts on which metrics and humans disagree most (two are shown in Clark et al. 2019, Table 3).

    Scores of different metrics are not comparable, ranks are: each text has a relative rank for every metric and every
    human score, and texts are ordered by the difference between their highest and lowest relative rank.
    """
    check_positive("agreement", "examples", n, none_allowed=False)
    columns = stack({**humans, **metrics})
    complete = np.flatnonzero(~np.isnan(columns).any(axis=0))
    columns = columns[:, complete]
    shares = np.stack([stats.rankdata(column) / len(column) for column in columns]) if len(complete) else columns
    order = np.argsort(-np.ptp(shares, axis=0), kind="stable")[:n]
    quartiles = {name: _quartiles(column) for name, column in zip(metrics, columns[len(humans) :], strict=True)}
    return [
        QuartileExample(
            judged.texts[complete[place]],
            {name: float(column[place]) for name, column in zip(metrics, columns[len(humans) :], strict=True)},
            {name: own[place] for name, own in quartiles.items()},
        )
        for place in order.tolist()
    ]


def _quartiles(column: Floats) -> list[str]:
    low, high = np.quantile(column, [0.25, 0.75]) if len(column) else (0.0, 0.0)
    return ["" if low == high else "top" if score >= high else "bottom" if score <= low else "" for score in column]


def render_examples(examples: Sequence[QuartileExample], format: Format = "text") -> str:
    """Examples as one string; Markdown has scores of the top quartile in bold and of the bottom one in italics."""
    check_format(format)
    if format in ("csv", "json"):
        rows = [
            {
                "id": example.text.id,
                "candidate": example.text.candidate,
                "references": list(example.text.references),
                "human": dict(example.text.scores),
                "scores": dict(example.scores),
                "quartiles": dict(example.quartiles),
            }
            for example in examples
        ]
        return all_fields(rows, format)
    blocks = []
    for number, example in enumerate(examples, start=1):
        texts = [*(f"Reference. {text}" for text in example.text.references), f"Candidate. {example.text.candidate}"]
        human = {name: f"{score:.4g}" for name, score in example.text.scores.items() if score is not None}
        scores = {
            name: _marked(score, example.quartiles[name], format == "markdown")
            for name, score in example.scores.items()
        }
        columns = {"judged by": [*human, *scores], "score": [*human.values(), *scores.values()]}
        heading = f"{number}. {example.text.id}"
        blocks.append("\n\n".join([heading, *texts, plain_table(columns, [], format)]))
    return "\n".join(blocks)


def _marked(score: float, quartile: str, markdown: bool) -> str:
    if markdown:
        mark = {"top": "**", "bottom": "*", "": ""}[quartile]
        return f"{mark}{score:.4g}{mark}"
    return f"{score:.4g}" + (f" ({quartile} quartile)" if quartile else "")
