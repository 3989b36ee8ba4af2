from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plain import DATA, PREDICTIONS, REFERENCES, check_alignment, cosines, tokens, transport
from scipy.optimize import linear_sum_assignment

import movers
from movers import InputError
from movers.scores.bertscore import emd_scores, f1_of

Metric = Callable[..., dict[str, Any]]
every_metric = pytest.mark.parametrize(
    "metric", [movers.bertscore_hungarian, movers.bertscore_emd], ids=lambda metric: metric.__name__
)
PARTS = ("precision", "recall", "f1")
PLAIN, REPEATED = "The keeper fed the seals.", "The keeper fed the seals the seals the seals."


def harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)


def parts_of(result: dict[str, Any], row: int) -> list[float]:
    return [result[part][row] for part in PARTS]


# ---------------------------------------------------------------------------------------------------------------------
# Greedy alignments against the bert-score package


@pytest.mark.parametrize(("layer", "idf"), [(6, False), (3, True)])
def test_greedy_scores_equal_those_of_the_bert_score_package(layer: int, idf: bool) -> None:
    values = json.loads((DATA / "bertscore_reference.json").read_text())["values"]
    expected = values[f"layer {layer}, idf {'on' if idf else 'off'}"]
    assert np.std(expected["f1"]) > 0.1  # the pairs tell right from wrong
    for metric in (movers.bertscore_emd, movers.bertscore_hungarian):
        result = metric(PREDICTIONS, REFERENCES, alignment="greedy", layer=layer, idf=idf)
        for part in PARTS:
            assert len(expected[part]) == len(PREDICTIONS) >= 40
            assert result[part] == pytest.approx(expected[part], abs=1e-4)


# ---------------------------------------------------------------------------------------------------------------------
# Optimal alignments against SciPy, from the vectors of transformers


def slow_assignment(similarity: NDArray[Any]) -> tuple[float, float]:
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    total = similarity[rows, columns].sum()
    return total / similarity.shape[0], total / similarity.shape[1]


def test_assignments_equal_scipys_and_greedy_ones_a_plain_computation() -> None:
    texts = PREDICTIONS[:20], REFERENCES[:20]
    optimal = movers.bertscore_hungarian(*texts)
    greedy = movers.bertscore_hungarian(*texts, alignment="greedy", greedy_special=False, return_alignment=True)
    for row, (one, other) in enumerate(zip(*texts, strict=True)):
        similarity = cosines(tokens(one)[1], tokens(other)[1])
        best = similarity.max(axis=1).mean(), similarity.max(axis=0).mean()
        for result, (precision, recall) in ((optimal, slow_assignment(similarity)), (greedy, best)):
            assert parts_of(result, row) == pytest.approx([precision, recall, harmonic(precision, recall)], abs=1e-5)
        assert greedy["alignments"][row][0]["distance"] == pytest.approx(1 - best[0], abs=1e-5)


def test_transport_equals_a_linear_program_on_plain_vectors() -> None:
    result = movers.bertscore_emd(PREDICTIONS[:20], REFERENCES[:20], return_alignment=True)
    for row in range(20):
        a, b = tokens(PREDICTIONS[row])[1], tokens(REFERENCES[row])[1]
        similarity = cosines(a, b)
        h, r = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
        h, r = h / h.sum(), r / r.sum()
        plan, cost = transport(h, r, 1 - similarity)
        # Vectors of real texts have no ties, so that the optimal plan is unique.
        precision = (plan * similarity / h[:, None]).sum() / len(h)
        recall = (plan * similarity / r[None, :]).sum() / len(r)
        assert parts_of(result, row) == pytest.approx([precision, recall, harmonic(precision, recall)], abs=1e-4)
        assert result["alignments"][row][0]["distance"] == pytest.approx(cost, abs=1e-5)


def test_idf_masses_come_from_the_references_table_on_both_sides() -> None:
    predictions, references = PREDICTIONS[:10], REFERENCES[:10]
    result = movers.bertscore_emd(predictions, references, idf=True, return_alignment=True)
    documents = [set(tokens(text)[0]) for text in references]

    def masses(ids: list[int]) -> NDArray[Any]:
        frequencies = [sum(number in document for document in documents) for number in ids]
        raw = np.log((len(documents) + 1) / (np.array(frequencies) + 1))
        return raw / raw.sum()

    for row in range(10):
        (ids_a, a), (ids_b, b) = tokens(predictions[row]), tokens(references[row])
        h, r = masses(ids_a), masses(ids_b)
        alignment = result["alignments"][row][0]
        assert [unit["weight"] for unit in alignment["prediction"]] == pytest.approx(h, abs=1e-9)
        assert [unit["weight"] for unit in alignment["reference"]] == pytest.approx(r, abs=1e-9)
        assert alignment["distance"] == pytest.approx(transport(h, r, 1 - cosines(a, b))[1], abs=1e-5)
    texts = ["the dog"], ["the dog ran"]  # every token occurs in every reference
    with pytest.warns(UserWarning, match="no mass under these weights; its units weigh the same"):
        greedy = movers.bertscore_emd(*texts, alignment="greedy", idf=True)
    uniform = movers.bertscore_emd(*texts, alignment="greedy")
    assert (greedy["precision"], greedy["recall"]) == (uniform["precision"], uniform["recall"])


# ---------------------------------------------------------------------------------------------------------------------
# The definitions on given similarities


def random_case(seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Cosines of random vectors of random number, and the vectors' norms."""
    draw = np.random.default_rng(seed)
    m, k = draw.integers(1, 12, size=2)
    a, b = draw.normal(size=(m, 6)), draw.normal(size=(k, 6))
    return cosines(a, b), np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)


def test_tokens_of_zero_mass_are_left_out_of_sums_and_counts() -> None:
    similarity, a, b = next(case for case in map(random_case, range(99)) if min(case[0].shape) > 3)
    without = emd_scores(np.delete(np.delete(similarity, 1, 0), 0, 1), np.delete(a, 1), np.delete(b, 0))
    a[1] = b[0] = 0.0
    precision, recall, flow = emd_scores(similarity, a, b)
    assert (precision, recall) == pytest.approx(without[:2], abs=1e-12)
    assert not flow[1].any() and not flow[:, 0].any()


def test_f1_is_the_harmonic_mean_and_0_where_there_is_none() -> None:
    assert f1_of(0.5, 1.0) == pytest.approx(2 / 3)
    assert f1_of(0.0, 0.0) == f1_of(-0.5, 0.25) == f1_of(-0.25, 0.25) == f1_of(-1.0, -1.0) == f1_of(-0.3, 0.31) == 0.0


# ---------------------------------------------------------------------------------------------------------------------
# Results, and baselines


@every_metric
def test_equal_texts_are_tied(metric: Metric) -> None:
    """At exactly 1, whatever float32 makes of their vectors, so that ranks do not depend on rounding."""
    assert set(metric(PREDICTIONS, PREDICTIONS)["scores"]) == {1.0}


@every_metric
def test_large_pairs_which_wait_for_each_other_get_the_same_score(
    metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = metric(PREDICTIONS[:6], REFERENCES[:6])
    monkeypatch.setattr("movers.scores.metric._MANY_CELLS", 0)
    assert metric(PREDICTIONS[:6], REFERENCES[:6]) == result


@every_metric
def test_alignments_reproduce_the_score(metric: Metric) -> None:
    result = metric(PREDICTIONS[:6], REFERENCES[:6], return_alignment=True)
    for row, (alignment,) in enumerate(result["alignments"]):
        assert (alignment["reference_index"], alignment["score"]) == (0, result["scores"][row])
        units = alignment["prediction"]
        assert {unit["kind"] for unit in units} == {"token"}
        assert "".join(unit["text"] for unit in units) == PREDICTIONS[row].replace(" ", "")
        h, r = ([unit["weight"] for unit in alignment[side]] for side in ("prediction", "reference"))
        moves = [(1 - move["cost"], move["i"], move["j"], move["mass"]) for move in alignment["flows"]]
        if metric is movers.bertscore_emd:
            check_alignment(alignment)
            precision = sum(mass * value / h[i] for value, i, _, mass in moves) / len(h)
            recall = sum(mass * value / r[j] for value, _, j, mass in moves) / len(r)
        else:
            assert {mass for *_, mass in moves} == {1.0}
            precision, recall = (sum(value for value, *_ in moves) / len(side) for side in (h, r))
        assert (precision, recall) == pytest.approx((result["precision"][row], result["recall"][row]), abs=1e-9)


def test_a_table_of_the_bert_score_package_rescales_greedy_alignments(tmp_path: Path) -> None:
    table = tmp_path / "en.tsv"
    table.write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n5,0.3,0.35,0.32\n6,0.2,0.25,0.22\n")
    texts = PREDICTIONS[:6], REFERENCES[:6]
    options: dict[str, Any] = {"rescale_with_baseline": True, "baseline_path": str(table)}
    for layer, bases in (("last", (0.2, 0.25, 0.22)), (5, (0.3, 0.35, 0.32)), (-2, (0.3, 0.35, 0.32))):
        plain = movers.bertscore_emd(*texts, alignment="greedy", layer=layer)
        result = movers.bertscore_emd(*texts, alignment="greedy", layer=layer, **options)
        for part, base in zip(PARTS, bases, strict=True):
            expected = [(value - base) / (1 - base) for value in plain[part]]
            assert result[part] == pytest.approx(expected, abs=1e-12)
    for option, special in (({}, "match"), ({"greedy_special": False}, "drop")):
        signature = movers.bertscore_emd(["a"], ["b"], alignment="greedy", **option)["signature"]
        assert f"|align:greedy|special:{special}|" in signature
    for other in ({}, {"alignment": "greedy", "layer": "mean"}):
        with pytest.raises(InputError, match="is for greedy alignments of one layer"):
            movers.bertscore_emd(*texts, **options, **other)
    with pytest.raises(InputError, match=r"no such file: .*none\.json"):
        movers.bertscore_emd(["a"], ["b"], rescale=str(tmp_path / "none.json"))
