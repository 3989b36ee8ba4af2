"""BERTScore with one-to-many alignment (Jin & Gildea 2022) as an evaluate module."""

from __future__ import annotations

from typing import Any, Literal

import evaluate

import movers  # From: git+https://github.com/movers-metrics/movers@v0.1.0
from movers.module import TextMetric, text_metric_info  # From: git+https://github.com/movers-metrics/movers@v0.1.0

_CITATION = """\
@inproceedings{jin-gildea-2022-rewarding,
    title = "Rewarding Semantic Similarity under Optimized Alignments for {AMR}-to-Text Generation",
    author = "Jin, Lisa and Gildea, Daniel",
    booktitle = "Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics
        (Volume 2: Short Papers)",
    year = "2022",
    address = "Dublin, Ireland",
    publisher = "Association for Computational Linguistics",
    pages = "710--715",
    url = "https://aclanthology.org/2022.acl-short.80",
    doi = "10.18653/v1/2022.acl-short.80",
}
"""

_DESCRIPTION = """\
BERTScore compares the tokens of two texts by the cosine of their contextual vectors. The usual one is greedy: a token
may be the best partner of many, so repeating a good word costs nothing. Here every token has a mass, by default the
length of its vector, and the alignment is the cheapest way to move the mass of one text into the other, found exactly;
a token may share its mass among several partners, but has no more than its own.
"""

_KWARGS_DESCRIPTION = """
    Args:
        predictions: texts to score (list of str).
        references: for each prediction one reference (str) or several (list of str).
        return_alignment: add `alignments`: for each prediction and each of its references the tokens, their weights and
            what was matched with what at which cost.
        model: where vectors come from: any Hub id or folder of a transformers model, `"all-mpnet-base-v2"` (stronger,
            slower), or static word vectors as for `wms`.
        weights: mass of a token: `"norm"` (length of its vector, default), `"uniform"` or `"idf"`.
        idf: table of inverse document frequencies: `"corpus"` or True (the references of this call), the path of a
            saved table, or a `movers.IdfTable`; implies `weights="idf"`.
        multi_ref: how several references become one score: `"max"` or `"mean"`.
        device: where the model runs: `"auto"`, `"cpu"`, `"cuda"` or another torch device.
        dtype: its precision: `"float32"`, `"float16"` or `"bfloat16"`.
        batch_tokens: tokens in one of its batches, padding included.
        threads: threads that solve alignment problems; all processors by default.
        progress: show a bar; by default on terminals only, after two seconds.
        truncation: texts longer than the window: `"window"` reads them whole in overlapping windows, `"error"`
            refuses, `"cut"` cuts, warns and counts in `n_truncated`.
        window: tokens the model sees at once; its own limit by default.
        layer: hidden state that gives a token its vector: `"last"`, a number (0 = embeddings, negative from the end),
            `"mean"`, `"pmeans"` or `"routing"`.
        alignment: `"optimal"`, or `"greedy"` for plain BERTScore from the same vectors.
        greedy_special: whether a greedy alignment may match special tokens, as in the `bert-score` package.
        rescale_with_baseline: rescale by the values in `baseline_path`: (x − b) / (1 − b).
        baseline_path: a file that `movers baseline` wrote, or one in the `bert-score` package's format (greedy only).
        lang: accepted for calls written for evaluate's `bertscore`; the default model knows English.
        lowercase: lower-case words for static vectors.
        model_type: evaluate's name of `model`.
        num_layers: evaluate's name of `layer`.
        batch_size: accepted for calls written for evaluate's `bertscore`; batches are formed by tokens.
        nthreads: evaluate's name of `threads`.
        verbose: evaluate's name of `progress`.
        all_layers: accepted if False: one layer at a time.
        use_fast_tokenizer: accepted for calls written for evaluate's `bertscore`.

    Returns:
        score: mean of `scores`.
        scores: a float for each prediction, equal to `f1`, larger is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        precision, recall, f1: lists of float.
        hashcode: the signature.
        signature: one line that says how the numbers were computed.
        n_empty: rows in which a text is blank.
        n_unfiltered: rows scored on all tokens, because filtering left nothing.
        n_truncated: rows in which a text was cut; none unless `truncation="cut"`.
        alignments: on request.

    Examples:
        >>> import evaluate
        >>> bertscore_emd = evaluate.load("metrics/bertscore_emd")  # from a checkout
        >>> result = bertscore_emd.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=["A man is selling snow on the internet."],
        ... )
        >>> round(result["score"], 3)
        0.826
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class BertscoreEmd(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info(
            "bertscore_emd",
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            reference_urls=["https://aclanthology.org/2022.acl-short.80"],
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
        multi_ref: Literal["max", "mean"] = "max",
        device: str = "auto",
        dtype: str = "float32",
        batch_tokens: int | None = None,
        threads: int | None = None,
        progress: bool | None = None,
        truncation: Literal["window", "error", "cut"] = "window",
        window: int | None = None,
        layer: Any = "last",
        alignment: Literal["optimal", "greedy"] = "optimal",
        greedy_special: bool = True,
        rescale_with_baseline: bool = False,
        baseline_path: Any = None,
        lang: str | None = None,
        lowercase: bool = True,
        model_type: Any = None,
        num_layers: int | None = None,
        batch_size: int | None = None,
        nthreads: int | None = None,
        verbose: bool = False,
        all_layers: bool = False,
        use_fast_tokenizer: bool = True,
    ) -> dict[str, Any]:
        return movers.bertscore_emd(
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
            layer=layer,
            alignment=alignment,
            greedy_special=greedy_special,
            rescale_with_baseline=rescale_with_baseline,
            baseline_path=baseline_path,
            lang=lang,
            lowercase=lowercase,
            model_type=model_type,
            num_layers=num_layers,
            batch_size=batch_size,
            nthreads=nthreads,
            verbose=verbose,
            all_layers=all_layers,
            use_fast_tokenizer=use_fast_tokenizer,
        )
