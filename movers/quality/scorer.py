r"""Reference-free summary quality: a summary against its document(s), without a reference.

.. math:: \mathrm{score}(s, D) = \frac{1}{|D|} \sum_{d \in D} f(d, s) \qquad f(d, s) \in [0, 1]

The default f combines three aspects, `faithfulness`, `coverage` and `fluency`, see `movers.quality.aspects`; a model of
Bao et al. 2020 is a network over vectors, see `movers.quality.heads`. With `doc_reduce="sum"` the sum over the
documents is not divided, as in the paper. A blank summary scores 0.

Reference: F. S. Bao et al. End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization.
arXiv:2005.06377, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeVar

import numpy as np

from movers.encoders import Encoder, load_encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.quality.aspects import ASPECTS, measure_aspects
from movers.quality.model import QualityModel, find_model, load_model
from movers.quality.units import TextVectors, encode_texts, reading_window
from movers.scores.engine import Comparison, PairMetric, run
from movers.scores.options import References, RunOptions, documented, option
from movers.signature import signature
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder
    from movers.quality.lm import LanguageModel, Likelihood
    from movers.weights import Corpus

__all__ = ["CrossQuality", "QualityOptions", "SummaryQuality", "VectorQuality", "compare_vectors", "pair_likelihoods",
           "reference_free_summary_quality"]  # fmt: skip

Text = TypeVar("Text")


@dataclass(frozen=True, kw_only=True)
class QualityOptions(RunOptions):
    """Options of reference_free_summary_quality."""

    model: object = option(
        "shipped",
        "`shipped`; `paper`, the network of Bao et al.; or a folder that `movers train quality` wrote",
        values="str, path or QualityModel",
    )
    lm: str | None = option(
        None,
        "a language model whose likelihood of the summary after the document counts too: `smollm2` (extra `lm`), or a "
        "folder or Hub id of a causal or seq2seq model; needs a model with aspects",
        values="str or None",
    )
    truncation: Literal["window", "cut"] = option(
        "window",
        "what a cross-encoder does with long texts: `window` reads all of them, `cut` cuts both in parallel to its "
        "window, as the paper",
    )
    doc_reduce: Literal["mean", "sum"] = option(
        "mean", "how the scores against several documents become one; `mean` stays in [0, 1], `sum` is the paper's"
    )

    presets = {"paper": {"model": "paper", "doc_reduce": "sum"}}

    def settle(self, metric: str) -> Self:
        find_model(self.model)
        return self


@dataclass(frozen=True)
class SummaryQuality(PairMetric[Text]):
    """The metric: a head over the vectors of sentences or words, or a cross-encoder."""

    options: QualityOptions
    options_class = QualityOptions
    compared_with = "sources"

    @classmethod
    def build(  # type: ignore[override]
        cls, name: str, options: QualityOptions, corpus: Corpus | None = None
    ) -> VectorQuality | CrossQuality:
        model = load_model(options.model)
        config = model.config
        if options.lm is not None and config["head"] != "aspects":
            head = config["head"]
            raise InputError(
                f"{name}: lm: expected None for a model without aspects (head {head!r}), but got {options.lm!r}"
            )
        fields: dict[str, object] = {
            "model": model.identity,
            "text": config["unit"],
            "head": config["head"],
            "docs": options.doc_reduce,
            **({"html": "decoded"} if options.unescape else {}),
        }
        cut = {"truncation": "cut"} if options.truncation == "cut" else {}
        if cut and config["unit"] != "cross":
            raise InputError(f"{name}: truncation: expected 'window' for a model that is no cross-encoder")
        if config["unit"] == "cross":
            line = signature(name, fields | {"dtype": options.dtype, "window": config["window"], **cut})
            return CrossQuality(name, line, options, _placed(model, options.device, options.dtype))
        encoder = load_encoder(config["encoder"], device=options.device, dtype=options.dtype)
        if encoder.identity != config["encoder_identity"]:
            raise InputError(
                f"{name}: model: was trained on vectors of {config['encoder_identity']}, "
                f"but the encoder found here is {encoder.identity}"
            )
        if not isinstance(encoder, StaticEncoder):
            fields["dtype"] = encoder.dtype
        fields |= {"emb": encoder.identity, "lang": config["lang"], "window": reading_window(encoder)}
        lm = None
        if options.lm is not None:
            from movers.quality.lm import load_lm

            lm = load_lm(options.lm, options.device, options.dtype)
            fields |= {"lm": lm.identity, "dtype": options.dtype}
        return VectorQuality(name, signature(name, fields), options, model, encoder, lm)

    @property
    def multi_ref(self) -> Literal["mean", "sum"]:
        return self.options.doc_reduce

    def compare(self, prediction: Text, reference: Text, costs: object = None) -> Comparison:
        return self.compare_many([(prediction, reference)])[0]


@dataclass(frozen=True)
class VectorQuality(SummaryQuality[TextVectors]):
    """A head over the vectors of sentences or words."""

    model: QualityModel
    encoder: Encoder
    lm: LanguageModel | None = None

    @property
    def by_reference(self) -> bool:
        return self.lm is not None  # which reads a document once for all its summaries

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TextVectors]]:
        config, batch_tokens = self.model.config, self.options.batch_tokens
        return encode_texts(texts, self.encoder, config["unit"], lang=config["lang"], batch_tokens=batch_tokens)

    def has_unknown(self, text: TextVectors) -> bool:
        return text.unknown

    def was_cut(self, text: TextVectors) -> bool:
        if self.lm is not None and self.lm.cuts(" ".join(text.units)):
            return True
        return len(text.units) > self.model.config.get("document_length", len(text.units))  # of Bao et al.'s networks

    def compare_many(self, pairs: Sequence[tuple[TextVectors, TextVectors]]) -> list[Comparison]:
        likelihoods = None if self.lm is None else pair_likelihoods(self.lm, pairs)
        return compare_vectors(self.model, pairs, self.options.return_alignment, likelihoods)


class TokenIds(NamedTuple):
    """A text as the cross-encoder reads it."""

    ids: list[int]
    blank: bool
    unknown: bool


@dataclass(frozen=True)
class CrossQuality(SummaryQuality[TokenIds]):
    """A transformer that reads document and summary together.

    Parts of a long summary count alike, each by the window of the document that suits it best. With `truncation="cut"`
    there is one window, and a text counts as cut if it leaves no room in it for another.
    """

    module: CrossEncoder

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenIds]]:
        for index, text in enumerate(texts):
            ids = self.module.ids(text)
            yield index, TokenIds(ids, not is_visible(text), self.module.tokenizer.unk_token_id in ids)

    def has_unknown(self, text: TokenIds) -> bool:
        return text.unknown

    def was_cut(self, text: TokenIds) -> bool:
        return self.options.truncation == "cut" and len(text.ids) >= self.module.room

    def _windows(self, document: TokenIds, summary: TokenIds) -> list[list[tuple[list[int], list[int]]]]:
        if self.options.truncation == "cut":
            return [[self.module.cut_ids(document.ids, summary.ids)]]
        return self.module.windows(document.ids, summary.ids)

    def compare_many(self, pairs: Sequence[tuple[TokenIds, TokenIds]]) -> list[Comparison]:
        windows = [
            [] if summary.blank or document.blank else self._windows(document, summary) for summary, document in pairs
        ]
        rows = [row for parts in windows for part in parts for row in part]
        found = iter(self.module.score_rows(rows, self.options.batch_tokens))
        scores = [[[next(found) for _ in part] for part in parts] for parts in windows]
        return [
            Comparison(
                float(np.mean([max(part) for part in parts])) if parts else 0.0,
                empty=not parts,
                alignment={"windows": parts} if self.options.return_alignment else None,
            )
            for parts in scores
        ]


@lru_cache(maxsize=2)
def _placed(model: QualityModel, device: str | None, dtype: str) -> CrossEncoder:
    from movers.quality.cross import CrossEncoder

    assert isinstance(model.module, CrossEncoder)
    return model.module.placed(device, dtype)


def pair_likelihoods(lm: LanguageModel, pairs: Sequence[tuple[TextVectors, TextVectors]]) -> list[Likelihood | None]:
    """Likelihood of each summary, None if it or its document is blank."""
    places: dict[tuple[str, ...], list[int]] = {}
    for place, (summary, document) in enumerate(pairs):
        if not summary.blank and not document.blank:
            places.setdefault(document.units, []).append(place)
    found: list[Likelihood | None] = [None] * len(pairs)
    for document_units, own in places.items():
        values = lm.likelihoods(" ".join(document_units), [" ".join(pairs[place][0].units) for place in own])
        for place, value in zip(own, values, strict=True):
            found[place] = value
    return found


def compare_vectors(
    model: QualityModel,
    pairs: Sequence[tuple[TextVectors, TextVectors]],
    aligned: bool = False,
    likelihoods: Sequence[Likelihood | None] | None = None,
) -> list[Comparison]:
    """(summary, document) pairs, all in one pass of the network: it takes as long for one pair as for many.

    `likelihoods` are those of the summaries, if a language model gave them.
    """
    import torch

    from movers.quality.heads import Head, PairInput
    from movers.quality.joins import JoinNetwork

    scoring = model.module
    parts = dict.fromkeys(ASPECTS, 0.0) if model.config["head"] == "aspects" else {}
    if likelihoods is not None:
        parts["likelihood"] = 0.0
    # nothing is no summary of anything, not even of nothing
    empty = Comparison(0.0, parts, empty=True, alignment={"summary": [], "document": []} if aligned else None)
    found = [empty] * len(pairs)
    places = [place for place, (summary, document) in enumerate(pairs) if not summary.blank and not document.blank]
    if not places:
        return found
    chosen = [pairs[place] for place in places]
    if isinstance(scoring, Head):
        with torch.inference_mode():
            logits = scoring(scoring.collate([PairInput(document, summary) for summary, document in chosen]))
        for place, score in zip(places, logits.double().sigmoid().tolist(), strict=True):
            told: dict[str, object] | None = None
            if aligned:
                summary, document = pairs[place]
                sides = {"summary": summary.units, "document": document.units}
                told = {side: [{"text": text} for text in units] for side, units in sides.items()}
            found[place] = Comparison(score, alignment=told)
        return found
    assert isinstance(scoring, JoinNetwork)
    broken = scoring.broken([summary for summary, _ in chosen])
    for place, (summary, document), joins in zip(places, chosen, broken, strict=True):
        aspects = measure_aspects(document, summary, joins, None if likelihoods is None else likelihoods[place])
        told = aspects.describe(summary.units, document.units) if aligned else None
        found[place] = Comparison(aspects.score, aspects.parts, alignment=told)
    return found


@documented(QualityOptions)
def reference_free_summary_quality(
    predictions: Sequence[str], sources: References, **options: object
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
        `score` (mean), `scores`, `signature`, `n_empty`, `n_unknown`, `n_unfiltered` (0) and `n_truncated` (0 unless
        `model` or `lm` does not read all of a text, or with `truncation="cut"`); with the shipped model
        `faithfulness`, `coverage` and `fluency`, and with `lm` `likelihood`, one float per summary; and with
        `return_alignment` `alignments`: for each summary a list, one entry per document, of which summary sentences the
        document supports, what in them it does not have, and which of its sentences are covered.

    >>> document = "Heavy rain fell on Monday. The river flooded the town. The mayor thanked the volunteers."
    >>> summaries = ["Rain fell and the river flooded the town.", "Shares rose after the bank lowered its rate."]
    >>> good, bad = reference_free_summary_quality(summaries, [document] * 2)["scores"]
    >>> good > bad
    True
    >>> wrong = "Rain fell and the river flooded Manchester."
    >>> truth, invention = reference_free_summary_quality([summaries[0], wrong], [document] * 2)["faithfulness"]
    >>> truth - invention > 0.2
    True
    """
    name = "reference_free_summary_quality"
    return run(SummaryQuality, name, predictions, sources, options, "sources")  # type: ignore[type-abstract]
