r"""MoverScore (Zhao et al. 2019): word mover's distance between contextual n-gram vectors (section 3.1).

.. math::
    \mathrm{WMD}(x^n, y^n) = \min_{F \ge 0} \langle C, F \rangle \quad s.t. \quad F 1 = f_{x^n}, \; F^\top 1 = f_{y^n}

The i-th n-gram of a text has, with token weights w (IDF in the paper), the vector and the mass

.. math::
    E(x_i^n) = \sum_{k=i}^{i+n-1} w_k E(x_k) \qquad (1)

    f_i = \frac{1}{Z} \sum_{k=i}^{i+n-1} w_k \qquad (2)

where Z makes the masses of a text sum to 1. The layers of the encoder are aggregated into :math:`E(x_k)` (Eq. 3–5) by
`movers.encoders.layers`. Unlike Eq. 1, the authors' two published scripts scale n-gram vectors to length 1; `v1` takes
:math:`C = \|x - y\|^2` and scores :math:`1 - \mathrm{WMD}`, `v2` takes :math:`C = \|x - y\|` and scores
:math:`1 / (1 + \mathrm{WMD})`.

Reference: W. Zhao, M. Peyrard, F. Liu, Y. Gao, C. M. Meyer, S. Eger. MoverScore: Text Generation Evaluating with
Contextualized Embeddings and Earth Mover Distance. EMNLP 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from movers.encoders.layers import Kernel, parse_aggregation
from movers.errors import InputError
from movers.scores.bags import Bag, alignment_of, no_alignment
from movers.scores.bertscore import f1_of, greedy_scores
from movers.scores.engine import Comparison, check_size, run
from movers.scores.options import MultiRef, References, documented, option
from movers.scores.tokens import Filters, Side, TokenMetric, TokenOptions, TokenReader, TokenText, TokenUnits
from movers.signature import signature
from movers.texts import name_stop_words, stop_words
from movers.threads import CELLS
from movers.transport import Distance, emd_of_normalised, pairwise_distances, unit_rows
from movers.weights import Corpus, Weights, choose_weights, normalised, warn_no_mass, weigh

__all__ = ["MoverScore", "MoverScoreOptions", "moverscore", "n_grams"]

Similarity = Literal["one_minus", "inverse", "exp"]
Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def n_grams(vectors: Vectors, weights: Floats, n: int | None, normalize: bool = True) -> tuple[Any, Floats]:
    """Eq. 1 and 2: vectors and masses (not yet normalised) of the n-grams of k tokens.

    Parameters
    ----------
    vectors : (k, d)
    weights : (k,)
    n : int or None
        None, or more than k: the whole text is one n-gram.
    normalize : bool
        Scale the vectors to length 1; an n-gram without weight then takes the direction of its unweighted mean.
        Otherwise the vectors are the weighted sums of Eq. 1.

    Returns
    -------
    (k − n + 1, d) vectors and (k − n + 1,) masses.
    """
    size = len(weights) if n is None else min(n, len(weights))
    if size == 1 and normalize:
        return unit_rows(vectors), weights
    windows = np.lib.stride_tricks.sliding_window_view(weights, size)  # (k − n + 1, n)
    masses = windows.sum(axis=1)
    shares = np.where(masses[:, None] > 0, windows, 1.0) if normalize else windows
    stacked = np.lib.stride_tricks.sliding_window_view(np.asarray(vectors, np.float64), size, axis=0)
    sums = np.einsum("idk,ik->id", stacked, shares)
    return (unit_rows(sums) if normalize else sums), masses


def similarity_of(distance: float, kind: Similarity) -> float:
    """1 − d (v1), 1 / (1 + d) (v2) or exp(−d)."""
    if kind == "one_minus":
        return 1.0 - distance
    return 1.0 / (1.0 + distance) if kind == "inverse" else math.exp(-distance)


@dataclass(frozen=True)
class NGramUnits:
    """n-grams of a text's kept tokens, with (k, d) vectors; n-gram i spans `size` tokens from token i on."""

    tokens: TokenUnits
    matrix: Floats | Vectors
    size: int

    def vectors(self) -> Any:
        return self.matrix

    def unknown(self) -> NDArray[np.bool_]:
        return self.tokens.unknown()[: len(self.matrix)]

    def keys(self) -> list[object]:
        return self.tokens.keys()[: len(self.matrix)]

    def describe(self) -> list[dict[str, object]]:
        units = self.tokens.describe()
        if self.size == 1:
            return units
        words = [str(unit["text"]) for unit in units]
        return [
            {
                "text": " ".join(words[first : first + self.size]),
                "kind": f"{self.size}-gram",
                "sentence": unit["sentence"],
            }
            for first, unit in enumerate(units[: len(self.matrix)])
        ]


# ---------------------------------------------------------------------------------------------------------------------
# Options

# Chosen on cs-en, de-en, fi-en and lv-en of WMT17, see benchmarks/results/moverscore_settings.md; others: p-means.
_TRANSLATION_LAYERS = {"all-MiniLM-L6-v2": "4+6", "all-mpnet-base-v2": "7+12"}


@dataclass(frozen=True, kw_only=True)
class MoverScoreOptions(TokenOptions):
    """Options of `moverscore`."""

    multi_ref: MultiRef = option("mean", "how scores against several references are combined")
    weights: Weights | None = option(
        None, "mass of a token: uniform (the default, same as `count`), IDF or vector norm"
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
    routing_kernel: Kernel = option(
        "gaussian", "kernel of `aggregation='routing'`; `paper` is Algorithm 1 of A.2 to the letter"
    )
    distance: Distance | None = option(
        None, "transport cost between two vectors; default: `sqeuclidean` for v1, `euclidean` for v2"
    )
    similarity: Similarity | None = option(
        None, "1 − d, 1 / (1 + d) or exp(−d); default: `one_minus` for v1, `inverse` for v2"
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
    idf: object = option(
        None,
        "IDF table, or a pair for predictions and references: `corpus` computes them from the texts of this call; "
        "implies IDF weights",
        values="'corpus', path, IdfTable, pair of them or None",
    )
    idf_tables: Literal["sides", "one"] = option(
        "sides", "with `idf='corpus'`: one table per side (the authors' scripts) or one over all texts (the paper)"
    )
    powers: object = option(
        None,
        "exponents of the power means (Eq. 4): positive integers, inf and -inf; default: -inf, 1, inf",
        values="list of numbers or None",
    )
    average: Literal["scores", "distances"] = option(
        "scores", "`score` is the mean of the scores, or the similarity of the mean distance"
    )
    special_tokens: bool = option(True, "include special tokens such as [CLS] and [SEP]")

    presets = {
        "paper": {
            "aggregation": "pmeans",
            "distance": "euclidean",
            "similarity": "inverse",
            "normalize": False,
            "idf": "corpus",
            "idf_tables": "one",
        },
        "translation": {
            "aggregation": "translation",
            "punctuation": False,
            "drop_subwords": False,
            "unescape": True,
        },
        "short": {"special_tokens": False, "drop_subwords": False},
    }

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
        if self.average == "distances" and self.alignment == "hard":
            raise InputError(f"{metric}: average: 'distances' needs alignment='soft', whose score is of a distance")
        stop_words(self.stopwords, metric)
        return replace(
            self,
            aggregation=parse_aggregation(metric, aggregation, self.routing_kernel, self.powers),
            distance=self.distance or ("sqeuclidean" if first else "euclidean"),
            similarity=self.similarity or ("one_minus" if first else "inverse"),
            weights=choose_weights(metric, self.weights, self.idf, "uniform"),
        )

    def filters(self) -> Filters:
        return Filters(stop_words(self.stopwords), self.punctuation, self.drop_subwords, self.special_tokens)


# ---------------------------------------------------------------------------------------------------------------------
# The metric


@dataclass(frozen=True, kw_only=True)
class MoverScore(TokenMetric):
    """Transport between contextual n-grams."""

    options: MoverScoreOptions
    filters: Filters
    options_class = MoverScoreOptions

    def bag(self, text: TokenText, side: Side, filtered: bool = True) -> Bag | None:
        """The n-grams of the kept tokens, or of all tokens; None if there are none."""
        if (side, filtered) not in text.bags:
            filters = self.filters if filtered else Filters(special_tokens=self.options.special_tokens)
            text.bags[side, filtered] = self._bag(text.units(filters), side)
        return text.bags[side, filtered]

    def _bag(self, units: TokenUnits | None, side: Side) -> Bag | None:
        if units is None:
            return None
        weights = weigh(self.options.weights or "uniform", np.ones(len(units)), units, self.reader.table(side))
        if not weights.any():  # every token occurs in every text: weighted sums would all be the zero vector
            warn_no_mass(self.name)
            weights = np.ones(len(units))
        size = len(units) if self.options.n_gram == "sentence" else min(int(str(self.options.n_gram)), len(units))
        vectors, masses = n_grams(units.vectors(), weights, size, self.options.normalize)
        return Bag(NGramUnits(units, vectors, size), normalised(self.name, masses))

    def compare(self, prediction: TokenText, reference: TokenText, costs: Floats | None = None) -> Comparison:
        if prediction.empty or reference.empty:
            value = 1.0 if prediction.same_as(reference) else 0.0
            alignment = no_alignment() if self.options.return_alignment else None
            parts = self._parts(value, value, value)
            soft = self.options.alignment == "soft"
            return Comparison(value, parts, empty=True, alignment=alignment, distance=0.0 if value and soft else None)
        first, second = self.bag(prediction, 0), self.bag(reference, 1)
        unfiltered = first is None or second is None
        if first is None or second is None:
            first, second = self.bag(prediction, 0, filtered=False), self.bag(reference, 1, filtered=False)
            assert first is not None and second is not None  # neither text is empty
        m, n, limit = len(first.masses), len(second.masses), self.options.max_cells
        check_size(m, n, limit)
        with CELLS.hold(m * n, limit):
            if self.options.alignment == "hard":
                comparison = self._hard(first, second)
            else:
                comparison = self._soft(first, second)
        return comparison._replace(unfiltered=unfiltered)

    def _soft(self, first: Bag, second: Bag) -> Comparison:
        """Section 3.1: the WMD of two bags of n-grams, the cost of the optimal plan."""
        costs = pairwise_distances(
            first.units.vectors(), second.units.vectors(), self.options.distance or "sqeuclidean"
        )
        plan = emd_of_normalised(first.masses, second.masses, costs)
        aligned = alignment_of(first, second, plan.flow, costs, plan.cost) if self.options.return_alignment else None
        return Comparison(self.similarity(plan.cost), alignment=aligned, distance=plan.cost)

    def similarity(self, distance: float) -> float:
        return similarity_of(distance, self.options.similarity or "one_minus")

    def _hard(self, first: Bag, second: Bag) -> Comparison:
        """Proposition 1: greedy alignment, every n-gram with its most similar one."""
        x, y = (np.asarray(bag.units.vectors(), np.float64) for bag in (first, second))
        if not self.options.normalize:
            x, y = unit_rows(x), unit_rows(y)  # greedy alignments compare cosines
        similarity = np.clip(x @ y.T, -1.0, 1.0)  # a product of unit vectors exceeds 1 by rounding
        precision, recall, flow = greedy_scores(similarity, first.masses, second.masses)
        precision, recall = min(precision, 1.0), min(recall, 1.0)  # a weighted mean of ones exceeds 1 by rounding
        f1 = f1_of(precision, recall)
        aligned = alignment_of(first, second, flow, 1.0 - similarity, None) if self.options.return_alignment else None
        return Comparison(f1, self._parts(precision, recall, f1), alignment=aligned)

    def _parts(self, precision: float, recall: float, f1: float) -> dict[str, float]:
        return {"precision": precision, "recall": recall, "f1": f1} if self.options.alignment == "hard" else {}

    @classmethod
    def build(cls, name: str, options: MoverScoreOptions, corpus: Corpus | None = None) -> Self:
        aggregation = parse_aggregation(name, options.aggregation)
        # The authors' scripts compute one IDF table per side, the paper one over all sentences of the corpus.
        if options.idf_tables == "one" and corpus is not None:
            corpus = Corpus((), [*corpus.references, *([text] for text in corpus.predictions)])
        reader = TokenReader.load(name, options, aggregation, corpus, both_sides=options.idf_tables == "sides")
        fields = reader.fields()
        if not reader.static:
            fields["subwords"] = "first" if options.drop_subwords else "all"
            fields["special"] = "keep" if options.special_tokens else "drop"
        fields |= {"n": options.n_gram, "norm": options.normalize, "weights": options.weights}
        if reader.tables is not None:
            fields["idf"] = reader.tables.digest
        fields["stop"] = name_stop_words(options.stopwords)
        fields["punct"] = {True: "drop", False: "keep", "ascii": "drop-ascii"}[options.punctuation]
        if options.alignment == "hard":
            fields["align"] = "hard"
        else:
            fields |= {"dist": options.distance, "sim": options.similarity}
        if options.unescape:
            fields["html"] = "decoded"
        fields["refs"] = options.multi_ref
        if options.average != "scores":
            fields["average"] = options.average
        return cls(
            name=name, signature=signature(name, fields), options=options, reader=reader, filters=options.filters()
        )


@documented(MoverScoreOptions)
def moverscore(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """MoverScore: minimum cost of transforming one text's contextual n-grams into the other's.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (v1: −3 to 1; v2: 0 to 1), `distances`, `signature`, `n_empty`,
        `n_unfiltered`, `n_truncated`, `n_unknown`; with `alignment="hard"` also `precision`, `recall`, `f1`;
        `alignments` on request.

    Examples
    --------
    >>> result = moverscore(["A man sells snow online."], ["Snow is sold on the internet by a man."])
    >>> 0.3 < result["score"] < 0.9
    True
    """
    return run(MoverScore, "moverscore", predictions, references, options)
