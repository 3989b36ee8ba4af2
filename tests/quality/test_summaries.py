"""Scoring: results, and that it measures more than length and copied words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import movers
from movers import reference_free_summary_quality as quality
from movers.errors import InputError
from movers.quality.aspects import ASPECTS
from movers.quality.model import load_model
from movers.quality.units import split_units

QUALITY = "reference_free_summary_quality"

DOCUMENT = (
    "A storm hit the coast of Lorne on Monday night. Waves broke the old sea wall of Porton and flooded two streets. "
    "Forty families spent the night in the village school. Firefighters pumped water out of cellars until the morning. "
    "Nobody was hurt, but several shops lost their goods. Mayor Anna Keller said the wall had been too low for years. "
    "The county promised to pay half of a new one. Engineers from Hamberg will start to plan it in March. "
    "Fishing boats had left the harbour before the storm. The railway to Hamberg was closed until Tuesday noon. "
    "Schools opened again on Wednesday. Volunteers from nearby villages brought blankets and soup. "
    "The last storm of this strength came in 1987. A new wall should stand before next winter, Keller said."
)
GOOD = (
    "A storm broke the sea wall of Porton and flooded two streets. Forty families spent the night in the school. "
    "The county will pay half of a new wall."
)
OTHER_DOCUMENT = (
    "The central bank raised its interest rate to four percent on Thursday. It was the third rise this year. "
    "Governor Paul Hart said that prices were still growing too fast. Shares fell after the decision. "
    "Economists expect one more rise in the autumn. House builders warned that loans become too dear."
)
OTHER_GOOD = "The central bank raised its interest rate for the third time this year because prices grow too fast."


def score(summary: str, document: str = DOCUMENT) -> float:
    return quality([summary], [document])["scores"][0]


def test_the_own_summary_scores_far_above_anothers() -> None:
    scores = quality([GOOD, OTHER_GOOD, OTHER_GOOD, GOOD], [DOCUMENT, DOCUMENT, OTHER_DOCUMENT, OTHER_DOCUMENT])[
        "scores"
    ]
    assert scores[0] > 0.25 > 0.05 > scores[1]
    assert scores[2] > 0.25 > 0.05 > scores[3]


def test_the_papers_model_comes_by_name() -> None:
    result = quality([GOOD, OTHER_GOOD], [DOCUMENT] * 2, model="paper")
    own, other = result["scores"]
    assert own > 0.5 > other and not set(ASPECTS) & set(result)
    assert "model:paper@" in result["signature"] and "text:cross" in result["signature"]
    record = load_model("paper").record
    assert record["data"]["documents"] > 2000 and record["options"]["negatives"] == "mix"
    assert (Path(movers.__file__).parent / "quality" / "paper" / "model.safetensors").stat().st_size < 25e6


def aspects(summary: str) -> dict[str, float]:
    result = quality([summary], [DOCUMENT])
    return {name: result[name][0] for name in ASPECTS}


@pytest.mark.parametrize(
    ("old", "new", "least"),
    [
        ("Porton", "Manchester", 0.1),
        ("Forty", "Ninety", 0.1),
        ("will pay", "will not pay", 0.1),
        ("The county will pay half of a new wall.", "The queen opened a hospital in Leeds.", 0.1),
    ],
)
def test_a_wrong_fact_lowers_faithfulness_and_the_score(old: str, new: str, least: float) -> None:
    wrong = GOOD.replace(old, new)
    assert aspects(wrong)["faithfulness"] < aspects(GOOD)["faithfulness"] - least
    assert score(wrong) < score(GOOD) - 0.02


def test_a_correct_paraphrase_is_more_faithful_than_a_copied_falsehood() -> None:
    texts = json.loads((Path(movers.__file__).parent / "data" / "demo.json").read_text())
    paraphrase = next(one["text"] for one in texts["candidates"] if one["name"] == "paraphrased")
    first, second, *_ = split_units(texts["document"], "sentences")
    false = [
        first.replace("Tuesday", "Friday"),
        first.replace("stopped", "never stopped"),
        second.replace("four", "nine"),
    ]
    assert all(one not in (first, second) for one in false)
    found = quality([paraphrase, *false], [texts["document"]] * 4)["faithfulness"]
    assert found[0] > max(found[1:]) + 0.05


def test_repetition_lowers_its_aspect_and_the_score() -> None:
    assert aspects(f"{GOOD} {GOOD}")["non_repetition"] < 0.6 < 1.0 == aspects(GOOD)["non_repetition"]
    assert score(f"{GOOD} {GOOD}") < score(GOOD)


def test_coverage_grows_with_what_is_said_and_not_with_length() -> None:
    first, second, third = (one + "." for one in GOOD.rstrip(".").split(". "))
    assert aspects(first)["coverage"] < aspects(f"{first} {second}")["coverage"] < aspects(GOOD)["coverage"]
    assert aspects(f"{GOOD} {GOOD}")["coverage"] == pytest.approx(aspects(GOOD)["coverage"])


@pytest.mark.parametrize("blank", ["", "  \n\t", "\u200b"])
def test_a_blank_summary_scores_zero(blank: str) -> None:
    result = quality([blank, GOOD], [DOCUMENT, blank])
    assert result["scores"] == [0.0, 0.0]
    assert result["n_empty"] == 2


def test_several_documents_count_alike_or_are_summed() -> None:
    alone = quality([GOOD, GOOD], [DOCUMENT, OTHER_DOCUMENT])["scores"]
    mean = quality([GOOD], [[DOCUMENT, OTHER_DOCUMENT]])
    total = quality([GOOD], [[DOCUMENT, OTHER_DOCUMENT]], doc_reduce="sum")
    assert mean["scores"][0] == pytest.approx(np.mean(alone), abs=1e-6)
    assert total["scores"][0] == pytest.approx(np.sum(alone), abs=1e-6)
    assert "docs:mean" in mean["signature"] and "docs:sum" in total["signature"]


def test_a_pair_scores_the_same_alone_in_any_batch_and_with_any_threads() -> None:
    rows = [(GOOD, DOCUMENT), (OTHER_GOOD, OTHER_DOCUMENT), ("Rain fell.", DOCUMENT), (OTHER_GOOD, DOCUMENT)]
    alone = [quality([summary], [document], threads=1)["scores"][0] for summary, document in rows]
    movers.load_encoder("all-MiniLM-L6-v2").cache.clear()
    order = [2, 0, 3, 1]
    mixed = quality([rows[n][0] for n in order], [rows[n][1] for n in order], threads=3, batch_size=2)["scores"]
    assert mixed == pytest.approx([alone[n] for n in order], abs=1e-6)


def test_a_long_document_is_read_whole() -> None:
    filler = " ".join(f"Paragraph {n} speaks of weather station {n} and its readings." for n in range(150))
    result = quality([GOOD], [f"{filler} {DOCUMENT}"], return_alignment=True)
    assert result["n_truncated"] == 0
    alignment = result["alignments"][0][0]
    assert len(alignment["document"]) == 150 + 14
    assert min(entry["nearest"] for entry in alignment["summary"]) >= 150  # found behind all of the filler


def test_the_alignment_says_what_is_supported_and_covered() -> None:
    summary = "Forty families spent the night in the school. The queen opened a new hospital in Leeds."
    result = quality([summary], [DOCUMENT], return_alignment=True)
    alignment = result["alignments"][0][0]
    supported, invented = alignment["summary"]
    assert supported["support"] > 0.8 > 0.5 > invented["support"]
    assert supported["faithfulness"] > 0.8 > 0.3 > invented["faithfulness"]
    assert (supported["unknown"], invented["unknown"]) == ([], ["Leeds"])
    assert alignment["document"][supported["nearest"]]["text"].startswith("Forty families spent the night")
    covered = [entry for entry in alignment["document"] if entry["covered"]]
    assert [(one["text"][:14], one["nearest"]) for one in covered] == [("Forty families", 0)]
    assert alignment["score"] == result["scores"][0]
    json.dumps(result)


@pytest.mark.parametrize(
    ("predictions", "sources", "options", "message"),
    [
        (
            ["a"],
            ["b"],
            {"model": "nowhere"},
            "model: expected 'aspects', 'paper', .* or a folder .*, but got 'nowhere'",
        ),
        (["a"], ["b"], {"model": 3}, "model: expected 'aspects', 'paper', .* but got '3'"),
        (["a"], ["b"], {"doc_reduce": "max"}, "doc_reduce: expected one of 'mean', 'sum', but got 'max'"),
        (["a"], ["b"], {"multi_ref": "max"}, "unknown option 'multi_ref'"),
        (["a"], [[]], {}, r"sources\[0\]: expected at least one text"),
    ],
)
def test_wrong_input_is_named(predictions: Any, sources: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"reference_free_summary_quality: {message}"):
        quality(predictions, sources, **options)


def test_references_in_place_of_documents_are_an_error_that_says_what_to_pass() -> None:
    for call in (lambda: quality([GOOD], references=[GOOD]), lambda: movers.score_many([QUALITY], [GOOD], [GOOD])):
        with pytest.raises(InputError, match=f"^{QUALITY}: .*pass predictions and sources=documents"):
            call()


def test_a_damaged_model_is_an_error_that_names_its_folder(tmp_path: Path) -> None:
    for path in (Path(movers.__file__).parent / "quality" / "paper").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[: 2000 if path.suffix == ".safetensors" else None])
    with pytest.raises(InputError, match=f"model: {str(tmp_path)!r} is incomplete or damaged"):
        quality(["a"], ["b"], model=tmp_path)


@pytest.mark.filterwarnings("ignore:.*the encoder does not know")
def test_rows_with_unknown_pieces_are_counted_and_not_taken_for_a_copy() -> None:
    documents = ["ฉันรักแมว", "สวัสดีชาวโลก"]
    result = quality(documents, documents[::-1])
    assert result["n_unknown"] == 2
    alignment = quality(documents[:1], documents[1:], return_alignment=True)["alignments"][0][0]
    assert alignment["summary"][0]["faithfulness"] <= 0.5
    assert quality(documents, documents)["faithfulness"] == pytest.approx([1.0, 1.0], abs=1e-6)
