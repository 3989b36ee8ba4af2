"""Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019) as an evaluate module."""

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
    address = "Florence, Italy",
    publisher = "Association for Computational Linguistics",
    pages = "2748--2760",
    url = "https://aclanthology.org/P19-1264",
    doi = "10.18653/v1/P19-1264",
}
"""

_DESCRIPTION = """\
Word Mover's Similarity (WMS) measures the minimum cost of transforming one text's words into another's. A text is a bag
of word vectors weighted by their counts; the Word Mover's Distance is the cost of the optimal transport plan between
two bags, solved exactly, and the similarity is `exp(-distance)`. Words with similar meanings have similar vectors, so a
paraphrase scores well even if it shares no word with the reference.
"""

# From "Args:" to "Returns:" written by `make cards`.
_KWARGS_DESCRIPTION = """
    Args:
        predictions (list of str): texts to score.
        references (list of str, or list of list of str): for each prediction one reference or several.
        model (str, path, (model, tokenizer) or encoder; default 'wordllama'): encoder: a name, a file of word vectors,
            a spaCy pipeline, a transformers model by Hub id or folder.
        stopwords ('auto', 'english', list of words or None; default 'auto'): words to drop; `auto` takes the list of
            `lang`.
        punctuation (True, False; default True): drop tokens that have neither letter nor digit.
        lowercase (True, False; default True): lower-case the words (a contextual model still reads the original case).
        keep_numbers (True, False; default True): keep tokens of digits alone.
        temperature ('auto' or a number above zero; default 'auto'): unit of distances, score = exp(−distance /
            temperature): 1 is the paper's Eq. 3; `auto` is the mean distance of unrelated texts under these options.
        oov ('drop', 'zero', 'match'; default 'drop'): words without a vector: left out, counted at the origin (the
            authors' script), or at distance 0 from themselves and one unit from everything else.
        average ('scores', 'distances'; default 'scores'): `score` is the mean of the scores, or the similarity of the
            mean distance.
        lang (str; default 'en'): language code of the rules that find sentences.
        distance ('euclidean', 'cosine'; default 'euclidean'): distance between two vectors; the paper's is euclidean.
        normalize (True, False; default False): scale every vector to length 1 first.
        layer ('mean', 'last', 'pmeans', 'routing', a layer number or several ('4+6'); default 'mean'): which layers of
            a contextual model give a word its vector.
        context ('sentence', 'text'; default 'sentence'): what a contextual model reads at a time.
        weights ('count', 'uniform', 'idf', 'norm', None; default None): mass of a word: its count (Eq. 1, the default),
            equal, IDF or vector norm.
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
        idf ('corpus', path, IdfTable or None; default None): table of inverse document frequencies: `corpus` counts the
            references of this call; implies weights by IDF.
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
        scores: one float per prediction, in (0, 1], higher is more similar; 0.0 if one text is blank, 1.0 if
            both are.
        signature: the metric, model and options that the scores depend on, in one line.
        n_empty: rows in which a text is blank.
        n_unfiltered: rows scored on all tokens because filtering removed every one.
        n_truncated: rows in which a text was cut; none unless `truncation="cut"`.
        n_unknown: rows with words or pieces that the model does not know.
        alignments: with `return_alignment=True`.

    Examples:
        >>> import evaluate, movers
        >>> wms = evaluate.load(movers.module_path("wms"))
        >>> result = wms.compute(
        ...     predictions=["A man sells snow online."],
        ...     references=["A man is selling snow on the internet."],
        ... )
        >>> round(result["score"], 4)
        0.7449

        Several references, of which the best match counts:

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
        return text_metric_info("wms", _DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, _URL)

    def _compute(
        self, *, predictions, references,
        # options: written by `make cards`
        model="wordllama", stopwords="auto", punctuation=True, lowercase=True, keep_numbers=True, temperature="auto",
        oov="drop", average="scores", lang="en", distance="euclidean", normalize=False, layer="mean",
        context="sentence", weights=None, device="auto", dtype="float32", batch_tokens=None, threads=None, workers=None,
        progress=None, return_alignment=False, preset=None, unescape=False, idf=None, multi_ref="max",
        truncation="window", window=None, rescale=False, max_cells=25000000, shared_pass=None,
        # end of the options
    ):  # fmt: skip
        return self.score(locals())
