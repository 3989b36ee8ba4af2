"""The alignment of a summary with its document, measured again in plain loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from made_up import made_up_text

from movers.quality.alignment import FEATURES, align, match_tokens
from movers.quality.units import TextVectors


def lowest_fifth(values: list[float]) -> float:
    return float(np.mean(sorted(values)[: math.ceil(len(values) / 5)]))


def measured_in_loops(document: TextVectors, summary: TextVectors) -> dict[str, float]:
    """Every feature from its definition, with Python's numbers."""
    d, s = document.vectors.astype(float), summary.vectors.astype(float)
    best, local, owners = [], [], summary.owners.tolist()
    for token, owner in zip(summary.tokens.astype(float), owners, strict=True):
        cosines = [float(token @ other) for other in document.tokens.astype(float)]
        near = sorted(range(len(d)), key=lambda n: -float(s[owner] @ d[n]))[:3]
        best.append(max(cosines))
        local.append(max(c for c, sentence in zip(cosines, document.owners, strict=True) if sentence in near))
    by_sentence = [np.mean([m for m, owner in zip(local, owners, strict=True) if owner == n]) for n in set(owners)]
    support = [max(float(one @ other) for other in d) for one in s]
    coverage = [max(float(one @ other) for other in s) for one in d]
    center, mean = d.sum(axis=0) / math.hypot(*d.sum(axis=0)), s.sum(axis=0) / math.hypot(*s.sum(axis=0))
    central = [math.exp(5 * float(one @ center)) for one in d]
    words = " ".join(summary.units).split()
    bigrams = [(first, second) for first, second in zip(words, words[1:], strict=False)]
    length = [sum(len(unit) for unit in text.units) for text in (summary, document)]
    return {
        "token_match": np.mean(best),
        "weak_token_match": lowest_fifth(best),
        "local_match": np.mean(local),
        "weak_local_match": lowest_fifth(local),
        "weakest_sentence_match": min(by_sentence),
        "support": np.mean(support),
        "least_support": min(support),
        "coverage": np.mean(coverage),
        "central_coverage": sum(w * c for w, c in zip(central, coverage, strict=True)) / sum(central),
        "mean_cosine": float(mean @ center),
        "centrality": np.mean([float(one @ center) for one in s]),
        "distinct_bigrams": len(set(bigrams)) / len(bigrams),
        "concision": max(0.0, 1 - length[0] / length[1]),
    }


@pytest.mark.parametrize(("sentences", "of_summary"), [(6, 2), (2, 3), (1, 1), (9, 4)])
def test_every_feature_is_what_its_definition_says(sentences: int, of_summary: int) -> None:
    document, summary = made_up_text(sentences, 3), made_up_text(of_summary, 4, tokens=7)
    assert align(document, summary).named_features == pytest.approx(measured_in_loops(document, summary), abs=1e-6)


def test_a_hand_computed_alignment() -> None:
    no_tokens, owners = np.zeros((0, 2), np.float32), np.zeros(0, np.int64)
    document = TextVectors(("east", "north"), np.eye(2, dtype=np.float32), no_tokens, owners)
    summary = TextVectors(("mostly east",), np.array([[0.8, 0.6]], np.float32), no_tokens, owners)
    found = align(document, summary)
    told = found.describe(summary.units, document.units)
    match = {"text": "mostly east", "support": pytest.approx(0.8), "nearest": 0, "token_match": 0.0}
    assert told["summary"] == [match]
    assert told["document"] == [
        {"text": "east", "coverage": pytest.approx(0.8), "nearest": 0},
        {"text": "north", "coverage": pytest.approx(0.6), "nearest": 0},
    ]
    features = found.named_features
    assert features["coverage"] == pytest.approx(0.7) and features["mean_cosine"] == pytest.approx(1.4 / math.sqrt(2))


def test_the_order_of_the_documents_sentences_changes_no_feature() -> None:
    document, summary = made_up_text(7, 7), made_up_text(3, 8)
    order = np.random.default_rng(0).permutation(7)
    shuffled = TextVectors(
        tuple(document.units[place] for place in order),
        document.vectors[order],
        np.concatenate([document.tokens[document.owners == place] for place in order]),
        document.owners,
    )
    assert align(shuffled, summary).features == pytest.approx(align(document, summary).features, abs=1e-6)


def test_a_summary_without_known_tokens_matches_nothing() -> None:
    document, summary = made_up_text(4, 1), made_up_text(2, 2, tokens=0)
    found = align(document, summary)
    assert dict(zip(FEATURES, found.features.tolist(), strict=True))["token_match"] == 0.0
    assert found.sentence_match.tolist() == [0.0, 0.0]


def test_a_document_sentence_without_tokens_is_no_neighbour() -> None:
    document, summary = made_up_text(3, 5), made_up_text(1, 6)
    kept = document.owners != 1
    gap = replace(document, tokens=document.tokens[kept], owners=document.owners[kept])
    whole = TextVectors(gap.units[::2], gap.vectors[::2], gap.tokens, gap.owners // 2)
    assert np.array_equal(match_tokens(gap, summary), match_tokens(whole, summary))
