"""The metrics by name, without importing any of them: what every door (command line, modules, hooks) goes by."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from movers.inputs import check_options

if TYPE_CHECKING:
    from movers.scores.pairs import Scorer
    from movers.scores.weighing import Corpus

__all__ = ["METRICS", "Metric", "find_metric"]


@dataclass(frozen=True)
class Metric:
    """Where a metric lives.

    Attributes
    ----------
    name, title, summary : str
    home : str
        Module that defines it; imported when it is used.
    options_name : str
        Its options class there.
    scorer_name : str
        The function `(name, options, corpus) → Scorer` there.
    against : {"references", "sources"}
        What predictions are compared with.
    """

    name: str
    title: str
    summary: str
    home: str
    options_name: str
    scorer_name: str
    against: str = "references"

    @property
    def function(self) -> Callable[..., dict[str, Any]]:
        """`function(predictions, references, **options)` → result."""
        return getattr(importlib.import_module(self.home), self.name)

    @property
    def options_class(self) -> Any:
        return getattr(importlib.import_module(self.home), self.options_name)

    def options(self, given: Mapping[str, Any]) -> Any:
        """Checked options object; an unknown name or value is an error that lists the valid ones."""
        kind = self.options_class
        check_options(self.name, given, [item.name for item in fields(kind)])
        return kind(**given).check(self.name)

    def layers(self, given: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """What `announce` takes: its model and what becomes of the layers, if that is known before texts are scored."""
        options = self.options(given)
        wanted = options.layers() if hasattr(options, "layers") else None
        return None if wanted is None else (options.model, wanted)

    def scorer(self, given: Mapping[str, Any], corpus: Corpus | None = None) -> Scorer:
        """The metric with its options settled, to score a stream of pairs; `idf="corpus"` needs the whole corpus."""
        build = getattr(importlib.import_module(self.home), self.scorer_name)
        return build(self.name, self.options(given), corpus)


_JIN = ("movers.scores.bertscore", "BertScoreOptions", "bertscore_scorer")
_ZHAO = ("movers.scores.moverscore", "MoverScoreOptions", "moverscore_scorer")
_CLARK = ("movers.scores.mover_similarity", "MoverSimilarityOptions", "mover_similarity_scorer")

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("wms", "Word Mover's Similarity", "moves words (Clark et al. 2019)", *_CLARK),
        Metric("sms", "Sentence Mover's Similarity", "moves sentences (Clark et al. 2019)", *_CLARK),
        Metric("swms", "Sentence + Word Mover's Similarity", "moves words and sentences (Clark et al. 2019)", *_CLARK),
        Metric("moverscore", "MoverScore", "moves n-grams in context (Zhao et al. 2019)", *_ZHAO),
        Metric("bertscore_hungarian", "BERTScore, one-to-one", "matches each token once (Jin & Gildea 2022)", *_JIN),
        Metric("bertscore_emd", "BERTScore, one-to-many", "moves token mass (Jin & Gildea 2022)", *_JIN),
        Metric(
            "reference_free_summary_quality",
            "Reference-free summary quality",
            "judges a summary by its document (Bao et al. 2020)",
            "movers.quality.scorer",
            "QualityOptions",
            "quality_scorer",
            against="sources",
        ),
    )
}


def find_metric(name: str) -> Metric:
    """The metric of that name.

    >>> find_metric("wsm")
    Traceback (most recent call last):
    ValueError: metric: expected one of wms, sms, swms..., but got 'wsm'...
    """
    if name not in METRICS:
        import difflib

        close = difflib.get_close_matches(name, METRICS, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"metric: expected one of {', '.join(METRICS)}, but got {name!r}{hint}")
    return METRICS[name]
