"""BERTScore with one-to-many alignment (Jin & Gildea 2022) as an evaluate module."""

from __future__ import annotations

import evaluate

from movers.module import TextMetric, text_metric_info

_URL = "https://aclanthology.org/2022.acl-short.80"
_CITATION = """\
@inproceedings{jin-gildea-2022-rewarding,
    title = "Rewarding Semantic Similarity under Optimized Alignments for {AMR}-to-Text Generation",
    author = "Jin, Lisa and Gildea, Daniel",
    booktitle = "Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics
        (Volume 2: Short Papers)",
    year = "2022",
    pages = "710--715",
    url = "https://aclanthology.org/2022.acl-short.80",
    doi = "10.18653/v1/2022.acl-short.80",
}
"""

_DESCRIPTION = """\
BERTScore compares the tokens of two texts by the cosine similarity of their contextual embeddings. The original aligns
greedily: one token can be the best match of many, so repetition is not penalised. Here each token has a mass, by
default the norm of its vector, and the alignment is an optimal transport plan, solved exactly: a token may split its
mass among several tokens, but has no more than its own.
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): texts to score.
        references (list of str, or list of list of str): for each prediction one reference or several.
        model (str, path, (model, tokenizer) or encoder; default 'all-MiniLM-L6-v2'): encoder: a known name, a
            transformers model by Hub id or folder, a word-vector file or a spaCy pipeline.
        weights ('norm', 'uniform', 'idf', None; default None): mass of a token: vector norm (default of
            `bertscore_emd`), uniform (`bertscore_hungarian`) or IDF.
        layer ('last', 'mean', 'pmeans', 'routing', a layer number or several ('4+6'); default 'last'): layer of the
            token vectors (0 = embeddings, negative from the end), or how layers are aggregated.
        alignment ('optimal', 'greedy'; default 'optimal'): `greedy` is the original BERTScore on the same vectors.
        greedy_special (True, False; default True): whether special tokens can be matched in a greedy alignment, as in
            the package `bert-score`.
        rescale_with_baseline (True, False; default False): evaluate's name for `rescale`.
        baseline_path (path or None; default None): evaluate's name for the file of `rescale`; greedy alignments also
            read the format of the package `bert-score`.
        lang (str or None; default None): language code, as in evaluate's bertscore; the default encoder is for English.
        model_type (as model; default None): evaluate's name for `model`.
        num_layers (int or None; default None): evaluate's name for `layer`.
        nthreads (int or None; default None): evaluate's name for `threads`.
        verbose (True, False; default False): evaluate's name for `progress`.
        all_layers (True, False; default False): only False is accepted; request one layer at a time.
        use_fast_tokenizer (True, False; default True): ignored; fast tokenizers are always used.
        return_alignment (True, False; default False): add `alignments`: which units were matched, with their mass and
            cost.
        preset ('paper', None; default None): sets several options at once; options given explicitly override it.
        idf (True, False, 'corpus', path, IdfTable or None; default None): IDF table for both sides; True or `corpus`
            computes it from the references of this call.
        multi_ref ('max', 'mean'; default 'max'): how scores against several references are combined.
        truncation ('window', 'error', 'cut'; default 'window'): texts longer than the window: read in overlapping
            windows, rejected, or truncated and counted.
        window (int or None; default None): tokens a contextual model reads at once; by default the model's own limit.
        rescale (True, False or path; default False): rescale linearly so that unrelated texts score 0 on average and
            equal texts 1, with the built-in list of unrelated texts or a file written by `movers baseline`.

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
        scores: one float per prediction, equal to `f1`, higher is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        precision, recall, f1: lists of float.
        hashcode: the signature.
        distances: one float per prediction, the transport cost; None if one text is blank.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty, n_unfiltered, n_truncated, n_unknown: rows with a blank text; scored on all tokens because filtering
            removed every one; with a truncated text; with words or subwords that the model does not know.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> bertscore_emd = evaluate.load(movers.module_path("bertscore_emd"))
        >>> references = ["A man is selling snow on the internet."]
        >>> result = bertscore_emd.compute(predictions=["A man sells snow online."], references=references)
        >>> round(result["score"], 3)
        0.826
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class BertscoreEmd(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("bertscore_emd", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, references,
        # options: written by `make cards`
        model="all-MiniLM-L6-v2", weights=None, layer="last", alignment="optimal", greedy_special=True,
        rescale_with_baseline=False, baseline_path=None, lang=None, model_type=None, num_layers=None, nthreads=None,
        verbose=False, all_layers=False, use_fast_tokenizer=True, return_alignment=False, preset=None, idf=None,
        multi_ref="max", truncation="window", window=None, rescale=False,
        device="auto", dtype="float32", batch_size=None, threads=None, workers=None, progress=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
