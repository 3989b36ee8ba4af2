r"""Reference-free summary quality: a summary against its document(s), without a reference.

.. math:: \mathrm{score}(s, D) = \frac{1}{|D|} \sum_{d \in D} f(d, s) \qquad f(d, s) \in [0, 1]

The default f is the product of three aspects (`movers.quality.aspects`); a model of Bao et al. 2020 (arXiv:2005.06377)
is a network (`movers.quality.cross`, `movers.quality.heads`). A blank summary scores 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast

import numpy as np

from movers.encoders import Encoder, load_encoder
from movers.encoders.static import StaticEncoder
from movers.quality.aspects import ASPECTS, measure_aspects
from movers.quality.model import find_model, load_model
from movers.quality.units import TextVectors, Unit, encode_texts
from movers.scores.metric import Comparison, Metric
from movers.scores.options import MetricOptions, option
from movers.signature import signature
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder, Ids
    from movers.quality.heads import Head
    from movers.weights import Corpus


@dataclass(frozen=True, kw_only=True)
class QualityOptions(MetricOptions):
    model: object = option(
        "aspects",
        "`aspects`, the product of three; `paper`, the cross-encoder of Bao et al.; or a folder that `movers train "
        "quality` wrote",
        values="str, path or QualityModel",
    )
    doc_reduce: Literal["mean", "sum"] = option(
        "mean", "how the scores against several documents become one; `mean` stays in [0, 1], `sum` is the paper's"
    )

    presets = {"paper": {"model": "paper", "doc_reduce": "sum"}}

    def settle(self, metric: str) -> Self:
        if self.model != "aspects":
            find_model(self.model)
        return self


@dataclass(frozen=True, kw_only=True)
class SummaryQuality(Metric):
    """Score summaries against their documents, without references.

    Returns
    -------
    dict
        `score` (mean), `scores`, `signature`, `n_empty`, `n_unknown`, `n_unfiltered` (0) and `n_truncated` (0 unless
        `model` does not read all of a text); by default `faithfulness`, `coverage` and `non_repetition`, one float per
        summary; with `return_alignment` `alignments`: for each summary a list, one entry per document, of how the
        document supports each sentence, what in it the document does not have, and what is covered.

    Examples
    --------
    >>> import movers
    >>> document = "Heavy rain fell on Monday. The river flooded the town. The mayor thanked the volunteers."
    >>> summaries = ["Rain fell and the river flooded the town.", "Rain fell and the river flooded Manchester."]
    >>> truth, invention = movers.reference_free_summary_quality(summaries, [document] * 2)["faithfulness"]
    >>> truth - invention > 0.2
    True
    """

    lang: str
    options: QualityOptions
    options_class = QualityOptions
    compared_with = "sources"

    @classmethod
    def build(cls, name: str, options: QualityOptions, corpus: Corpus | None = None) -> SummaryQuality:
        run, model = options.run, None if options.model == "aspects" else load_model(options.model)
        plain: dict[str, Any] = {"encoder": "all-MiniLM-L6-v2", "lang": "en", "unit": "sentences"}
        config = plain if model is None else model.config
        encoder = load_encoder(config["encoder"], device=run.device, dtype=run.dtype)
        fields = {"model": options.model if model is None else model.identity, "docs": options.doc_reduce}
        fields |= {"emb": encoder.identity, "lang": config["lang"]}
        if not isinstance(encoder, StaticEncoder):
            fields |= {"dtype": encoder.dtype, "window": config.get("window", encoder.sentence_window)}
        if model is not None:
            fields |= {"text": config["unit"], "head": config["head"]}
        line, lang = signature(name, fields), config["lang"]
        if model is not None and config["unit"] == "cross":
            module = cast("CrossEncoder", model.module).placed(run.device, run.dtype)
            return CrossQuality(name=name, signature=line, options=options, lang=lang, module=module)
        return VectorQuality(
            name=name, signature=line, options=options, lang=lang, encoder=encoder, unit=config["unit"],
            head=None if model is None else cast("Head", model.module),
        )  # fmt: skip

    @property
    def reduction(self) -> str:
        return self.options.doc_reduce

    @property
    def in_processes(self) -> bool:
        return False

    def empty(self, parts: Sequence[str] = ()) -> Comparison:
        """A blank summary or document: nothing is no summary of anything, not even of nothing."""
        return Comparison(0.0, dict.fromkeys(parts, 0.0), empty=True, alignment={"summary": [], "document": []})


@dataclass(frozen=True, kw_only=True)
class VectorQuality(SummaryQuality):
    """The product of the aspects, or a network over the vectors of sentences or words, of which it reads a number."""

    encoder: Encoder
    unit: Unit
    head: Head | None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TextVectors]]:
        size = self.options.run.batch_size
        for index, text in encode_texts(texts, self.encoder, self.unit, lang=self.lang, batch_size=size):
            yield index, replace(text, cut=self.head is not None and len(text.units) > self.head.document_length)

    def compare(self, prediction: TextVectors, reference: TextVectors) -> Comparison:
        if prediction.blank or reference.blank:
            return self.empty(() if self.head else ASPECTS)
        if self.head is not None:
            return Comparison(self.head.score(reference.vectors, prediction.vectors))
        aspects = measure_aspects(reference, prediction)
        alignment = aspects.describe(prediction, reference) if self.options.return_alignment else None
        return Comparison(aspects.score, aspects.parts, alignment=alignment)


class TokenIds(NamedTuple):
    """The sentences of a text as the cross-encoder reads them."""

    sentences: list[Ids]
    blank: bool
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class CrossQuality(SummaryQuality):
    """A transformer that reads a summary beside the evidence in its document; parts of a long summary count alike."""

    module: CrossEncoder

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenIds]]:
        unknown = self.module.tokenizer.unk_token_id
        for index, text in enumerate(texts):
            sentences = self.module.sentence_ids(text, self.lang)
            yield index, TokenIds(sentences, not is_visible(text), any(unknown in ids for ids in sentences))

    def compare(self, prediction: TokenIds, reference: TokenIds) -> Comparison:
        if prediction.blank or reference.blank:
            return self.empty()
        rows = [self.module.features(reference.sentences, part) for part in self.module.parts(prediction.sentences)]
        scores = self.module.score_rows(rows, self.options.run.batch_size)
        return Comparison(float(np.mean(scores)), alignment={"parts": scores})


def score_pairs(model: object, pairs: Sequence[tuple[str, str]]) -> list[float]:
    metric = SummaryQuality.build("reference_free_summary_quality", QualityOptions(model=model))
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    read = {texts[index]: text for index, text in metric.read(texts)}
    return [metric.compare(read[summary], read[document]).score for document, summary in pairs]
