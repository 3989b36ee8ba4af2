"""Metrics of common words to compare with: ROUGE, BLEU and chrF, through the packages that maintain them.

They come with the extra ``benchmarks`` (``pip install "movers[benchmarks]"``) and have the form of every metric here:
a function of predictions and references that returns ``score``, ``scores`` and ``signature``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

__all__ = ["LEXICAL_METRICS", "bleu", "chrf", "rouge"]

_ROUGE_VARIANTS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def _package(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'{name} needs the package {module}: pip install "movers[benchmarks]".') from error


def _references_of_each(
    metric: str, predictions: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[list[str]]:
    """References as one list for each prediction, checked."""
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError(f"{metric}: `predictions` and `references` must be lists of texts; got a text.")
    if len(predictions) != len(references):
        raise ValueError(
            f"{metric}: `references` must be as long as `predictions`: expected {len(predictions)}, "
            f"got {len(references)}."
        )
    if not predictions:
        raise ValueError(f"{metric}: `predictions` must hold at least one text; got none.")
    listed = [[own] if isinstance(own, str) else list(own) for own in references]
    for row, (prediction, own) in enumerate(zip(predictions, listed, strict=True)):
        if not isinstance(prediction, str):
            raise ValueError(f"{metric}: `predictions`, row {row}: expected a text, got {prediction!r}.")
        if not own or not all(isinstance(reference, str) for reference in own):
            raise ValueError(f"{metric}: `references`, row {row}: expected a text or a list of texts, got {own!r}.")
    return listed


def _result(scores: list[float], signature: str) -> dict[str, Any]:
    return {"score": sum(scores) / len(scores), "scores": scores, "signature": signature}


def rouge(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    variant: str = "rougeL",
    stemmer: bool = False,
) -> dict[str, Any]:
    """ROUGE F-measure in 0–1 of each prediction, through ``rouge-score``; several references: the best.

    Parameters
    ----------
    variant : {"rouge1", "rouge2", "rougeL", "rougeLsum"}
    stemmer : bool
        Compare Porter stems instead of words.
    """
    if variant not in _ROUGE_VARIANTS:
        raise ValueError(f"rouge: `variant` must be one of {', '.join(_ROUGE_VARIANTS)}; got {variant!r}.")
    scorer = _package("rouge_score.rouge_scorer", "rouge").RougeScorer([variant], use_stemmer=stemmer)
    listed = _references_of_each("rouge", predictions, references)
    scores = [
        float(scorer.score_multi(own, prediction)[variant].fmeasure)
        for prediction, own in zip(predictions, listed, strict=True)
    ]
    return _result(scores, f"rouge|variant:{variant}|stemmer:{stemmer}|refs:max|v:{version('rouge-score')}")


def bleu(predictions: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Any]:
    """Sentence BLEU in 0–1 of each prediction, through sacreBLEU (exponential smoothing, effective order)."""
    return _sacrebleu("bleu", predictions, references, lambda package: package.BLEU(effective_order=True))


def chrf(
    predictions: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]], *, word_order: int = 0
) -> dict[str, Any]:
    """Sentence chrF in 0–1 of each prediction, through sacreBLEU; ``word_order=2`` is chrF++."""
    return _sacrebleu("chrf", predictions, references, lambda package: package.CHRF(word_order=word_order))


def _sacrebleu(
    name: str,
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    build: Callable[[Any], Any],
) -> dict[str, Any]:
    metric = build(_package("sacrebleu.metrics", name))
    listed = _references_of_each(name, predictions, references)
    scores = [
        metric.sentence_score(prediction, own).score / 100 for prediction, own in zip(predictions, listed, strict=True)
    ]
    return _result(scores, f"{name}|{metric.get_signature()}")


LEXICAL_METRICS: dict[str, Callable[..., dict[str, Any]]] = {"rouge": rouge, "bleu": bleu, "chrf": chrf}
