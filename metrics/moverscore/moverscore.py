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
        lowercase (True, False; default True): lowercase words, with a static encoder.
        weights ('count', 'uniform', 'idf', 'norm', None; default None): mass of a token: uniform (the default, same as
            `count`), IDF or vector norm.
        variant ('v1', 'v2'; default 'v1'): the authors' first or second script: sets the defaults of `aggregation`,
            `distance` and `similarity`.
        n_gram (int or 'sentence'; default 1): size of the n-grams; 'sentence' makes the whole text one unit (SMD in the
            paper).
        aggregation ('pmeans', 'routing', 'last', 'mean', a layer number, several ('4+6') or None; default None): how
            the layers are aggregated into a token vector; default: `pmeans` for v1, `last` for v2.
        routing_kernel ('gaussian', 'epanechnikov', 'paper'; default 'gaussian'): kernel of `aggregation='routing'`;
            `paper` is Algorithm 1 of A.2 to the letter.
        distance ('euclidean', 'sqeuclidean', 'cosine', None; default None): transport cost between two vectors;
            default: `sqeuclidean` for v1, `euclidean` for v2.
        similarity ('one_minus', 'inverse', 'exp', None; default None): 1 − d, 1 / (1 + d) or exp(−d); default:
            `one_minus` for v1, `inverse` for v2.
        alignment ('soft', 'hard'; default 'soft'): `hard` is the weighted greedy alignment (Prop. 1), with precision,
            recall and F1.
        stopwords ('english', list of words or None; default None): words to drop.
        punctuation (True, False, 'ascii'; default True): drop punctuation and symbols; `ascii` drops only single ASCII
            marks, as the authors do.
        drop_subwords (True, False; default True): keep only the first subword of a word.
        normalize (True, False; default True): scale n-gram vectors to length 1, as the authors' scripts do (Eq. 1 does
            not).
        idf_tables ('sides', 'one'; default 'sides'): with `idf='corpus'`: one table per side (the authors' scripts) or
            one over all texts (the paper).
        powers (list of numbers or None; default None): exponents of the power means (Eq. 4): positive integers, inf and
            -inf; default: -inf, 1, inf.
        average ('scores', 'distances'; default 'scores'): `score` is the mean of the scores, or the similarity of the
            mean distance.
        special_tokens (True, False; default True): include special tokens such as [CLS] and [SEP].
        device (str or None; default 'auto'): device of a contextual model given by name: `auto`, `cpu`, `cuda`, `mps`
            or any torch device.
        dtype ('float32', 'float16', 'bfloat16'; default 'float32'): precision of a contextual model given by name;
            scores are batch-invariant (1e-6) in `float32` only.
        batch_tokens (int or None; default None): tokens per batch of a contextual model, padding included.
        threads (int or None; default None): threads that compare texts; by default one per available processor.
        workers (int or None; default None): worker processes, for static vectors; contextual models run in one process,
            with threads.
        progress (True, False, None; default None): show a progress bar; by default only on a terminal, after two
            seconds.
        return_alignment (True, False; default False): add `alignments`: which units were matched, with their mass and
            cost.
        preset ('paper', 'translation', 'short', None; default None): sets several options at once; options given
            explicitly override it.
        unescape (True, False; default False): decode HTML entities such as `&quot;` first.
        idf ('corpus', path, IdfTable, pair of them or None; default None): IDF table, or a pair for predictions and
            references: `corpus` computes them from the texts of this call; implies IDF weights.
        multi_ref ('max', 'mean'; default 'mean'): how scores against several references are combined.
        truncation ('window', 'error', 'cut'; default 'window'): texts longer than the window: read in overlapping
            windows, rejected, or truncated and counted.
        window (int or None; default None): tokens a contextual model reads at once; by default the model's own limit.
        rescale (True, False or path; default False): rescale linearly so that unrelated texts score 0 on average and
            equal texts 1, with the built-in list of unrelated texts or a file written by `movers baseline`.
        max_cells (int; default 25000000): largest cost matrix, in cells of about 42 bytes; larger pairs are an error
            that names the row.
        shared_pass (SharedPass or None; default None): metrics given the same `movers.SharedPass` reuse one forward
            pass per text.

    Returns:
        score: mean of `scores`.
        scores: one float per prediction, higher is more similar: −3 to 1 with `variant="v1"`, 0 to 1 with
            `variant="v2"`; 0.0 if one text is blank, 1.0 if both are.
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
        model="all-MiniLM-L6-v2", lowercase=True, weights=None, variant="v1", n_gram=1, aggregation=None,
        routing_kernel="gaussian", distance=None, similarity=None, alignment="soft", stopwords=None, punctuation=True,
        drop_subwords=True, normalize=True, idf_tables="sides", powers=None, average="scores", special_tokens=True,
        device="auto", dtype="float32", batch_tokens=None, threads=None, workers=None, progress=None,
        return_alignment=False, preset=None, unescape=False, idf=None, multi_ref="mean", truncation="window",
        window=None, rescale=False, max_cells=25000000, shared_pass=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
