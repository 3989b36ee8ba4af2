"""BERTScore with one-to-one alignment (Jin & Gildea 2022) as an evaluate module."""

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
    address = "Dublin, Ireland",
    publisher = "Association for Computational Linguistics",
    pages = "710--715",
    url = "https://aclanthology.org/2022.acl-short.80",
    doi = "10.18653/v1/2022.acl-short.80",
}
"""

_DESCRIPTION = """\
BERTScore compares the tokens of two texts by the cosine similarity of their contextual embeddings. The original aligns
greedily: one token can be the best match of many, so repetition is not penalised. Here the alignment is an optimal
one-to-one assignment: each token is matched at most once, and precision and recall divide the matched similarity by the
number of tokens on each side.
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): texts to score.
        references (list of str, or list of list of str): for each prediction one reference or several.
        model (str, path, (model, tokenizer) or encoder; default 'all-MiniLM-L6-v2'): encoder: a name, a transformers
            model by Hub id or folder, a file of word vectors, a spaCy pipeline.
        lowercase (True, False; default True): lower-case the words for a static encoder.
        weights ('norm', 'uniform', 'idf', None; default None): mass of a token: vector norm (default of
            `bertscore_emd`), equal (of `bertscore_hungarian`), or IDF.
        layer ('last', 'mean', 'pmeans', 'routing', a layer number or several ('4+6'); default 'last'): which hidden
            states give a token its vector (0 = embeddings, negative from the end).
        alignment ('optimal', 'greedy'; default 'optimal'): `greedy` gives plain BERTScore from the same vectors.
        greedy_special (True, False; default True): whether special tokens can be matched in a greedy alignment, as in
            the `bert-score` package.
        rescale_with_baseline (True, False; default False): evaluate's name for `rescale`.
        baseline_path (path or None; default None): evaluate's name for the file of `rescale`; one in the `bert-score`
            package's format serves greedy alignments.
        lang (str or None; default None): language code, as evaluate's bertscore takes it; the default encoder knows
            English.
        model_type (as model; default None): evaluate's name for `model`.
        num_layers (int or None; default None): evaluate's name for `layer`.
        nthreads (int or None; default None): evaluate's name for `threads`.
        verbose (True, False; default False): evaluate's name for `progress`.
        batch_size (int or None; default None): accepted; batches are formed by tokens, see `batch_tokens`.
        all_layers (True, False; default False): accepted if False; ask for one layer at a time.
        use_fast_tokenizer (True, False; default True): accepted; tokenizers are always the fast ones.
        device (str or None; default 'auto'): where a contextual model given by name runs: `auto`, `cpu`, `cuda`, `mps`
            or a torch device.
        dtype ('float32', 'float16', 'bfloat16'; default 'float32'): precision of a contextual model given by name;
            batches agree within 1e-6 in `float32` only.
        batch_tokens (int or None; default None): tokens per batch of a contextual model, padding included.
        threads (int or None; default None): threads that compare texts; all processors by default.
        workers (int or None; default None): processes that share the pairs, for static vectors; contextual models run
            in one process, with threads.
        progress (True, False, None; default None): show a progress bar; by default on terminals only, after two
            seconds.
        return_alignment (True, False; default False): add `alignments`: which units were matched, with which mass and
            cost.
        preset ('paper', None; default None): a name for several options at once; options given beside it win.
        unescape (True, False; default False): decode HTML entities (`&quot;`) before anything else, as people saw the
            texts.
        idf (True, False, 'corpus', path, IdfTable or None; default None): table of inverse document frequencies; True
            or `corpus` counts the references of this call, for both sides.
        multi_ref ('max', 'mean'; default 'max'): how the scores against several references become one.
        truncation ('window', 'error', 'cut'; default 'window'): texts longer than the window: read through overlapping
            windows, refused, or cut and counted.
        window (int or None; default None): tokens a contextual model reads at once; its own limit by default.
        rescale (True, False or path; default False): map unrelated texts to 0 and equal texts to 1, by the shipped list
            of unrelated texts or by a file that `movers baseline` wrote; scores of unrelated texts scatter around 0.
        max_cells (int; default 25000000): largest cost matrix to solve, in cells of about 42 bytes; larger pairs are
            refused with their row.
        shared_pass (SharedPass or None; default None): metrics given the same `movers.SharedPass` reuse one forward
            pass per text.

    Returns:
        score: mean of `scores`.
        scores: one float per prediction, equal to `f1`, higher is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        precision, recall, f1: lists of float.
        hashcode: the signature.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty: rows in which a text is blank.
        n_unfiltered: rows scored on all tokens because filtering removed every one.
        n_truncated: rows in which a text was cut; none unless `truncation="cut"`.
        n_unknown: rows with words or pieces that the model does not know.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> bertscore_hungarian = evaluate.load(movers.module_path("bertscore_hungarian"))
        >>> result = bertscore_hungarian.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=["A man is selling snow on the internet."],
        ... )
        >>> round(result["score"], 3)
        0.733
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class BertscoreHungarian(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("bertscore_hungarian", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, references,
        # options: written by `make cards`
        model="all-MiniLM-L6-v2", lowercase=True, weights=None, layer="last", alignment="optimal", greedy_special=True,
        rescale_with_baseline=False, baseline_path=None, lang=None, model_type=None, num_layers=None, nthreads=None,
        verbose=False, batch_size=None, all_layers=False, use_fast_tokenizer=True, device="auto", dtype="float32",
        batch_tokens=None, threads=None, workers=None, progress=None, return_alignment=False, preset=None,
        unescape=False, idf=None, multi_ref="max", truncation="window", window=None, rescale=False, max_cells=25000000,
        shared_pass=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
