"""Examples by quartile and corpus statistics, checked by hand."""

from __future__ import annotations

import json

import pytest

from movers.agreement.examples import examples_by_quartile, render_examples, render_statistics, text_statistics
from movers.agreement.judged import JudgedSet, JudgedText

TEXTS = JudgedSet(
    "set",
    tuple(
        JudgedText(str(place), f"Text {place}.", ("One reference.",), {"overall": float(place)}) for place in range(8)
    ),
)
HUMAN = {"overall": [0, 1, 2, 3, 4, 5, 6, 7]}


def test_the_texts_that_are_ranked_most_differently_come_first() -> None:
    metrics = {"good": [10, 11, 12, 13, 14, 15, 16, 17], "odd": [7, 1, 2, 3, 4, 5, 6, 0]}
    found = examples_by_quartile(TEXTS, metrics, HUMAN, 3)
    assert [example.text.id for example in found] == ["0", "7", "1"]
    # With eight scores the quartiles are the two lowest and the two highest.
    assert [example.quartiles for example in found[:2]] == [
        {"good": "bottom", "odd": "top"},
        {"good": "top", "odd": "bottom"},
    ]
    assert found[0].scores == {"good": 10.0, "odd": 7.0}


def test_quartiles_are_those_of_all_scored_texts() -> None:
    metrics = {"good": [None, 1, 2, 3, 4, 5, 6, 7], "flat": [1] * 8}
    found = {example.text.id: example for example in examples_by_quartile(TEXTS, metrics, HUMAN, 8)}
    assert "0" not in found and len(found) == 7
    assert [found[str(place)].quartiles["good"] for place in range(1, 8)] == ["bottom"] * 2 + [""] * 3 + ["top"] * 2
    assert {example.quartiles["flat"] for example in found.values()} == {""}


def test_markdown_marks_the_top_bold_and_the_bottom_in_italics() -> None:
    examples = examples_by_quartile(TEXTS, {"odd": [7, 1, 2, 3, 4, 5, 6, 0]}, HUMAN, 2)
    first, second = render_examples(examples, "markdown").split("\n2. ")
    assert "| odd | **7** |" in first and "| odd | *0* |" in second
    assert first.startswith("1. 0\n\nReference. One reference.\n\nCandidate. Text 0.\n\n")
    assert "0 (bottom quartile)" in render_examples(examples) and "7 (top quartile)" in render_examples(examples)
    row = json.loads(render_examples(examples, "json"))[0]
    assert (row["quartiles"], row["human"]) == ({"odd": "top"}, {"overall": 0.0})
    assert render_examples(examples, "csv").splitlines()[0] == "id,candidate,references,human,scores,quartiles"


def test_statistics_count_tokens_types_and_sentences() -> None:
    fields = {"source": "One long source."}
    texts = (
        JudgedText("a", "The dog barks. The dog runs!", ("A dog, 2 cats.",), {}, fields),
        JudgedText("b", "Rain.", ("A dog, 2 cats.", "It rains."), {}, fields),
    )
    rows = text_statistics(JudgedSet("set", texts))
    assert [list(row.values()) for row in rows] == [
        ["candidates", 2, 7, 5, 3.5, 1.5],  # the dog barks the dog runs / rain
        ["references", 2, 6, 6, 3.0, 1.0],  # each distinct text once
        ["sources", 1, 3, 3, 3.0, 1.0],
    ]
    assert render_statistics(rows, "markdown").splitlines()[2] == "| candidates | 2 | 7 | 5 | 3.5 | 1.5 |"
    assert json.loads(render_statistics(rows, "json")) == rows


@pytest.mark.data
def test_statistics_of_news_summaries_are_those_of_the_paper(judged_file) -> None:
    """Clark et al. Table 7: 3.4 sentences and 65 tokens a text (their tokens include punctuation)."""
    from movers.agreement.readers import read_judged

    judged = read_judged(judged_file("chaganty18_cnndm"), where=["is_reference=false"])
    candidates = text_statistics(judged)[0]
    assert candidates["sentences per text"] == pytest.approx(3.4, abs=0.3)
    assert 50 < candidates["tokens per text"] < 70
