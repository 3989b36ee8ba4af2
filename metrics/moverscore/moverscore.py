"""MoverScore (Zhao et al. 2019) as an evaluate module."""

from __future__ import annotations

from typing import Any, Literal

import evaluate

import movers  # From: git+https://github.com/movers-metrics/movers@v0.1.0
from movers.module import TextMetric, text_metric_info  # From: git+https://github.com/movers-metrics/movers@v0.1.0

_CITATION = """\
@inproceedings{zhao-etal-2019-moverscore,
    title = "{M}over{S}core: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance",
    author = "Zhao, Wei and Peyrard, Maxime and Liu, Fei and Gao, Yang and Meyer, Christian M. and Eger, Steffen",
    booktitle = "Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing and the 9th
        International Joint Conference on Natural Language Processing",
    year = "2019",
    address = "Hong Kong, China",
    publisher = "Association for Computational Linguistics",
    pages = "563--578",
    url = "https://aclanthology.org/D19-1053",
    doi = "10.18653/v1/D19-1053",
}
"""

_DESCRIPTION = """\
MoverScore says how cheaply the words or n-grams of one text turn into those of another in the space of a contextual
encoder. Every text is a bag of vectors that know their context; the distance is the cost of the cheapest way to move
one bag into the other, found exactly. The authors published two scripts that differ in layers, distance and
similarity; both are here by name (`variant`).
"""

_KWARGS_DESCRIPTION = """
    Args:
        predictions: texts to score (list of str).
        references: for each prediction one reference (str) or several (list of str).
        return_alignment: add `alignments`: for each prediction and each of its references the tokens, their weights and
            what was matched with what at which cost.
        model: where vectors come from: any Hub id or folder of a transformers model, `"all-mpnet-base-v2"` (stronger,
            slower), or static word vectors as for `wms`.
        weights: mass of a token: `"uniform"` (default), `"idf"`, `"count"` or `"norm"` (length of its vector).
        idf: table of inverse document frequencies: `"corpus"` (the texts of this call), the path of a saved table, or
            a `movers.IdfTable`; implies `weights="idf"`.
        multi_ref: how several references become one score: `"max"` or `"mean"`.
        device: where the model runs: `"auto"`, `"cpu"`, `"cuda"` or another torch device.
        dtype: its precision: `"float32"`, `"float16"` or `"bfloat16"`.
        batch_tokens: tokens in one of its batches, padding included.
        threads: threads that solve alignment problems; all processors by default.
        progress: show a bar; by default on terminals only, after two seconds.
        truncation: texts longer than the window: `"window"` reads them whole in overlapping windows, `"error"`
            refuses, `"cut"` cuts, warns and counts in `n_truncated`.
        window: tokens the model sees at once; its own limit by default.
        variant: `"v1"` or `"v2"`: which of the authors' two scripts decides aggregation, distance and similarity where
            they are not set.
        n_gram: size of the units: 1, 2, …, or `"sentence"` for one unit a text.
        aggregation: how the layers of a token become one vector: `"pmeans"` (v1), `"last"` (v2), `"routing"`,
            `"mean"`, a layer number, or several layers side by side (`"4+6"`).
        routing_kernel: kernel of `"routing"`: `"gaussian"` or `"epanechnikov"`.
        distance: `"sqeuclidean"` (v1), `"euclidean"` (v2) or `"cosine"`.
        similarity: of distance d: `"one_minus"` (1 − d, v1), `"inverse"` (1 / (1 + d), v2) or `"exp"` (exp(−d)).
        alignment: `"soft"` (transport) or `"hard"` (each unit takes its best partner; adds `precision`, `recall`,
            `f1`).
        stopwords: words to drop: `"english"`, a list, or None.
        punctuation: drop tokens of punctuation and symbols; `"ascii"` is the authors' rule (single ASCII marks).
        drop_subwords: keep only the first piece of a word.
        special_tokens: keep the tokenizer's special tokens as units.
        lowercase: lower-case words for static vectors.

    Returns:
        score: mean of `scores`.
        scores: a float for each prediction, larger is more similar: −3 to 1 with `variant="v1"`, 0 to 1 with
            `variant="v2"`; 0.0 if one text is blank, 1.0 if both are.
        precision, recall, f1: lists, with `alignment="hard"`.
        signature: one line that says how the numbers were computed.
        n_empty: rows in which a text is blank.
        n_unfiltered: rows scored on all tokens, because filtering left nothing.
        n_truncated: rows in which a text was cut; none unless `truncation="cut"`.
        alignments: on request.

    Examples:
        >>> import evaluate
        >>> moverscore = evaluate.load("metrics/moverscore")  # from a checkout
        >>> result = moverscore.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=["A man is selling snow on the internet."],
        ... )
        >>> round(result["score"], 3)
        0.642
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Moverscore(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info(
            "moverscore",
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            reference_urls=["https://aclanthology.org/D19-1053"],
        )

    def _compute(
        self,
        *,
        predictions: list[str],
        references: list[list[str]],
        return_alignment: bool = False,
        model: Any = "all-MiniLM-L6-v2",
        weights: Any = None,
        idf: Any = None,
        multi_ref: Literal["max", "mean"] = "mean",
        device: str = "auto",
        dtype: str = "float32",
        batch_tokens: int | None = None,
        threads: int | None = None,
        progress: bool | None = None,
        truncation: Literal["window", "error", "cut"] = "window",
        window: int | None = None,
        variant: Literal["v1", "v2"] = "v1",
        n_gram: Any = 1,
        aggregation: Any = None,
        routing_kernel: Literal["gaussian", "epanechnikov"] = "gaussian",
        distance: Literal["sqeuclidean", "euclidean", "cosine"] | None = None,
        similarity: Literal["one_minus", "inverse", "exp"] | None = None,
        alignment: Literal["soft", "hard"] = "soft",
        stopwords: Any = None,
        punctuation: Any = True,
        drop_subwords: bool = True,
        special_tokens: bool = True,
        lowercase: bool = True,
    ) -> dict[str, Any]:
        return movers.moverscore(
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
            variant=variant,
            n_gram=n_gram,
            aggregation=aggregation,
            routing_kernel=routing_kernel,
            distance=distance,
            similarity=similarity,
            alignment=alignment,
            stopwords=stopwords,
            punctuation=punctuation,
            drop_subwords=drop_subwords,
            special_tokens=special_tokens,
            lowercase=lowercase,
        )
