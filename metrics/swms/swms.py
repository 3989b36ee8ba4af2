"""Sentence + Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019) as an evaluate module."""

from __future__ import annotations

import evaluate

from movers.module import TextMetric, text_metric_info

_URL = "https://aclanthology.org/P19-1264"
_CITATION = """\
@inproceedings{clark-etal-2019-sentence,
    title = "Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence Texts",
    author = "Clark, Elizabeth and Celikyilmaz, Asli and Smith, Noah A.",
    booktitle = "Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics",
    year = "2019",
    pages = "2748--2760",
    url = "https://aclanthology.org/P19-1264",
    doi = "10.18653/v1/P19-1264",
}
"""

_DESCRIPTION = """\
Sentence + Word Mover's Similarity (S+WMS) represents a text by one bag of its words and its sentences, each level with
half of the weight. The distance is the cost of the optimal transport plan between two bags, solved exactly, and the
similarity is `exp(-distance / temperature)`. Words may be matched with sentences and sentences with words.
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): texts to score.
        references (list of str, or list of list of str): for each prediction one reference or several.
        model (str, path, (model, tokenizer) or encoder; default 'wordllama'): encoder: a known name, a word-vector
            file, a spaCy pipeline, or a transformers model by Hub id or folder.
        stopwords ('auto', 'drop', 'english', list of words or None; default 'auto'): words that have a twentieth of the
            mass of others: the list for `lang` (`auto`), or your own; `drop` drops the list for `lang`, as the paper
            does.
        lowercase (True, False; default True): lowercase words (a contextual model still reads the original case).
        alphabetic (True, False; default False): drop numbers, symbols and all else but words of letters, as the paper
            does.
        temperature ('auto' or a number above zero; default 'auto'): score = exp(−distance / temperature): 1 is the
            paper's Eq. 3; `auto` is the mean distance between unrelated texts under these options.
        oov ('drop', 'zero', 'match'; default 'drop'): words without a vector: dropped, placed at the origin (the
            authors' script), or at distance 0 from identical words and `temperature` from all others.
        lang (str; default 'en'): language code, for sentence splitting and stop words.
        distance ('euclidean', 'cosine'; default 'euclidean'): distance between two vectors; `euclidean` in the paper.
        normalize (True, False; default False): scale every vector to length 1 first.
        layer ('mean', 'last', 'pmeans', 'routing', a layer number or several ('4+6'); default 'mean'): how the layers
            of a contextual model are aggregated into a word vector.
        context ('sentence', 'text'; default 'sentence'): what a contextual model encodes at a time.
        weights ('count', 'uniform', 'idf', 'norm', None; default None): mass of a word: its count (Eq. 1, the default),
            uniform, IDF or vector norm.
        sentence_weights ('count', 'uniform', 'idf'; default 'count'): mass of a sentence: its number of kept words (Eq.
            4), uniform, or the sum of its words' IDF.
        return_alignment (True, False; default False): add `alignments`: which units were matched, with their mass and
            cost.
        preset ('paper', None; default None): sets several options at once; options given explicitly override it.
        idf ('corpus', path, IdfTable or None; default None): IDF table: `corpus` computes it from the references of
            this call; implies IDF weights.
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
        scores: one float per prediction, in (0, 1], higher is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        distances: one float per prediction, the transport cost; None if one text is blank.
        temperature: the temperature that was used.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty, n_unfiltered, n_truncated, n_unknown: rows with a blank text; scored on all tokens because filtering
            removed every one; with a truncated text; with words or subwords that the model does not know.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> swms = evaluate.load(movers.module_path("swms"))
        >>> references = ["It ships in a box. A man sells snow."]
        >>> result = swms.compute(predictions=["Snow is sold online. It ships in a box."], references=references)
        >>> round(result["score"], 4)
        0.6477
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Swms(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("swms", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, references,
        # options: written by `make cards`
        model="wordllama", stopwords="auto", lowercase=True, alphabetic=False, temperature="auto", oov="drop",
        lang="en", distance="euclidean", normalize=False, layer="mean", context="sentence", weights=None,
        sentence_weights="count", return_alignment=False, preset=None, idf=None, multi_ref="max", truncation="window",
        window=None, rescale=False,
        device="auto", dtype="float32", batch_size=None, threads=None, workers=None, progress=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
