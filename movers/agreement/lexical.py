"""ROUGE, BLEU and chrF for comparison, computed by rouge-score and sacreBLEU (extra ``lexical``).

Like the other metrics, they are functions of predictions and references that return ``score``, ``scores`` and
``signature``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Literal, get_args

from movers.errors import import_extra
from movers.inputs import check_choice, check_options, check_pairs

References = Sequence[str] | Sequence[Sequence[str]]
Variant = Literal["rouge1", "rouge2", "rougeL", "rougeLsum"]


def rouge(
    predictions: Sequence[str], references: References, *, variant: Variant = "rougeL", stemmer: bool = False
) -> dict[str, object]:
    """ROUGE F-measure in 0–1 of each prediction, of words or Porter stems; with several references, the best."""
    check_choice("rouge", "variant", variant, get_args(Variant))
    rows = zip(*check_pairs("rouge", predictions, references), strict=True)
    package = import_extra("rouge_score.rouge_scorer", "lexical", "rouge needs the package rouge-score")
    scorer = package.RougeScorer([variant], use_stemmer=stemmer)
    scores = [float(scorer.score_multi(group, text)[variant].fmeasure) for text, group in rows]
    signature = f"rouge|variant:{variant}|stemmer:{stemmer}|refs:max|v:{version('rouge-score')}"
    return {"score": sum(scores) / len(scores), "scores": scores, "signature": signature}


def bleu(predictions: Sequence[str], references: References) -> dict[str, object]:
    """Sentence BLEU in 0–1 of each prediction (exponential smoothing, effective order)."""
    return _sentence_scores("bleu", "BLEU", predictions, references, effective_order=True)


def chrf(predictions: Sequence[str], references: References, *, word_order: int = 0) -> dict[str, object]:
    """Sentence chrF in 0–1 of each prediction; ``word_order=2`` is chrF++."""
    return _sentence_scores("chrf", "CHRF", predictions, references, word_order=word_order)


def _sentence_scores(
    name: str, kind: str, predictions: Sequence[str], references: References, **options: object
) -> dict[str, object]:
    package = import_extra("sacrebleu.metrics", "lexical", f"{name} needs the package sacrebleu")
    metric = getattr(package, kind)(**options)
    rows = zip(*check_pairs(name, predictions, references), strict=True)
    scores = [metric.sentence_score(text, group).score / 100 for text, group in rows]
    return {"score": sum(scores) / len(scores), "scores": scores, "signature": f"{name}|{metric.get_signature()}"}


LEXICAL_METRICS: dict[str, Callable[..., dict[str, object]]] = {"rouge": rouge, "bleu": bleu, "chrf": chrf}


def check_lexical_options(name: str, options: Mapping[str, object]) -> None:
    parameters = inspect.signature(LEXICAL_METRICS[name]).parameters.values()
    check_options(name, options, [each.name for each in parameters if each.kind is each.KEYWORD_ONLY])
