"""Clark et al. 2019, Tables 1, 3 and 7, which correlate nothing: ``run.py --passage`` computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import movers
from movers.agreement.judged import read_judged
from movers.agreement.lexical import rouge
from movers.agreement.scoring import MetricCall, score_judged
from movers.io import align_table
from movers.texts import split_sentences, token_spans

from layout import GLOVE, call, written  # isort: skip

CLARK_TABLES = ("clark-table-1", "clark-table-3", "clark-table-7")
Rows = Mapping[str, Mapping[str, Mapping[str, str]]]  # row → column → figure

# Table 1, on a news passage of our own with two summaries, each altered as in the paper: clauses are rearranged, and
# some phrases repeated. The two differ in one repeated phrase, whose words are in the passage ("moved away") or are not
# ("in dry regions").
REFERENCE = (
    "A retired ferry captain has found an unusual use for the fog that covers his harbour town most of the year . "
    "For $ 12 , he will mail you a sealed jar of it , collected at dawn from the end of the pier . So far he has sold "
    "over 300 jars , mostly to people who grew up on the coast and moved away ."
)
ALTERED = {  # {0} is the phrase that differs, {1} its repeated end
    "score": "a former captain in a coastal town is selling fog online to {0} . for $ 12 , he will mail a sealed jar "
    "of fog from the pier .",
    "word order": "in a coastal town , a former captain is selling fog online to {0} . he will mail a sealed jar of "
    "fog from the pier for $ 12 .",
    "repetition": "a former captain in a coastal town is selling fog is selling fog online to {0} {1} . for $ 12 , he "
    "will mail he will mail a sealed jar a sealed jar of fog from the pier from a pier .",
}
PHRASES = (("people who moved away", "who moved away"), ("collectors in dry regions", "in dry regions"))
TABLE_1 = {"ROUGE-L": (-20, -11), "WMS": (0, -1), "SMS": (0, -11), "S+WMS": (0, -5)}  # changes in per cent

# Table 3: two texts of the set, and the paper's scores, ROUGE-L × 100 and the others × 1000.
EXAMPLES = {
    "chaganty18.007329.pointer.2010": {"ROUGE-L": 12.44, "WMS": 21.41, "SMS": 128.91, "S+WMS": 47.89},
    "chaganty18.007062.seq2seq.2249": {"ROUGE-L": 34.57, "WMS": 5.08, "SMS": 51.39, "S+WMS": 12.25},
}
TABLE_7 = {"texts": 2085, "tokens": 255_609, "types": 12_882, "tokens per text": 65, "sentences per text": 3.4}


def calls(**options: object) -> list[MetricCall]:
    return [call(label, name, **options) for label, name in (("WMS", "wms"), ("SMS", "sms"), ("S+WMS", "swms"))]


def definitions() -> dict[str, dict[str, object]]:
    """Our defaults, and the paper's definitions with our vectors and with its own if they are there."""
    forms: dict[str, dict[str, object]] = {"": {}, ", as printed": {"preset": "paper"}}
    if Path(GLOVE).exists():
        forms[", as printed, GloVe"] = {"preset": "paper", "model": GLOVE}
    return forms


def score_passage() -> Iterator[dict[str, Any]]:
    """Table 1: the scores of the summaries and of their altered forms."""
    for summary, phrase in enumerate(PHRASES, start=1):
        texts = [form.format(*phrase) for form in ALTERED.values()]
        lexical: Mapping[str, Any] = rouge(texts, [REFERENCE] * len(texts))
        results = {f"ROUGE-L, {summary}": ("rouge", lexical)}
        for suffix, options in definitions().items():
            for metric in calls(**options):
                result = getattr(movers, metric.name)(texts, [REFERENCE] * len(texts), **options)
                results[f"{metric.label}{suffix}, {summary}"] = written(metric), result
        for row, (name, result) in results.items():
            same: dict[str, Any] = {"table": "clark-table-1", "row": row, "n": 1, "metric": name}
            for column, score in zip(ALTERED, result["scores"], strict=True):
                yield {**same, "column": column, "value": score, "signature": result["signature"]}


def score_set(path: Path) -> Iterator[dict[str, Any]]:
    """Tables 3 and 7, from the judged set."""
    judged = read_judged(path, where=["is_reference!=true"])
    rows = [row for row, human in enumerate(judged.human("overall")) if human is not None]
    texts = [judged.texts[row] for row in rows]
    if Path(GLOVE).exists():
        metrics = [call("ROUGE-L", "rouge"), *calls(preset="paper", model=GLOVE)]
        scored = score_judged(judged, metrics)
        for sample, example in enumerate(EXAMPLES, start=1):
            place = next(row for row in rows if judged.texts[row].id == example)
            for metric in metrics:
                scores = np.array(scored[metric.label].scores, float)[rows]
                score = float(scores[rows.index(place)])
                same: dict[str, Any] = {"table": "clark-table-3", "row": f"sample {sample}, {metric.label}"}
                same |= {"metric": written(metric), "signature": scored[metric.label].signature}
                same |= {"n": len(rows), "data": judged.name}
                yield {**same, "column": "score", "value": score}
                yield {**same, "column": "share below", "value": float((scores < score).mean())}
    written_down = [text.candidate for text in texts]
    both = [*written_down, *(text.references[0] for text in texts)]
    tokens = [[token.lower() for token, *_ in token_spans(text)] for text in both]
    counts = {
        "texts": len(texts),
        "tokens": sum(map(len, tokens)),
        "types": len({token for text in tokens for token in text}),
        "tokens per text": sum(map(len, tokens[: len(texts)])) / len(texts),
        "sentences per text": sum(len(split_sentences(text)) for text in written_down) / len(texts),
    }
    for row, count in counts.items():
        same = {"table": "clark-table-7", "row": row, "column": "value", "value": count}
        yield {**same, "n": len(texts), "data": judged.name}


def render(results: Mapping[str, Rows]) -> list[str]:
    """Markdown of the tables that have figures."""
    bodies: dict[str, list[list[str]]] = {name: [] for name in CLARK_TABLES}
    for row, columns in results["clark-table-1"].items():
        first, *others = (float(columns[column]["value"]) for column in ALTERED)
        line = [row, f"`{columns['score']['metric']}`", f"{first:.4g}"]
        for score, change in zip(others, TABLE_1[row.partition(", ")[0]], strict=True):
            line += [f"{100 * (score / first - 1):+.1f} %", f"{change:+d} %"]
        bodies["clark-table-1"].append(line)
    for row, columns in results["clark-table-3"].items():
        sample, _, label = row.removeprefix("sample ").partition(", ")
        value = float(columns["score"]["value"]) * (100 if label == "ROUGE-L" else 1000)
        published = list(EXAMPLES.values())[int(sample) - 1][label]
        share = f"{float(columns['share below']['value']):.0%}"
        bodies["clark-table-3"].append([row, f"{value:.2f}", f"{published}", share])
    for row, columns in results["clark-table-7"].items():
        value = float(columns["value"]["value"])
        bodies["clark-table-7"].append([row, f"{value:,.{0 if value.is_integer() else 1}f}", f"{TABLE_7[row]:,}"])
    lines = []
    for name, body in bodies.items():
        title, heading, note = _TEXTS[name]
        names = heading.split(" | ")
        numbers = range(2 if "options" in names else 1, len(names))
        if body:
            table = align_table(names, body, numbers, markdown=True)
            lines += [f"## Clark et al. 2019, {title}", "", note, "", *table, ""]
    return lines


_TEXTS = {  # title, heading, note
    "clark-table-1": (
        "Table 1: word order and repetition",
        "metric, summary | options | score | word order | paper | repetition | paper",
        "One passage with two summaries, each altered as in the paper; the texts are our own (`clark.py`), similar to "
        "the paper's. Summary 1 repeats a phrase whose words are in the passage, summary 2 one whose words are not: "
        "the cost of repetition depends on what is repeated. As printed: exp(−distance) of Euclidean distances, with "
        "our vectors or the paper's. The paper's order of the costs of repetition, SMS > S+WMS > WMS, holds with its "
        "definitions and vectors in both summaries (WMS even gains), and with our defaults in the second. It does not "
        "hold with our defaults in the first, where S+WMS loses most, nor with the paper's definitions on our vectors.",
    ),
    "clark-table-3": (
        "Table 3: two examples",
        "sample, metric | score | paper | above",
        "The paper's definitions and vectors; ROUGE-L × 100, the others × 1000. The last column is the share of the "
        "2,085 summaries that score lower. The vectors are cut to 33,860 words, and unknown words are placed at the "
        "origin: in sample 2 these are lollies, Clegg, Choc, emblazoned, honeycomb and Miliband.",
    ),
    "clark-table-7": (
        "Table 7: the judged summaries",
        "what | ours | paper",
        "The paper does not say which texts it counts. Its 255,609 tokens are more than 2,085 texts of 65 tokens, so "
        "tokens and types are counted here over summaries and references (lowercased), lengths over summaries.",
    ),
}
