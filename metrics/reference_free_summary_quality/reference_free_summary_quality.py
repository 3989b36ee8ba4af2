"""Reference-free summary quality (Bao et al. 2020) as an evaluate module."""

from __future__ import annotations

import evaluate

from movers.module import TextMetric, text_metric_info

_URL = "https://arxiv.org/abs/2005.06377"
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
Reference-free summary quality scores a summary against its source document; no reference summary is needed. The score
is the product of three aspects, each between 0 and 1: faithfulness (is what the summary says in the document), coverage
(does it say what matters) and non-repetition (does it say it once).
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): summaries to score.
        sources (list of str, or list of list of str): for each summary its document, or the documents it covers.
        model (str, path or QualityModel; default 'aspects'): `aspects`, the product of three; `paper`, the
            cross-encoder of Bao et al.; or a folder that `movers train quality` wrote.
        doc_reduce ('mean', 'sum'; default 'mean'): how the scores against several documents become one; `mean` stays in
            [0, 1], `sum` is the paper's.
        return_alignment (True, False; default False): add `alignments`: which units were matched, with their mass and
            cost.
        preset ('paper', None; default None): sets several options at once; options given explicitly override it.

    Run settings, the same for all metrics:
        device (str or None; default 'auto'): `auto`, `cpu`, `cuda`, `mps` or any torch device.
        dtype ('float32', 'float16', 'bfloat16'; default 'float32'): precision of a contextual model; scores are
            batch-invariant (1e-6) in `float32` only.
        batch_size (int or None; default None): texts per forward pass of a contextual model; by default as many as fill
            the processor's cache.
        threads (int or None; default None): threads that compare texts; by default one per available processor.
        workers (int or None; default None): worker processes, for static vectors; contextual models run in one process,
            with threads.
        progress (True, False, None; default None): show a progress bar; by default only on a terminal, after two
            seconds.

    Returns:
        score: mean of `scores`.
        scores: one float per summary, in [0, 1] (with `doc_reduce="sum"` in [0, number of documents]), higher is
            better; 0.0 for a blank summary or document.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty, n_unfiltered, n_truncated, n_unknown: rows with a blank text; always 0; with a truncated text; with
            words or subwords that the model does not know.
        faithfulness, coverage, non_repetition: one float per summary, in [0, 1]; not with a trained model.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> quality = evaluate.load(movers.module_path("reference_free_summary_quality"))
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
        >>> result["scores"][0] > 0.25 > result["scores"][1]
        True
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ReferenceFreeSummaryQuality(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("reference_free_summary_quality", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, sources,
        # options: written by `make cards`
        model="aspects", doc_reduce="mean", return_alignment=False, preset=None,
        device="auto", dtype="float32", batch_size=None, threads=None, workers=None, progress=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
