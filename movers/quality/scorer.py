r"""Reference-free summary quality: a summary against its document(s), without a reference (Bao et al. 2020).

.. math:: \mathrm{score}(s, D) = \frac{1}{|D|} \sum_{d \in D} f(d, s) \qquad f(d, s) \in [0, 1]

f is a trained model, see `movers.quality.heads`; with `doc_reduce="sum"` the sum over the documents is not divided, as
in the paper. A blank summary scores 0.

Reference: F. S. Bao et al. End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization.
arXiv:2005.06377, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from movers.inputs import check_choice, check_options, check_pairs
from movers.scores.options import check_running
from movers.scores.pairs import Comparison, Scorer, collect, one_by_one, score_stream
from movers.signature import signature
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.model import QualityModel
    from movers.quality.vectors import EncodedText

__all__ = ["QualityOptions", "compare_vectors", "quality_scorer", "reference_free_summary_quality"]

_NAME = "reference_free_summary_quality"
DocReduce = Literal["mean", "sum"]


@dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """Options of reference_free_summary_quality.

    Parameters
    ----------
    model : str, path or QualityModel
        `"shipped"`, or a folder that `movers train quality` wrote.
    doc_reduce : {"mean", "sum"}
        How the scores against several documents become one; `mean` stays in [0, 1], `sum` is the paper's.
    device, dtype : str
        Where and in which precision the encoder runs.
    batch_tokens : int, optional
        Tokens in a batch of the encoder, padding included.
    threads : int, optional
        Threads that compare; all processors if not given.
    progress : bool, optional
        Show a bar; by default on terminals only, after two seconds.
    """

    model: Any = "shipped"
    doc_reduce: DocReduce = "mean"
    device: str = "auto"
    dtype: str = "float32"
    batch_tokens: int | None = None
    threads: int | None = None
    progress: bool | None = None

    def check(self, metric: str = _NAME) -> QualityOptions:
        """Itself, if every value is valid; a folder that is no model is an error here already."""
        check_choice(metric, "doc_reduce", self.doc_reduce, DocReduce)
        check_running(metric, self)
        from movers.quality.model import check_model

        check_model(self.model)
        return self


def quality_scorer(name: str, options: QualityOptions, corpus: object = None) -> Scorer:
    """The metric with its options settled, to score a stream of (summary, documents)."""
    from movers.quality.model import load_model

    model = load_model(options.model)
    line = {
        "model": model.identity,
        "text": model.config["unit"],
        "head": model.config["head"],
        "docs": options.doc_reduce,
        "dtype": options.dtype,
    }
    common: dict[str, Any] = {"multi_ref": options.doc_reduce, "threads": options.threads, "progress": options.progress}
    if model.config["unit"] == "cross":
        module = model.module

        def read_whole(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
            return iter(enumerate(texts))

        def judge(summary: str, document: str, account: bool) -> Comparison:
            return _compare_texts(module, summary, document, account)

        return Scorer(
            name, signature(name, line | {"window": model.config["window"]}), read_whole, one_by_one(judge), **common
        )
    from movers.encoders import load_encoder
    from movers.quality.vectors import encode_texts

    encoder = load_encoder(model.config["encoder"], device=options.device, dtype=options.dtype)
    if encoder.identity != model.config["encoder_identity"]:
        raise ValueError(
            f"{name}: model: was trained on vectors of {model.config['encoder_identity']}, "
            f"but the encoder found here is {encoder.identity}"
        )
    unit, lang = model.config["unit"], model.config["lang"]

    def read(texts: Sequence[str]) -> Iterator[tuple[int, EncodedText]]:
        return encode_texts(texts, encoder, unit, lang=lang, batch_tokens=options.batch_tokens)

    def compare(pairs: Sequence[tuple[EncodedText, EncodedText]], account: bool) -> list[Comparison]:
        return compare_vectors(model, pairs, account)

    window = getattr(encoder, "sentence_window", None)
    line = {**line, "emb": encoder.identity, "lang": lang, "window": window}
    return Scorer(name, signature(name, line), read, compare, **common)


def compare_vectors(
    model: QualityModel, pairs: Sequence[tuple[EncodedText, EncodedText]], account: bool = False
) -> list[Comparison]:
    """(summary, document) pairs through a head, all in one batch: a pass takes as long for one pair as for many."""
    import torch

    from movers.quality.heads import AlignHead, PairInput, align

    head = model.module
    aligning = isinstance(head, AlignHead)
    # nothing is no summary of anything, not even of nothing
    empty = Comparison(0.0, empty=True, alignment={"summary": [], "document": []} if account else None)
    found = [empty] * len(pairs)
    places = [place for place, (summary, document) in enumerate(pairs) if not summary.blank and not document.blank]
    if not places:
        return found
    inputs, alignments = [], []
    for place in places:
        summary, document = pairs[place]
        alignment = align(document, summary) if aligning or (account and len(summary.tokens)) else None
        inputs.append(PairInput(document, summary, alignment.features if aligning and alignment is not None else None))
        alignments.append(alignment)
    with torch.inference_mode():
        batch = head.collate(inputs)
        parts = head.parts(batch) if aligning else ()
        logits = head.combine(*parts) if aligning else head(batch)
        scores = logits.double().sigmoid().tolist()
    for row, place in enumerate(places):
        told = None
        if account:
            told = _account(*pairs[place], alignments[row])
            if aligning:
                quality, intact = (float(part[row]) for part in parts)
                told["alignment_quality"] = 1 / (1 + math.exp(-quality))
                told["intact"] = intact
                told["features"] = _named(inputs[row].features)
        found[place] = Comparison(scores[row], alignment=told)
    return found


def _named(features: Any) -> dict[str, float]:
    from movers.quality.heads import FEATURES

    return {name: float(value) for name, value in zip(FEATURES, features, strict=True)}


def _account(summary: EncodedText, document: EncodedText, alignment: Any) -> dict[str, Any]:
    """Which summary sentences the document supports, and which parts of the document are covered."""
    if alignment is None:
        return {
            "summary": [{"text": text} for text in summary.units],
            "document": [{"text": t} for t in document.units],
        }
    cosines = alignment.cosines
    nearest, nearest_back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    return {
        "summary": [
            {
                "text": text,
                "support": float(cosines[place, nearest[place]]),
                "nearest": int(nearest[place]),
                "token_match": float(alignment.sentence_match[place]),
            }
            for place, text in enumerate(summary.units)
        ],
        "document": [
            {"text": text, "coverage": float(cosines[nearest_back[place], place]), "nearest": int(nearest_back[place])}
            for place, text in enumerate(document.units)
        ],
    }


def _compare_texts(module: Any, summary: str, document: str, account: bool) -> Comparison:
    """One pair through the cross-encoder: parts of a long summary count alike, each by its best document window."""
    import torch

    if not is_visible(summary) or not is_visible(document):
        return Comparison(0.0, empty=True, alignment={"windows": []} if account else None)
    with torch.inference_mode():
        scores = [
            module(module.batch_rows(rows)).double().sigmoid().numpy() for rows in module.windows(document, summary)
        ]
    score = float(np.mean([part.max() for part in scores]))
    told = {"windows": [[float(value) for value in part] for part in scores]} if account else None
    return Comparison(score, alignment=told)


def reference_free_summary_quality(
    predictions: Sequence[str],
    sources: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Score summaries against their documents, without references.

    Parameters
    ----------
    predictions
        Summaries.
    sources
        For each summary its document, or the list of documents it covers.
    return_alignment
        Add `alignments`: for each summary a list, one a document, of which summary sentences the document supports and
        which parts of the document are covered.
    **options
        See `QualityOptions`.

    Returns
    -------
    dict
        `score` (mean), `scores`, `signature`, `n_empty`, `n_unfiltered` and `n_truncated` (always 0: nothing is
        filtered or cut), and `alignments` on request.

    >>> result = reference_free_summary_quality(["Rain flooded the town."], ["Heavy rain fell. It flooded the town."])
    >>> 0 < result["score"] < 1
    True
    """
    check_options(_NAME, options, [item.name for item in fields(QualityOptions)])
    check_choice(_NAME, "return_alignment", return_alignment, (True, False))
    texts, groups = check_pairs(_NAME, predictions, sources, "sources")
    settled = QualityOptions(**options).check()
    scorer = quality_scorer(_NAME, settled)
    pairs = zip(texts, groups, strict=True)
    examples = list(score_stream(scorer, pairs, total=len(texts), return_alignment=return_alignment))
    return collect(scorer, examples)
