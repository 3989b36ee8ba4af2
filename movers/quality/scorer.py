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
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from movers.encoders import Encoder, load_encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.quality.aspects import ASPECTS, measure_aspects
from movers.quality.model import QualityModel, find_model, load_model
from movers.quality.units import TextVectors, encode_texts, reading_window
from movers.scores.metric import Comparison, Metric
from movers.scores.options import MetricOptions, option
from movers.signature import signature
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder
    from movers.quality.lm import LanguageModel, Likelihood
    from movers.weights import Corpus

__all__ = ["CrossQuality", "QualityOptions", "SummaryQuality", "VectorQuality", "compare_vectors", "pair_likelihoods"]


@dataclass(frozen=True, kw_only=True)
class QualityOptions(MetricOptions):
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


@dataclass(frozen=True, kw_only=True)
class SummaryQuality(Metric):
    """Score summaries against their documents, without references.

    Returns
    -------
    dict
        `score` (mean), `scores`, `signature`, `n_empty`, `n_unknown`, `n_unfiltered` (0) and `n_truncated` (0 unless
        `model` or `lm` does not read all of a text, or with `truncation="cut"`); with the shipped model
        `faithfulness`, `coverage` and `fluency`, and with `lm` `likelihood`, one float per summary; and with
        `return_alignment` `alignments`: for each summary a list, one entry per document, of which summary sentences the
        document supports, what in them it does not have, and which of its sentences are covered.

    Examples
    --------
    >>> import movers
    >>> document = "Heavy rain fell on Monday. The river flooded the town. The mayor thanked the volunteers."
    >>> summaries = ["Rain fell and the river flooded the town.", "Shares rose after the bank lowered its rate."]
    >>> good, bad = movers.reference_free_summary_quality(summaries, [document] * 2)["scores"]
    >>> good > bad
    True
    >>> wrong = "Rain fell and the river flooded Manchester."
    >>> result = movers.reference_free_summary_quality([summaries[0], wrong], [document] * 2)
    >>> truth, invention = result["faithfulness"]
    >>> truth - invention > 0.2
    True
    """

    options: QualityOptions
    options_class = QualityOptions
    compared_with = "sources"

    @classmethod
    def build(cls, name: str, options: QualityOptions, corpus: Corpus | None = None) -> VectorQuality | CrossQuality:
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
        }
        cut = {"truncation": "cut"} if options.truncation == "cut" else {}
        if cut and config["unit"] != "cross":
            raise InputError(f"{name}: truncation: expected 'window' for a model that is no cross-encoder")
        if config["unit"] == "cross":
            line = signature(name, fields | {"dtype": options.run.dtype, "window": config["window"], **cut})
            module = _placed(model, options.run.device, options.run.dtype)
            return CrossQuality(name=name, signature=line, options=options, module=module)
        encoder = load_encoder(config["encoder"], device=options.run.device, dtype=options.run.dtype)
        if not encoder.identity.startswith(config["encoder_identity"]):  # which has fewer digits in older models
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

            lm = load_lm(options.lm, options.run.device, options.run.dtype)
            fields |= {"lm": lm.identity, "dtype": options.run.dtype}
        return VectorQuality(
            name=name, signature=signature(name, fields), options=options, model=model, encoder=encoder, lm=lm
        )

    @property
    def reduction(self) -> str:
        return self.options.doc_reduce

    @property
    def in_processes(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class VectorQuality(SummaryQuality):
    """A head over the vectors of sentences or words."""

    model: QualityModel
    encoder: Encoder
    lm: LanguageModel | None = None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TextVectors]]:
        config, length = self.model.config, self.model.config.get("document_length")  # of Bao et al.'s networks
        size = self.options.run.batch_size
        for index, text in encode_texts(texts, self.encoder, config["unit"], lang=config["lang"], batch_size=size):
            cut = (length is not None and len(text.units) > length) or (
                self.lm is not None and self.lm.cuts(" ".join(text.units))
            )
            yield index, replace(text, cut=cut)

    def compare(self, prediction: TextVectors, reference: TextVectors) -> Comparison:
        pairs = [(prediction, reference)]
        likelihoods = None if self.lm is None else pair_likelihoods(self.lm, pairs)
        return compare_vectors(self.model, pairs, self.options.return_alignment, likelihoods)[0]


class TokenIds(NamedTuple):
    """A text as the cross-encoder reads it."""

    ids: list[int]
    blank: bool
    unknown: bool
    cut: bool


@dataclass(frozen=True, kw_only=True)
class CrossQuality(SummaryQuality):
    """A transformer that reads document and summary together.

    Parts of a long summary count alike, each by the window of the document that suits it best. With `truncation="cut"`
    there is one window, and a text counts as cut if it leaves no room in it for another.
    """

    module: CrossEncoder

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenIds]]:
        for index, text in enumerate(texts):
            ids = self.module.ids(text)
            cut = self.options.truncation == "cut" and len(ids) >= self.module.room
            yield index, TokenIds(ids, not is_visible(text), self.module.tokenizer.unk_token_id in ids, cut)

    def _windows(self, document: TokenIds, summary: TokenIds) -> list[list[tuple[list[int], list[int]]]]:
        if self.options.truncation == "cut":
            return [[self.module.cut_ids(document.ids, summary.ids)]]
        return self.module.windows(document.ids, summary.ids)

    def compare(self, prediction: TokenIds, reference: TokenIds) -> Comparison:
        blank = prediction.blank or reference.blank
        parts = [] if blank else self._windows(reference, prediction)
        scores = iter(self.module.score_rows([row for part in parts for row in part], self.options.run.batch_size))
        windows = [[next(scores) for _ in part] for part in parts]
        return Comparison(
            float(np.mean([max(part) for part in windows])) if windows else 0.0,
            empty=blank,
            alignment={"windows": windows} if self.options.return_alignment else None,
        )


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
