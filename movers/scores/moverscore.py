r"""MoverScore (Zhao et al. 2019): word mover's distance between n-grams of contextual vectors.

.. math::
    \mathrm{WMD}(x^n, y^n) = \min_{F \ge 0} \langle C, F \rangle \quad s.t. \quad F 1 = f_{x^n}, \; F^\top 1 = f_{y^n}

n-gram i of a text spans its units i … i+n−1 with weights w (IDF, for the authors): its vector points where

.. math:: E(x_i^n) = \sum_{k=i}^{i+n-1} w_k E(x_k) \qquad (1)

points, with length 1, and its mass is :math:`f_i = \frac{1}{Z} \sum_k w_k` (Eq. 2). Costs and similarity are those of
the authors' two published scripts: `v1` takes :math:`C = \|x - y\|^2` and scores :math:`1 - \mathrm{WMD}`, `v2` takes
:math:`C = \|x - y\|` and scores :math:`1 / (1 + \mathrm{WMD})`.

Reference: W. Zhao, M. Peyrard, F. Liu, Y. Gao, C. M. Meyer, S. Eger. MoverScore: Text Generation Evaluating with
Contextualized Embeddings and Earth Mover Distance. EMNLP 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from movers.encoders.layers import Aggregation, parse_aggregation
from movers.inputs import check_choice, check_pairs, check_positive
from movers.scores.bertscore import f1_of, greedy_scores
from movers.scores.options import CommonKwargs, CommonOptions, make_options
from movers.scores.pairs import Comparison, MultiRef, Scorer, list_flows, no_flows, one_by_one
from movers.scores.tokens import Filters, TokenSource, TokenText, source_fields, token_source
from movers.scores.weighing import (
    Corpus,
    check_stop_words,
    check_weights,
    name_stop_words,
    normalised,
    weigh,
)
from movers.signature import signature
from movers.texts import stop_words
from movers.transport import Distance, emd_of_normalised, pairwise_distances, unit_rows
from movers.weights import Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MoverScoreOptions", "moverscore", "moverscore_scorer", "n_grams"]

Variant = Literal["v1", "v2"]
Similarity = Literal["one_minus", "inverse", "exp"]
Alignment = Literal["soft", "hard"]
Vectors = NDArray[Any]
Masses = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def n_grams(vectors: Vectors, weights: Masses, n: int | None) -> tuple[Vectors, Masses]:
    """Eq. 1 and 2: unit vectors and masses (not yet normalised) of the n-grams of k units.

    Parameters
    ----------
    vectors : (k, d)
    weights : (k,)
    n : int or None
        None, or more than k, makes one n-gram of the whole text.

    Returns
    -------
    (k − n + 1, d) unit vectors and (k − n + 1,) masses; an n-gram without weight points where its plain mean does.
    """
    size = len(weights) if n is None else min(n, len(weights))
    if size == 1:
        return unit_rows(vectors), weights
    windows = np.lib.stride_tricks.sliding_window_view(weights, size)  # (k − n + 1, n)
    masses = windows.sum(axis=1)
    shares = np.where(masses[:, None] > 0, windows, 1.0)
    stacked = np.lib.stride_tricks.sliding_window_view(np.asarray(vectors, np.float64), size, axis=0)
    return unit_rows(np.einsum("idk,ik->id", stacked, shares)), masses


def similarity_of(distance: float, kind: Similarity) -> float:
    """1 − d (v1), 1 / (1 + d) (v2) or exp(−d)."""
    if kind == "one_minus":
        return 1.0 - distance
    return 1.0 / (1.0 + distance) if kind == "inverse" else math.exp(-distance)


class Bag(NamedTuple):
    """n-grams of a text: unit vectors (k, d), masses (k,) of sum 1, places of all kept tokens, their size."""

    vectors: Vectors
    masses: Masses
    places: NDArray[np.intp]
    size: int


# ---------------------------------------------------------------------------------------------------------------------
# Options


class MoverScoreKwargs(CommonKwargs, total=False):
    """Keyword arguments of `moverscore`; see `MoverScoreOptions`."""

    variant: Variant
    n_gram: int | Literal["sentence"]
    aggregation: Any
    routing_kernel: Literal["gaussian", "epanechnikov"]
    distance: Distance | None
    similarity: Similarity | None
    alignment: Alignment
    stopwords: Any
    punctuation: Any
    drop_subwords: bool
    special_tokens: bool
    lowercase: bool


@dataclass(frozen=True, kw_only=True)
class MoverScoreOptions(CommonOptions):
    """Options of `moverscore`, beside those of `CommonOptions`.

    Parameters
    ----------
    variant : {"v1", "v2"}
        The authors' first or second script; decides aggregation, distance and similarity where they are not set.
    n_gram : int or "sentence"
        Size of the units; "sentence" makes one unit of a text (the authors' SMD).
    aggregation : "pmeans", "routing", "last", "mean", a layer number or several ("4+6"), optional
        How the layers of a token become one vector; `pmeans` for v1, `last` for v2.
    routing_kernel : {"gaussian", "epanechnikov"}
    distance : {"sqeuclidean", "euclidean", "cosine"}, optional
    similarity : {"one_minus", "inverse", "exp"}, optional
    alignment : {"soft", "hard"}
        "hard" is the weighted greedy match (hard mover distances, Prop. 1): precision, recall and F1 on these vectors.
    stopwords : "english", list of words or None
    punctuation : True, False or "ascii"
        Drop tokens of punctuation and symbols; "ascii" is the authors' rule (single ASCII marks).
    drop_subwords : bool
        Keep only the first piece of a word.
    special_tokens : bool
        Keep the tokenizer's special tokens as units.
    lowercase : bool
        Lower-case words for a static encoder.
    """

    model: Any = "all-MiniLM-L6-v2"
    multi_ref: MultiRef = "mean"
    variant: Variant = "v1"
    n_gram: Any = 1
    aggregation: Any = None
    routing_kernel: Literal["gaussian", "epanechnikov"] = "gaussian"
    distance: Distance | None = None
    similarity: Similarity | None = None
    alignment: Alignment = "soft"
    stopwords: Any = None
    punctuation: Any = True
    drop_subwords: bool = True
    special_tokens: bool = True
    lowercase: bool = True

    def check(self, metric: str = "moverscore") -> MoverScoreOptions:
        """Validated options, with what the variant implies filled in."""
        self.check_common(metric)
        check_choice(metric, "variant", self.variant, Variant)
        if self.n_gram != "sentence":
            try:
                check_positive(metric, "n_gram", self.n_gram, none_allowed=False)
            except ValueError:
                message = f"{metric}: n_gram: expected a whole number above zero or 'sentence', but got {self.n_gram!r}"
                raise ValueError(message) from None
        aggregation = self.aggregation
        if aggregation is None:
            aggregation = "pmeans" if self.variant == "v1" else "last"
        check_choice(metric, "routing_kernel", self.routing_kernel, ("gaussian", "epanechnikov"))
        parse_aggregation(metric, aggregation)
        distance = self.distance or ("sqeuclidean" if self.variant == "v1" else "euclidean")
        check_choice(metric, "distance", distance, Distance)
        similarity = self.similarity or ("one_minus" if self.variant == "v1" else "inverse")
        check_choice(metric, "similarity", similarity, Similarity)
        check_choice(metric, "alignment", self.alignment, Alignment)
        check_choice(metric, "punctuation", self.punctuation, (True, False, "ascii"))
        for option in ("drop_subwords", "special_tokens", "lowercase"):
            check_choice(metric, option, getattr(self, option), (True, False))
        check_stop_words(metric, self.stopwords)
        weights = check_weights(metric, self.weights, self.idf, "uniform", get_args(Weights))
        return replace(self, aggregation=aggregation, distance=distance, similarity=similarity, weights=weights)

    def layers(self) -> Aggregation:
        """What the encoder's layers become."""
        return parse_aggregation("moverscore", self.check().aggregation, self.routing_kernel)

    def filters(self, filtered: bool = True) -> Filters:
        if not filtered:
            return Filters(special_tokens=self.special_tokens)
        return Filters(stop_words(self.stopwords), self.punctuation, self.drop_subwords, self.special_tokens)


# ---------------------------------------------------------------------------------------------------------------------
# The metric


def moverscore_scorer(metric: str, options: MoverScoreOptions, corpus: Corpus | None = None) -> Scorer:
    """`moverscore` with its options settled; the texts of the whole call are needed for `idf="corpus"` only."""
    options = options.check(metric)
    aggregation = parse_aggregation(metric, options.aggregation, options.routing_kernel)
    source = token_source(metric, options, aggregation, corpus, both_sides=True)  # a table a side, as the authors do
    size = None if options.n_gram == "sentence" else int(options.n_gram)

    def bag(text: TokenText, side: int, filtered: bool) -> Bag | None:
        units = text.units(options.filters(filtered))
        if units is None:
            return None
        weights = weigh(
            options.weights, np.ones(len(units.keys)), lambda: units.vectors, lambda: units.keys, source.table(side)
        )
        vectors, masses = n_grams(units.vectors, weights, size)
        length = len(units.keys) if size is None else min(size, len(units.keys))
        return Bag(vectors, normalised(metric, masses), units.places, length)

    def compare(first: TokenText, second: TokenText, aligned: bool) -> Comparison:
        if first.empty or second.empty:
            value = 1.0 if first.blank and second.blank else 0.0
            parts = {"precision": value, "recall": value, "f1": value} if options.alignment == "hard" else {}
            return Comparison(value, parts, empty=True, alignment=no_flows() if aligned else None)
        filtered = True
        bags = [
            first.remember((0, True), lambda: bag(first, 0, True)),
            second.remember((1, True), lambda: bag(second, 1, True)),
        ]
        if bags[0] is None or bags[1] is None:
            filtered = False
            bags = [bag(first, 0, False), bag(second, 1, False)]
        a, b = bags
        assert a is not None and b is not None
        if options.alignment == "hard":
            similarity = np.asarray(a.vectors, np.float64) @ np.asarray(b.vectors, np.float64).T
            precision, recall, flow = greedy_scores(similarity, a.masses, b.masses)
            value = f1_of(precision, recall)
            alignment = _alignment(first, second, a, b, None, flow, 1.0 - similarity) if aligned else None
            return Comparison(
                value, {"precision": precision, "recall": recall, "f1": value}, False, not filtered, alignment
            )
        costs = pairwise_distances(a.vectors, b.vectors, options.distance or "sqeuclidean")
        plan = emd_of_normalised(a.masses, b.masses, costs)
        alignment = _alignment(first, second, a, b, plan.cost, plan.flow, costs) if aligned else None
        return Comparison(
            similarity_of(plan.cost, options.similarity or "one_minus"), {}, False, not filtered, alignment
        )

    return Scorer(
        name=metric,
        signature=_signature(metric, options, source),
        represent=source.represent,
        compare=one_by_one(compare),
        was_cut=lambda text: text.cut,
        multi_ref=options.multi_ref,
        threads=options.threads,
        progress=options.progress,
    )


def _describe(text: TokenText, bag: Bag) -> list[dict[str, Any]]:
    units = text.describe(bag.places[: len(bag.masses)], bag.masses)
    if bag.size > 1:
        words = [text.surface(place) for place in bag.places.tolist()]
        for first, unit in enumerate(units):
            unit["kind"] = f"{bag.size}-gram"
            unit["text"] = " ".join(words[first : first + bag.size])
    return units


def _alignment(
    first: TokenText, second: TokenText, a: Bag, b: Bag, distance: float | None, flow: Masses, costs: Masses
) -> dict[str, Any]:
    return {
        "distance": distance,
        "prediction": _describe(first, a),
        "reference": _describe(second, b),
        "flows": list_flows(flow, costs),
    }


def _signature(metric: str, options: MoverScoreOptions, source: TokenSource) -> str:
    fields = source_fields(source, options)
    if not source.static:
        fields["subwords"] = "first" if options.drop_subwords else "all"
        fields["special"] = "keep" if options.special_tokens else "drop"
    fields["n"] = options.n_gram
    fields["weights"] = options.weights
    if source.tables is not None:
        fields["idf"] = source.tables.digest
    fields["stop"] = name_stop_words(options.stopwords)
    fields["punct"] = {True: "drop", False: "keep"}.get(options.punctuation, "drop-ascii")
    if options.alignment == "hard":
        fields["align"] = "hard"
    else:
        fields["dist"] = options.distance
        fields["sim"] = options.similarity
    fields["refs"] = options.multi_ref
    return signature(metric, fields)


def moverscore(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[MoverScoreKwargs],
) -> dict[str, Any]:
    """MoverScore: how cheaply the n-grams of one text turn into those of the other, in a contextual space.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    return_alignment : bool
        Add `alignments`: what moved where.
    **options
        See `MoverScoreOptions`.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (v1: −3 to 1; v2: 0 to 1), `signature`, `n_empty`, `n_unfiltered`,
        `n_truncated`; with `alignment="hard"` also `precision`, `recall`, `f1`; `alignments` on request.

    Examples
    --------
    >>> result = moverscore(["A man sells snow online."], ["Snow is sold on the internet by a man."])
    >>> 0.3 < result["score"] < 0.9
    True
    """
    metric = "moverscore"
    settled = make_options(MoverScoreOptions, metric, options).check(metric)
    check_choice(metric, "return_alignment", return_alignment, (True, False))
    texts, groups = check_pairs(metric, predictions, references)
    scorer = moverscore_scorer(metric, settled, Corpus.of(texts, groups))
    return scorer.score(texts, groups, return_alignment)
