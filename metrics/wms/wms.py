"""Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019) as an evaluate module."""

from __future__ import annotations

from typing import Any, Literal

import evaluate

import movers  # From: git+https://github.com/movers-metrics/movers@v0.1.0
from movers.module import TextMetric, text_metric_info  # From: git+https://github.com/movers-metrics/movers@v0.1.0

_CITATION = """\
@inproceedings{clark-etal-2019-sentence,
    title = "Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence Texts",
    author = "Clark, Elizabeth and Celikyilmaz, Asli and Smith, Noah A.",
    booktitle = "Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics",
    year = "2019",
    address = "Florence, Italy",
    publisher = "Association for Computational Linguistics",
    pages = "2748--2760",
    url = "https://aclanthology.org/P19-1264",
    doi = "10.18653/v1/P19-1264",
}
"""

_DESCRIPTION = """\
Word Mover's Similarity says how cheaply the words of one text turn into the words of another: every text is a bag of
word vectors weighted by their counts, the Word Mover's Distance is the cost of the cheapest exact transport plan
between two bags, and the similarity is exp(-distance). Words that mean the same are near each other, so a paraphrase
costs little although it shares no word with the reference.
"""

_KWARGS_DESCRIPTION = """
    Args:
        predictions: texts to score (list of str).
        references: for each prediction one reference (str) or several (list of str).
        return_alignment: add `alignments`: for each prediction and each of its references the units, their weights and
            what moved where at which cost.
        model: what gives words their vectors: `"wordllama"` (static, inside the installation), a file of word vectors
            (GloVe, word2vec, fastText), a spaCy pipeline with vectors, or any Hub id or folder of a transformers model.
        weights: a word's mass: `"count"` (default), `"uniform"`, `"idf"` or `"norm"` (length of its vector).
        idf: where inverse document frequencies come from: `"corpus"` (the references of this call), the path of a saved
            table, or a `movers.IdfTable`. Implies `weights="idf"`.
        multi_ref: how several references become one score: `"max"` or `"mean"`.
        device: `"auto"`, `"cpu"`, `"cuda"`, … for a contextual model.
        dtype: `"float32"`, `"float16"` or `"bfloat16"` for a contextual model.
        batch_tokens: tokens in a batch of a contextual model, padding included.
        threads: threads that solve transport problems; all processors by default.
        progress: show a progress bar; by default on terminals only, after two seconds.
        truncation: what happens to a text longer than the window of a contextual model: `"window"` (read whole, in
            overlapping windows), `"error"` or `"cut"` (warned about and counted in `n_truncated`).
        window: tokens a contextual model sees at once; its own limit by default.
        stopwords: `"english"`, a list of words, or None to keep all.
        punctuation: drop tokens that have neither letter nor digit.
        lowercase: lower-case the words (a contextual model still reads the original case).
        keep_numbers: keep tokens of digits alone.
        lang: language code for the rules that find sentences.
        sentence_weights: without effect on this metric, which has no sentences as units.
        sentence_encoder: not for this metric: None.
        distance: `"euclidean"` (the paper's) or `"cosine"`.
        normalize: scale every vector to length 1 first, which makes scores larger and models comparable.
        layer: layers of a contextual model that give a word its vector: `"mean"`, `"last"`, `"pmeans"`, `"routing"`
            or a number.
        context: what a contextual model reads at a time: `"sentence"` or `"text"`.

    Returns:
        score: mean of `scores`.
        scores: a float for each prediction, in (0, 1], larger is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        signature: one line that says how the numbers were computed.
        n_empty: rows in which a text is blank.
        n_unfiltered: rows scored on all tokens, because dropping stop words and punctuation left nothing.
        n_truncated: rows in which a text was cut; none unless `truncation="cut"`.
        alignments: on request.

    Examples:
        >>> import evaluate
        >>> wms = evaluate.load("metrics/wms")  # from a checkout
        >>> result = wms.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=["A man is selling snow on the internet."],
        ... )
        >>> round(result["score"], 4)
        0.0102

        Several references, of which the nearest counts:

        >>> result = wms.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=[["A man is selling snow on the internet.", "A man sells snow online."]],
        ... )
        >>> round(result["score"], 4)
        1.0
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Wms(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info(
            "wms",
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            reference_urls=["https://aclanthology.org/P19-1264"],
        )

    def _compute(
        self,
        *,
        predictions: list[str],
        references: list[list[str]],
        return_alignment: bool = False,
        model: Any = "wordllama",
        weights: Any = None,
        idf: Any = None,
        multi_ref: Literal["max", "mean"] = "max",
        device: str = "auto",
        dtype: str = "float32",
        batch_tokens: int | None = None,
        threads: int | None = None,
        progress: bool | None = None,
        truncation: Literal["window", "error", "cut"] = "window",
        window: int | None = None,
        stopwords: Any = "english",
        punctuation: bool = True,
        lowercase: bool = True,
        keep_numbers: bool = False,
        lang: str = "en",
        sentence_weights: Literal["count", "uniform", "idf"] = "count",
        sentence_encoder: Any = None,
        distance: Literal["euclidean", "cosine"] = "euclidean",
        normalize: bool = False,
        layer: Any = "mean",
        context: Literal["sentence", "text"] = "sentence",
    ) -> dict[str, Any]:
        return movers.wms(
            predictions,
            references,
            return_alignment=return_alignment,
            model=model,
            weights=weights,
            idf=idf,
            multi_ref=multi_ref,
            device=device,
            dtype=dtype,
            batch_tokens=batch_tokens,
            threads=threads,
            progress=progress,
            truncation=truncation,
            window=window,
            stopwords=stopwords,
            punctuation=punctuation,
            lowercase=lowercase,
            keep_numbers=keep_numbers,
            lang=lang,
            sentence_weights=sentence_weights,
            sentence_encoder=sentence_encoder,
            distance=distance,
            normalize=normalize,
            layer=layer,
            context=context,
        )
