"""MoverScore (Zhao et al. 2019) as an evaluate module."""

from __future__ import annotations

import evaluate

from movers.module import TextMetric, text_metric_info

_URL = "https://aclanthology.org/D19-1053"
_CITATION = """\
@inproceedings{zhao-etal-2019-moverscore,
    title = "{M}over{S}core: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance",
    author = "Zhao, Wei and Peyrard, Maxime and Liu, Fei and Gao, Yang and Meyer, Christian M. and Eger, Steffen",
    booktitle = "Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing and the 9th
        International Joint Conference on Natural Language Processing",
    year = "2019",
    pages = "563--578",
    url = "https://aclanthology.org/D19-1053",
    doi = "10.18653/v1/D19-1053",
}
"""

_DESCRIPTION = """\
MoverScore measures the minimum cost of transforming the words or n-grams of one text into those of another in the
embedding space of a contextual encoder. The distance is the cost of the optimal transport plan, solved exactly. The
authors published two scripts that differ in layers, distance and similarity; `variant` selects one of them.
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): texts to score.
        references (list of str, or list of list of str): for each prediction one reference or several.
        model (str, path, (model, tokenizer) or encoder; default 'all-MiniLM-L6-v2'): encoder: a known name, a
            transformers model by Hub id or folder, a word-vector file or a spaCy pipeline.
        weights ('count', 'uniform', 'idf', 'norm', None; default None): mass of a token: uniform (the default, same as
            `count`), IDF or vector norm.
        variant ('v1', 'v2'; default 'v1'): the authors' first or second script: sets the defaults of `aggregation`,
            `distance` and `similarity`.
        n_gram (int or 'sentence'; default 1): size of the n-grams; 'sentence' makes the whole text one unit (SMD in the
            paper).
        aggregation ('pmeans', 'routing', 'last', 'mean', a layer number, several ('4+6') or None; default None): how
            the layers are aggregated into a token vector; default: `pmeans` for v1, `last` for v2.
        distance ('euclidean', 'sqeuclidean', 'cosine', None; default None): transport cost between two vectors;
            default: `sqeuclidean` for v1, `euclidean` for v2.
        similarity ('one_minus', 'inverse', 'exp', None; default None): max(0, 1 − d), 1 / (1 + d) or exp(−d); default:
            `one_minus` for v1, `inverse` for v2.
        alignment ('soft', 'hard'; default 'soft'): `hard` is the weighted greedy alignment (Prop. 1), with precision,
            recall and F1.
        stopwords ('english', list of words or None; default None): words to drop.
        punctuation (True, False, 'ascii'; default True): drop punctuation and symbols; `ascii` drops only single ASCII
            marks, as the authors do.
        drop_subwords (True, False; default True): keep only the first subword of a word.
        normalize (True, False; default True): scale n-gram vectors to length 1, as the authors' scripts do (Eq. 1 does
            not).
        special_tokens (True, False; default True): include special tokens such as [CLS] and [SEP].
        return_alignment (True, False; default False): add `alignments`: which units were matched, with their mass and
            cost.
        preset ('paper', 'translation', 'short', None; default None): sets several options at once; options given
            explicitly override it.
        idf ('corpus', 'all', 'per-side', path, IdfTable, pair of them or None; default None): IDF table, or a pair for
            predictions and references: `corpus` computes one from the references of this call, `all` one from all
            texts, `per-side` a pair, as the authors' scripts do; implies IDF weights.
        multi_ref ('max', 'mean'; default 'mean'): how scores against several references are combined.
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
        scores: one float per prediction, 0 to 1, higher is more similar; 0.0 if one text is blank, 1.0 if both are.
        precision, recall, f1: lists, with `alignment="hard"`.
        distances: one float per prediction, the transport cost; None if one text is blank.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty, n_unfiltered, n_truncated, n_unknown: rows with a blank text; scored on all tokens because filtering
            removed every one; with a truncated text; with words or subwords that the model does not know.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> moverscore = evaluate.load(movers.module_path("moverscore"))
        >>> references = ["A man is selling snow on the internet."]
        >>> result = moverscore.compute(predictions=["A man sells snow online."], references=references)
        >>> round(result["score"], 3)
        0.642
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Moverscore(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("moverscore", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, references,
        # options: written by `make cards`
        model="all-MiniLM-L6-v2", weights=None, variant="v1", n_gram=1, aggregation=None, distance=None,
        similarity=None, alignment="soft", stopwords=None, punctuation=True, drop_subwords=True, normalize=True,
        special_tokens=True, return_alignment=False, preset=None, idf=None, multi_ref="mean", truncation="window",
        window=None, rescale=False,
        device="auto", dtype="float32", batch_size=None, threads=None, workers=None, progress=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
