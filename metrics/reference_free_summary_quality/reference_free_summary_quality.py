"""Reference-free summary quality (Bao et al. 2020) as an evaluate module."""

from __future__ import annotations

from typing import Any, Literal

import evaluate

import movers  # From: git+https://github.com/movers-metrics/movers@v0.1.0
from movers.module import TextMetric, text_metric_info  # From: git+https://github.com/movers-metrics/movers@v0.1.0

_CITATION = """\
@article{bao2020endtoend,
    title = "End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization",
    author = "Bao, Forrest Sheng and others",
    journal = "arXiv preprint arXiv:2005.06377",
    year = "2020",
    url = "https://arxiv.org/abs/2005.06377",
}
"""

_DESCRIPTION = """\
Reference-free summary quality scores a summary against the document it was made from; no reference summary is needed.
A small model, trained on good summaries and on summaries with faults made on purpose, aligns the sentences and words of
the summary with those of the document and judges how well the summary is supported, how much of the document it
covers, whether it repeats itself and whether its language is intact. The score lies between 0 and 1.
"""

_KWARGS_DESCRIPTION = """
    Args:
        predictions: summaries to score (list of str).
        sources: for each summary its document (str), or the documents it covers together (list of str).
        return_alignment: add `alignments`: for each summary and each of its documents, which summary sentences the
            document supports and which parts of the document are covered.
        model: `"shipped"`, or the folder of a model that `movers train quality` wrote.
        doc_reduce: how the scores against several documents become one: `"mean"` or, as in the paper, `"sum"`.
        device: `"auto"`, `"cpu"`, `"cuda"`, … for the encoder.
        dtype: `"float32"`, `"float16"` or `"bfloat16"` for the encoder.
        batch_tokens: tokens in a batch of the encoder, padding included.
        threads: threads that compare; all processors by default.
        progress: show a progress bar; by default on terminals only, after two seconds.

    Returns:
        score: mean of `scores`.
        scores: a float for each summary, in [0, 1] (with `doc_reduce="sum"` in [0, number of documents]), larger is
            better; 0.0 for a blank summary or document.
        signature: one line that says how the numbers were computed.
        n_empty: rows in which a text is blank.
        n_unfiltered: always 0, nothing is filtered.
        n_truncated: always 0, nothing is cut.
        alignments: on request.

    Examples:
        >>> import evaluate
        >>> quality = evaluate.load("metrics/reference_free_summary_quality")  # from a checkout
        >>> document = (
        ...     "A storm hit the coast on Monday night. Waves broke the sea wall of Porton and flooded two streets. "
        ...     "Forty families spent the night in the school. The mayor said the wall would be rebuilt by spring."
        ... )
        >>> result = quality.compute(
        ...     predictions=[
        ...         "A storm broke the sea wall of Porton, and forty families had to leave their homes.",
        ...         "The bank raised its interest rate for the third time this year.",
        ...     ],
        ...     sources=[document, document],
        ... )
        >>> result["scores"][0] > 0.5 > result["scores"][1]
        True
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ReferenceFreeSummaryQuality(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info(
            "reference_free_summary_quality",
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            reference_urls=["https://arxiv.org/abs/2005.06377"],
        )

    def _compute(
        self,
        *,
        predictions: list[str],
        sources: list[list[str]],
        return_alignment: bool = False,
        model: Any = "shipped",
        doc_reduce: Literal["mean", "sum"] = "mean",
        device: str = "auto",
        dtype: str = "float32",
        batch_tokens: int | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        return movers.reference_free_summary_quality(
            predictions,
            sources,
            return_alignment=return_alignment,
            model=model,
            doc_reduce=doc_reduce,
            device=device,
            dtype=dtype,
            batch_tokens=batch_tokens,
            threads=threads,
            progress=progress,
        )
