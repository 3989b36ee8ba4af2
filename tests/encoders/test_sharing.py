"""What metrics share: one pass over each distinct text, and the vectors that were kept from earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import ROOT, tiny_model, tiny_tokenizer

import movers
from movers.encoders.cache import VectorCache
from movers.encoders.contextual import ContextualEncoder

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
def minilm_rows(minilm: Any) -> Iterator[Counter]:
    """Counts what goes through the default model, with an empty cache and nothing announced."""
    minilm.cache.clear()
    minilm._wanted.clear()
    counter = Counter(minilm.model)
    yield counter
    counter.handle.remove()
    minilm.cache.clear()
    minilm._wanted.clear()


@pytest.mark.parametrize("metric", [movers.moverscore, movers.bertscore_hungarian, movers.bertscore_emd])
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
    # Both are known by now: a new text is read once for both.
    movers.moverscore(["a red mat"], ["a red dog"], model=encoder)
    movers.bertscore_emd(["a red mat"], ["a red dog"], model=encoder)
    assert rows() == 2


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


@pytest.mark.parametrize("metric", [movers.moverscore, movers.bertscore_hungarian, movers.bertscore_emd])
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


def test_combined_modules_encode_the_corpus_once(minilm_rows: Counter, tmp_path: Path) -> None:
    import evaluate

    names = ["moverscore", "bertscore_hungarian", "bertscore_emd"]
    modules = [evaluate.load(str(ROOT / "metrics" / name), cache_dir=str(tmp_path / name)) for name in names]
    result = evaluate.combine(modules).compute(predictions=TEXTS, references=OTHERS)
    assert minilm_rows() == DISTINCT
    for name in names:
        alone = getattr(movers, name)(TEXTS, OTHERS)
        assert result[f"{name}_score"] == pytest.approx(alone["score"], abs=1e-6)
    assert minilm_rows() == 0


def test_what_is_announced_changes_no_score(minilm: Any, minilm_rows: Counter) -> None:
    from movers.encoders import announce
    from movers.encoders.layers import Aggregation

    before = movers.moverscore(TEXTS, OTHERS)
    minilm.cache.clear()
    for layer in range(6):
        announce("all-MiniLM-L6-v2", Aggregation("layer", layer))
    after = movers.moverscore(TEXTS, OTHERS)
    assert after["scores"] == pytest.approx(before["scores"], abs=1e-6)
    assert after["signature"] == before["signature"]
    assert minilm_rows() == 2 * DISTINCT
