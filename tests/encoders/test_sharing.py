"""What metrics share: one pass over each distinct text, and the vectors that were kept from earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiny import tiny_model, tiny_tokenizer

import movers
from movers.encoders.cache import VECTORS, VectorCache
from movers.encoders.contextual import ContextualEncoder
from movers.encoders.layers import Aggregation
from movers.registry import find_metric
from movers.scores.engine import score

TEXTS = ["a cat sat on the mat", "the old dog runs", "snow is in the box", "a man sells snow", "it is a big red box"]
OTHERS = ["the cat sat on it", "a big dog runs", "the man sells snow", "snow is in the box", "a cat sat on the mat"]
DISTINCT = len({*TEXTS, *OTHERS})


class Counter:
    """Rows (texts, or windows of texts) that go through a model."""

    def __init__(self, model: Any) -> None:
        self.rows = 0
        self.handle = model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, module: Any, arguments: Any, keywords: Any) -> None:
        self.rows += len(keywords["input_ids"])

    def __call__(self) -> int:
        """Rows since the last time it was asked."""
        rows, self.rows = self.rows, 0
        return rows


@pytest.fixture
def make() -> Iterator[Callable[..., tuple[ContextualEncoder, Counter]]]:
    """Tiny encoders of the test's own that count."""
    counters = []

    def build(capacity: int | None = None, seed: int = 3) -> tuple[ContextualEncoder, Counter]:
        model = tiny_model("bert", seed=seed)
        counters.append(Counter(model))
        encoder = ContextualEncoder(model, tiny_tokenizer("bert"), "tiny", f"{seed:08}", VectorCache(capacity))
        return encoder, counters[-1]

    yield build
    for counter in counters:
        counter.handle.remove()


@pytest.fixture
def combined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which aggregations are computed, batch by batch."""
    seen: list[str] = []
    plain = ContextualEncoder._combine

    def note(self: ContextualEncoder, output: Any, kind: Aggregation, keep: Any) -> Any:
        seen.append(str(kind))
        return plain(self, output, kind, keep)

    monkeypatch.setattr(ContextualEncoder, "_combine", note)
    return seen


@pytest.mark.parametrize("metric", [movers.moverscore, movers.bertscore_emd])
def test_each_distinct_text_is_encoded_once_a_call(make: Any, metric: Callable[..., dict[str, Any]]) -> None:
    encoder, rows = make(capacity=0)  # nothing is kept, so that every pass shows
    metric(
        TEXTS * 3, [[other, text, "the mat"] for other, text in zip(OTHERS * 3, TEXTS * 3, strict=True)], model=encoder
    )
    assert rows() == DISTINCT + 1
    metric(TEXTS, TEXTS, model=encoder, multi_ref="mean", return_alignment=True)
    assert rows() == len(TEXTS)


def test_vectors_are_kept_between_calls(make: Any) -> None:
    encoder, rows = make()
    first = movers.moverscore(TEXTS, OTHERS, model=encoder)
    assert rows() == DISTINCT
    assert movers.moverscore(TEXTS, OTHERS, model=encoder) == first
    assert rows() == 0
    movers.moverscore([*TEXTS, "a new cat"], [*OTHERS, "a dog"], model=encoder, n_gram=2, idf="corpus")
    assert rows() == 2


def test_other_layers_of_kept_texts_are_encoded_anew_and_then_kept_too(make: Any) -> None:
    encoder, rows = make()
    movers.moverscore(TEXTS, OTHERS, model=encoder)
    movers.bertscore_emd(TEXTS, OTHERS, model=encoder)
    assert rows() == 2 * DISTINCT
    movers.moverscore(TEXTS, OTHERS, model=encoder)
    movers.bertscore_hungarian(TEXTS, OTHERS, model=encoder)
    assert rows() == 0


def test_metrics_built_with_one_shared_pass_encode_every_text_once(make: Any, combined: list[str]) -> None:
    encoder, rows = make()
    shared = movers.SharedPass()
    specs = [find_metric(name) for name in ("moverscore", "bertscore_hungarian", "bertscore_emd")]
    metrics = [spec.build(spec.parse({"model": encoder, "shared_pass": shared})) for spec in specs]
    results = [score(metric, TEXTS, [[text] for text in OTHERS]) for metric in metrics]
    assert rows() == DISTINCT
    assert sorted(combined) == ["last", "pmeans"]
    alone, _ = make(capacity=0)
    for spec, result in zip(specs, results, strict=True):
        expected = spec.function(TEXTS, OTHERS, model=alone)
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
        assert result["signature"] == expected["signature"]


def test_a_call_without_the_shared_pass_computes_nothing_for_others(make: Any, combined: list[str]) -> None:
    encoder, _ = make(capacity=0)
    movers.moverscore(TEXTS, OTHERS, model=encoder, shared_pass=movers.SharedPass())
    assert combined == ["pmeans"]
    movers.bertscore_emd(TEXTS, OTHERS, model=encoder)
    assert combined == ["pmeans", "last"]


def test_several_metrics_in_one_call_share_the_pass(minilm: Any, combined: list[str]) -> None:
    minilm.cache.clear()
    rows = Counter(minilm.model)
    texts = [f"{text} again" for text in TEXTS]
    results = movers.score_many(["moverscore", "bertscore_emd", "bertscore_hungarian[layer=3]"], texts, OTHERS)
    assert rows() == len({*texts, *OTHERS})
    assert sorted(combined) == ["3", "last", "pmeans"]
    rows.handle.remove()
    alone = movers.bertscore_hungarian(texts, OTHERS, layer=3)
    assert results["bertscore_hungarian[layer=3]"]["scores"] == pytest.approx(alone["scores"], abs=1e-6)


def test_one_budget_serves_all_encoders_and_two_pairs_of_objects_are_kept() -> None:
    from movers.encoders import load

    tokenizer = tiny_tokenizer()
    encoders = [movers.load_encoder((tiny_model(seed=40 + number), tokenizer)) for number in range(4)]
    assert all(encoder.cache is VECTORS for encoder in encoders)
    assert [*load._pairs.values()] == encoders[2:]
    again = movers.load_encoder(encoders[3].objects)
    assert again is encoders[3]


def test_a_bounded_cache_evicts_and_changes_no_score(make: Any) -> None:
    roomy, _ = make()
    expected = movers.bertscore_emd(TEXTS, OTHERS, model=roomy)
    entry = roomy.cache.size / len(roomy.cache)
    encoder, rows = make(capacity=int(3.5 * entry))
    for _ in range(2):
        result = movers.bertscore_emd(TEXTS, OTHERS, model=encoder)
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
        assert 0 < len(encoder.cache) < DISTINCT
        assert encoder.cache.size <= encoder.cache.capacity
    assert DISTINCT < rows() <= 2 * DISTINCT


@pytest.mark.parametrize("metric", [movers.moverscore, movers.bertscore_emd])
def test_scores_with_and_without_a_cache_are_equal(make: Any, metric: Callable[..., dict[str, Any]]) -> None:
    kept, _ = make()
    metric(TEXTS[::-1], TEXTS, model=kept)  # vectors from other batches
    with_cache = metric(TEXTS, OTHERS, model=kept)
    without = metric(TEXTS, OTHERS, model=make(capacity=0)[0])
    assert with_cache["scores"] == pytest.approx(without["scores"], abs=1e-6)
    assert with_cache["signature"] == without["signature"]


def test_windows_and_cuts_are_kept_apart(make: Any) -> None:
    encoder, _ = make()
    long = " ".join(TEXTS) + " " + " ".join(OTHERS)
    whole = movers.moverscore([long], ["a cat"], model=encoder)
    narrow = movers.moverscore([long], ["a cat"], model=encoder, window=16)
    with pytest.warns(UserWarning, match="were cut"):
        cut = movers.moverscore([long], ["a cat"], model=encoder, truncation="cut")
    assert len({result["scores"][0] for result in (whole, narrow, cut)}) == 3
    assert movers.moverscore([long], ["a cat"], model=encoder) == whole
    assert movers.moverscore([long], ["a cat"], model=encoder, truncation="cut")["n_truncated"] == 1


def test_two_encoders_do_not_share_vectors(make: Any) -> None:
    one, _ = make(seed=3)
    other, rows = make(seed=4)
    first = movers.bertscore_emd(TEXTS, OTHERS, model=one)["scores"]
    second = movers.bertscore_emd(TEXTS, OTHERS, model=other)["scores"]
    assert rows() == DISTINCT
    assert first != pytest.approx(second, abs=1e-4)
