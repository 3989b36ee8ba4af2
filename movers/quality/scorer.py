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
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from typing_extensions import Self

from movers.encoders import load_encoder
from movers.errors import InputError
from movers.inputs import check_pairs
from movers.quality.alignment import align
from movers.quality.model import QualityModel, check_model, load_model
from movers.quality.units import TextVectors, UnitEncoder, encode_texts, reading_window
from movers.scores.engine import Comparison, PairMetric, score
from movers.scores.options import RunOptions, documented, option
from movers.signature import signature
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder

__all__ = ["CrossEncoderQuality", "QualityOptions", "SummaryQuality", "build_metric", "compare_vectors",
           "reference_free_summary_quality"]  # fmt: skip

_NAME = "reference_free_summary_quality"


@dataclass(frozen=True, kw_only=True)
class QualityOptions(RunOptions):
    """Options of reference_free_summary_quality."""

    model: object = option(
        "shipped", "`shipped`, or a folder that `movers train quality` wrote", values="str, path or QualityModel"
    )
    doc_reduce: Literal["mean", "sum"] = option(
        "mean", "how the scores against several documents become one; `mean` stays in [0, 1], `sum` is the paper's"
    )

    def settle(self, metric: str) -> Self:
        check_model(self.model)
        return self


@dataclass(frozen=True, kw_only=True)
class SummaryQuality(PairMetric[TextVectors]):
    """The metric with a head over the vectors of sentences or words."""

    model: QualityModel
    encoder: UnitEncoder
    batch_tokens: int | None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TextVectors]]:
        config = self.model.config
        return encode_texts(texts, self.encoder, config["unit"], lang=config["lang"], batch_tokens=self.batch_tokens)

    def compare(self, prediction: TextVectors, reference: TextVectors, costs: object = None) -> Comparison:
        return compare_vectors(self.model, [(prediction, reference)], self.aligned)[0]

    def compare_many(self, pairs: Sequence[tuple[TextVectors, TextVectors]]) -> list[Comparison]:
        return compare_vectors(self.model, pairs, self.aligned)


class TokenIds(NamedTuple):
    """A text as the cross-encoder reads it."""

    ids: list[int]
    blank: bool


@dataclass(frozen=True, kw_only=True)
class CrossEncoderQuality(PairMetric[TokenIds]):
    """The metric with a transformer that reads document and summary together.

    Parts of a long summary count alike, each by the window of the document that suits it best.
    """

    module: CrossEncoder
    batch_tokens: int | None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenIds]]:
        for index, text in enumerate(texts):
            yield index, TokenIds(self.module.ids(text), not is_visible(text))

    def compare(self, prediction: TokenIds, reference: TokenIds, costs: object = None) -> Comparison:
        return self.compare_many([(prediction, reference)])[0]

    def compare_many(self, pairs: Sequence[tuple[TokenIds, TokenIds]]) -> list[Comparison]:
        windows = [
            [] if summary.blank or document.blank else self.module.windows(document.ids, summary.ids)
            for summary, document in pairs
        ]
        rows = [row for parts in windows for part in parts for row in part]
        found = iter(self.module.score_rows(rows, self.batch_tokens))
        scores = [[[next(found) for _ in part] for part in parts] for parts in windows]
        return [
            Comparison(
                float(np.mean([max(part) for part in parts])) if parts else 0.0,
                empty=not parts,
                alignment={"windows": parts} if self.aligned else None,
            )
            for parts in scores
        ]


def build_metric(name: str, options: QualityOptions, corpus: object = None) -> SummaryQuality | CrossEncoderQuality:
    """The metric with its options settled."""
    model = load_model(options.model)
    config = model.config
    line = {
        "model": model.identity,
        "text": config["unit"],
        "head": config["head"],
        "docs": options.doc_reduce,
        "dtype": options.dtype,
    }
    if config["unit"] == "cross":
        return CrossEncoderQuality(
            name=name,
            signature=signature(name, line | {"window": config["window"]}),
            multi_ref=options.doc_reduce,
            threads=options.threads,
            progress=options.progress,
            aligned=options.return_alignment,
            module=_placed(model, options.device, options.dtype),
            batch_tokens=options.batch_tokens,
        )
    encoder = load_encoder(config["encoder"], device=options.device, dtype=options.dtype)
    if encoder.identity != config["encoder_identity"]:
        raise InputError(
            f"{name}: model: was trained on vectors of {config['encoder_identity']}, "
            f"but the encoder found here is {encoder.identity}"
        )
    line |= {"emb": encoder.identity, "lang": config["lang"], "window": reading_window(encoder)}
    return SummaryQuality(
        name=name,
        signature=signature(name, line),
        multi_ref=options.doc_reduce,
        threads=options.threads,
        progress=options.progress,
        aligned=options.return_alignment,
        model=model,
        encoder=encoder,
        batch_tokens=options.batch_tokens,
    )


@lru_cache(maxsize=2)
def _placed(model: QualityModel, device: str, dtype: str) -> CrossEncoder:
    import torch

    from movers.encoders import _device
    from movers.quality.cross import CrossEncoder

    assert isinstance(model.module, CrossEncoder)
    return model.module.placed(_device(device), getattr(torch, dtype))


def compare_vectors(
    model: QualityModel, pairs: Sequence[tuple[TextVectors, TextVectors]], aligned: bool = False
) -> list[Comparison]:
    """(summary, document) pairs through a head, all in one batch: a pass takes as long for one pair as for many."""
    import torch

    from movers.quality.heads import AlignHead, Head, PairInput

    head = model.module
    assert isinstance(head, Head)
    # nothing is no summary of anything, not even of nothing
    empty = Comparison(0.0, empty=True, alignment={"summary": [], "document": []} if aligned else None)
    found = [empty] * len(pairs)
    places = [place for place, (summary, document) in enumerate(pairs) if not summary.blank and not document.blank]
    if not places:
        return found
    inputs, alignments = [], []
    for summary, document in (pairs[place] for place in places):
        measured = isinstance(head, AlignHead) or (aligned and len(summary.tokens) > 0)
        alignment = align(document, summary) if measured else None
        inputs.append(PairInput(document, summary, alignment.features if alignment else None))
        alignments.append(alignment)
    with torch.inference_mode():
        batch = head.collate(inputs)
        parts = head.parts(batch) if isinstance(head, AlignHead) else ()
        logits = head.combine(*parts) if isinstance(head, AlignHead) else head(batch)
        scores = logits.double().sigmoid().tolist()
    for row, (place, alignment) in enumerate(zip(places, alignments, strict=True)):
        told: dict[str, object] | None = None
        if aligned:
            summary, document = pairs[place]
            if alignment is None:
                sides = {"summary": summary.units, "document": document.units}
                told = {side: [{"text": text} for text in units] for side, units in sides.items()}
            else:
                told = alignment.describe(summary.units, document.units)
            if alignment is not None and parts:
                quality, intact = (float(part[row]) for part in parts)
                told["alignment_quality"] = 1 / (1 + math.exp(-quality))
                told["intact"] = intact
                told["features"] = alignment.named_features
        found[place] = Comparison(scores[row], alignment=told)
    return found


@documented(QualityOptions)
def reference_free_summary_quality(
    predictions: Sequence[str], sources: Sequence[str] | Sequence[Sequence[str]], **options: object
) -> dict[str, object]:
    """Score summaries against their documents, without references.

    Parameters
    ----------
    predictions
        Summaries.
    sources
        For each summary its document, or the list of documents it covers.
    {options}

    Returns
    -------
    dict
        `score` (mean), `scores`, `signature`, `n_empty`, `n_unfiltered` and `n_truncated` (always 0: nothing is
        filtered or cut), and with `return_alignment` `alignments`: for each summary a list, one entry per document, of
        which summary sentences the document supports and which of its sentences are covered.

    >>> document = "Heavy rain fell on Monday. The river flooded the town. The mayor thanked the volunteers."
    >>> summaries = ["Rain fell and the river flooded the town.", "Shares rose after the bank lowered its rate."]
    >>> good, bad = reference_free_summary_quality(summaries, [document] * 2)["scores"]
    >>> good > bad
    True
    """
    texts, groups = check_pairs(_NAME, predictions, sources, "sources")
    return score(build_metric(_NAME, QualityOptions.parse(_NAME, options)), texts, groups)
