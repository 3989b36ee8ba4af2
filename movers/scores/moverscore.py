r"""MoverScore (Zhao et al. 2019): word mover's distance between contextual n-gram vectors (section 3.1).

.. math::
    \mathrm{WMD}(x^n, y^n) = \min_{F \ge 0} \langle C, F \rangle \quad s.t. \quad F 1 = f_{x^n}, \; F^\top 1 = f_{y^n}

The i-th n-gram of a text has, with token weights w (IDF in the paper), the vector and the mass

.. math::
    E(x_i^n) = \sum_{k=i}^{i+n-1} w_k E(x_k) \qquad (1)

    f_i = \frac{1}{Z} \sum_{k=i}^{i+n-1} w_k \qquad (2)

where Z makes the masses of a text sum to 1. The layers of the encoder are aggregated into :math:`E(x_k)` (Eq. 3–5) by
`movers.encoders.layers`. Unlike Eq. 1, the authors' two published scripts scale n-gram vectors to length 1; `v1` takes
:math:`C = \|x - y\|^2` and scores :math:`1 - \mathrm{WMD}` (here at least 0, the score of a blank text), `v2` takes
:math:`C = \|x - y\|` and scores :math:`1 / (1 + \mathrm{WMD})`.

Reference: W. Zhao, M. Peyrard, F. Liu, Y. Gao, C. M. Meyer, S. Eger. MoverScore: Text Generation Evaluating with
Contextualized Embeddings and Earth Mover Distance. EMNLP 2019.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from movers.bag import Bag, alignment_of
from movers.encoders.layers import parse_aggregation
from movers.errors import InputError
from movers.scores.bertscore import f1_of, greedy_scores
from movers.scores.metric import Comparison
from movers.scores.options import option
from movers.scores.tokens import TokenMetric, TokenOptions, TokenText, load_tokens
from movers.signature import signature
from movers.texts import name_stop_words, stop_words
from movers.transport import Distance, emd_of_normalised, pairwise_distances, unit_rows
from movers.weights import Corpus, IdfTable, Weights, choose_weights, normalised, warn_no_mass, weigh

Similarity = Literal["one_minus", "inverse", "exp"]
Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def n_grams(vectors: Vectors, weights: Floats, n: int, normalize: bool = True) -> tuple[Any, Floats]:
    """Eq. 1 and 2: (k − n + 1, d) vectors and (k − n + 1,) masses, not yet normalised, of the n-grams of k tokens.

    With `normalize` vectors are scaled to length 1, and an n-gram without weight takes the direction of its unweighted
    mean; otherwise they are the weighted sums of Eq. 1.
    """
    if n == 1 and normalize:
        return unit_rows(vectors), weights
    windows = np.lib.stride_tricks.sliding_window_view(weights, n)  # (k − n + 1, n)
    masses = windows.sum(axis=1)
    shares = np.where(masses[:, None] > 0, windows, 1.0) if normalize else windows
    stacked = np.lib.stride_tricks.sliding_window_view(np.asarray(vectors, np.float64), n, axis=0)
    sums = np.einsum("idk,ik->id", stacked, shares)
    return (unit_rows(sums) if normalize else sums), masses


def similarity_of(distance: float, kind: Similarity) -> float:
    """max(0, 1 − d) (v1), 1 / (1 + d) (v2) or exp(−d): never below the 0 of a blank text."""
    if kind == "one_minus":
        return max(0.0, 1.0 - distance)
    return 1.0 / (1.0 + distance) if kind == "inverse" else math.exp(-distance)


# ---------------------------------------------------------------------------------------------------------------------
# Options

# Chosen on cs-en, de-en, fi-en and lv-en of WMT17, see benchmarks/agreement/RESULTS.md; others: p-means.
_TRANSLATION_LAYERS = {"all-MiniLM-L6-v2": "4+6", "all-mpnet-base-v2": "7+12"}


@dataclass(frozen=True, kw_only=True)
class MoverScoreOptions(TokenOptions):
    multi_ref: Literal["max", "mean"] = option("mean", "how scores against several references are combined")
    weights: Weights | None = option(
        None, "mass of a token: uniform (the default, same as `count`), IDF or vector norm"
    )
    idf: object = option(
        None,
        "IDF table, or a pair for predictions and references: `corpus` computes one from the references of this call, "
        "`all` one from all texts, `per-side` a pair, as the authors' scripts do; implies IDF weights",
        values="'corpus', 'all', 'per-side', path, IdfTable, pair of them or None",
    )
    variant: Literal["v1", "v2"] = option(
        "v1", "the authors' first or second script: sets the defaults of `aggregation`, `distance` and `similarity`"
    )
    n_gram: object = option(
        1,
        "size of the n-grams; 'sentence' makes the whole text one unit (SMD in the paper)",
        values="int or 'sentence'",
    )
    aggregation: object = option(
        None,
        "how the layers are aggregated into a token vector; default: `pmeans` for v1, `last` for v2",
        values="'pmeans', 'routing', 'last', 'mean', a layer number, several ('4+6') or None",
    )
    distance: Distance | None = option(
        None, "transport cost between two vectors; default: `sqeuclidean` for v1, `euclidean` for v2"
    )
    similarity: Similarity | None = option(
        None, "max(0, 1 − d), 1 / (1 + d) or exp(−d); default: `one_minus` for v1, `inverse` for v2"
    )
    alignment: Literal["soft", "hard"] = option(
        "soft", "`hard` is the weighted greedy alignment (Prop. 1), with precision, recall and F1"
    )
    stopwords: object = option(None, "words to drop", values="'english', list of words or None")
    punctuation: Literal[True, False, "ascii"] = option(
        True, "drop punctuation and symbols; `ascii` drops only single ASCII marks, as the authors do"
    )
    drop_subwords: bool = option(True, "keep only the first subword of a word")
    normalize: bool = option(True, "scale n-gram vectors to length 1, as the authors' scripts do (Eq. 1 does not)")
    special_tokens: bool = option(True, "include special tokens such as [CLS] and [SEP]")

    presets = {
        "paper": {
            "aggregation": "pmeans",
            "distance": "euclidean",
            "similarity": "inverse",
            "normalize": False,
            "idf": "all",
        },
        "translation": {"aggregation": "translation", "punctuation": False, "drop_subwords": False},
        "short": {"special_tokens": False, "drop_subwords": False},
    }

    @property
    def unescape(self) -> bool:
        """Whether HTML entities such as `&quot;`, which translations are full of, are decoded first."""
        return self.preset == "translation"

    def settle(self, metric: str) -> Self:
        """Fill in the defaults of the variant."""
        if self.n_gram != "sentence" and (type(self.n_gram) is not int or self.n_gram < 1):
            raise InputError(
                f"{metric}: n_gram: expected a whole number above zero or 'sentence', but got {self.n_gram!r}"
            )
        first = self.variant == "v1"
        aggregation = self.aggregation if self.aggregation is not None else ("pmeans" if first else "last")
        if aggregation == "translation":  # set by the preset
            aggregation = _TRANSLATION_LAYERS.get(str(self.model).removeprefix("sentence-transformers/"), "pmeans")
        stop_words(self.stopwords, metric)
        return replace(
            self,
            aggregation=parse_aggregation(metric, aggregation, "aggregation"),
            distance=self.distance or ("sqeuclidean" if first else "euclidean"),
            similarity=self.similarity or ("one_minus" if first else "inverse"),
            weights=choose_weights(metric, self.weights, self.idf, "uniform"),
        )


# ---------------------------------------------------------------------------------------------------------------------
# The metric


@dataclass(frozen=True, kw_only=True)
class MoverScore(TokenMetric):
    """MoverScore: minimum cost of transforming one text's contextual n-grams into the other's.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (0 to 1), `distances`, `signature`, `n_empty`,
        `n_unfiltered`, `n_truncated`, `n_unknown`; with `alignment="hard"` also `precision`, `recall`, `f1`;
        `alignments` on request.

    Examples
    --------
    >>> import movers
    >>> result = movers.moverscore(["A man sells snow online."], ["Snow is sold on the internet by a man."])
    >>> 0.3 < result["score"] < 0.9
    True
    """

    options: MoverScoreOptions
    stopwords: frozenset[str]
    options_class = MoverScoreOptions

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Bag]]:
        written = [html.unescape(text) for text in texts] if self.options.unescape else texts
        for index, tokens in self.read_tokens(written):
            bags = [self._bag(tokens, texts[index], table) for table in self.tables or [None]]
            yield index, bags[0]._replace(as_reference=bags[1] if len(bags) > 1 else None)

    def _bag(self, tokens: TokenText, text: str, table: IdfTable | None) -> Bag:
        """The n-grams of the kept tokens."""
        options = self.options
        reasons = tokens.reasons(options.drop_subwords, options.punctuation, self.stopwords)
        places = tokens.places(reasons, options.special_tokens)
        unfiltered = not len(places)  # then all tokens are kept
        if unfiltered:
            places, reasons = tokens.places({}, options.special_tokens), {}
        labels, dropped = tokens.labels(places.tolist(), reasons) if options.return_alignment else ((), ())
        bag = tokens.bag(text, dropped)
        if not len(places):
            return bag
        vectors = tokens.vectors[places]
        keys = [tokens.keys[place] for place in places.tolist()] if table else []
        weights = weigh(options.weights or "uniform", np.ones(len(places)), vectors, keys, table)
        if not weights.any():  # every token occurs in every text: weighted sums would all be the zero vector
            warn_no_mass(self.name)
            weights = np.ones(len(places))
        size = len(places) if options.n_gram == "sentence" else min(int(str(options.n_gram)), len(places))
        grams, masses = n_grams(vectors, weights, size, options.normalize)
        if size > 1:
            windows = [labels[first : first + size] for first in range(len(grams) if labels else 0)]
            labels = tuple(
                window[0]._replace(
                    text=" ".join(label.text for label in window), kind=f"{size}-gram", end=window[-1].end
                )
                for window in windows
            )
        masses = normalised(self.name, masses)
        return bag._replace(vectors=grams, masses=masses, labels=labels, unfiltered=unfiltered)

    def align(self, prediction: Bag, reference: Bag) -> Comparison:
        return (self._hard if self.options.alignment == "hard" else self._soft)(prediction, reference)

    def _soft(self, first: Bag, second: Bag) -> Comparison:
        """Section 3.1: the WMD of two bags of n-grams, the cost of the optimal plan."""
        costs = pairwise_distances(first.vectors, second.vectors, self.options.distance or "sqeuclidean")
        plan = emd_of_normalised(first.masses, second.masses, costs)
        aligned = alignment_of(first, second, plan.flow, costs, plan.cost) if self.options.return_alignment else None
        value = similarity_of(plan.cost, self.options.similarity or "one_minus")
        return Comparison(value, alignment=aligned, distance=plan.cost)

    def _hard(self, first: Bag, second: Bag) -> Comparison:
        """Proposition 1: greedy alignment, every n-gram with its most similar one."""
        x, y = (unit_rows(np.asarray(bag.vectors, np.float64)) for bag in (first, second))
        similarity = np.clip(x @ y.T, -1.0, 1.0)  # a product of unit vectors exceeds 1 by rounding
        precision, recall, flow = greedy_scores(similarity, first.masses, second.masses)
        precision, recall = min(precision, 1.0), min(recall, 1.0)  # a weighted mean of ones exceeds 1 by rounding
        f1 = f1_of(precision, recall)
        aligned = alignment_of(first, second, flow, 1.0 - similarity, None) if self.options.return_alignment else None
        return Comparison(f1, {"precision": precision, "recall": recall, "f1": f1}, alignment=aligned)

    def compare_empty(self, equal: bool) -> Comparison:
        comparison = super().compare_empty(equal)
        if self.options.alignment == "soft":
            return comparison
        return comparison._replace(parts=dict.fromkeys(("precision", "recall", "f1"), float(equal)), distance=None)

    @classmethod
    def build(cls, name: str, options: MoverScoreOptions, corpus: Corpus | None = None) -> Self:
        aggregation = parse_aggregation(name, options.aggregation)
        if options.unescape and corpus is not None:
            groups = ([html.unescape(text) for text in group] for group in corpus.references)
            corpus = Corpus(map(html.unescape, corpus.predictions), groups)
        encoder, encoding, tables, fields = load_tokens(name, options, aggregation, corpus, two_sides=True)
        if encoding is not None:
            fields["subwords"] = "first" if options.drop_subwords else "all"
            fields["special"] = "keep" if options.special_tokens else "drop"
        fields |= {"n": options.n_gram, "norm": options.normalize, "weights": options.weights}
        if tables:
            fields["idf"] = "+".join(dict.fromkeys(table.digest for table in tables))
        fields["stop"] = name_stop_words(options.stopwords)
        fields["punct"] = {True: "drop", False: "keep", "ascii": "drop-ascii"}[options.punctuation]
        if options.alignment == "hard":
            fields["align"] = "hard"
        else:
            fields |= {"dist": options.distance, "sim": options.similarity}
        if options.unescape:
            fields["html"] = "decoded"
        fields["refs"] = options.multi_ref
        return cls(
            name=name,
            signature=signature(name, fields),
            options=options,
            encoder=encoder,
            encoding=encoding,
            tables=tables,
            stopwords=stop_words(options.stopwords),
        )
