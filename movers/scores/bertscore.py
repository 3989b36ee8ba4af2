r"""BERTScore with optimal alignments (Jin & Gildea 2022), and the original greedy one (Zhang et al. 2020).

With :math:`C_{ij} = 1 - \cos(\hat y_i, y_j)` between m hypothesis and k reference tokens, and
:math:`\tilde C = 1 - C`:

- `bertscore_hungarian`, :math:`F_{disc}`: T is the one-to-one alignment of minimum cost (Eq. 1), and
  :math:`P = \frac1m \sum_{ij} T_{ij} \tilde C_{ij}`, :math:`R = \frac1k \sum_{ij} T_{ij} \tilde C_{ij}` (Eq. 2);
- `bertscore_emd`, :math:`F_{cont}`: T is the transport plan between masses h and r (vector norms, each side
  normalised to sum 1; Eq. 3), and :math:`P = \frac1m \sum_i \frac{1}{h_i} \sum_j T_{ij} \tilde C_{ij}`,
  :math:`R = \frac1k \sum_j \frac{1}{r_j} \sum_i T_{ij} \tilde C_{ij}` (Eq. 4, 5);
- greedy: every token is aligned with its most similar one, :math:`P = \sum_i w_i \max_j \tilde C_{ij} / \sum_i w_i`.

References: L. Jin, D. Gildea. Rewarding Semantic Similarity under Optimized Alignments for AMR-to-Text Generation.
ACL 2022. — T. Zhang, V. Kishore, F. Wu, K. Q. Weinberger, Y. Artzi. BERTScore. ICLR 2020.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from movers.bag import Bag, alignment_of
from movers.encoders.layers import parse_aggregation
from movers.errors import InputError
from movers.scores.metric import Comparison
from movers.scores.options import option
from movers.scores.tokens import TokenMetric, TokenOptions, load_tokens
from movers.signature import signature
from movers.texts import check_language
from movers.transport import assignment, emd, greedy, unit_rows
from movers.weights import Corpus, choose_weights, warn_no_mass, weigh

Floats = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions, on a similarity matrix (m, k) and weights (m,), (k,)


def f1_of(precision: float, recall: float) -> float:
    """Harmonic mean; 0 if precision or recall is not positive, where the harmonic mean is unbounded below."""
    return 2.0 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0


def greedy_scores(similarity: Floats, a: Floats, b: Floats) -> tuple[float, float, Floats]:
    """Precision and recall of the greedy alignment, and the alignment T (m, k) behind the precision.

    >>> precision, recall, _ = greedy_scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2), np.ones(2))
    >>> precision, recall
    (1.0, 0.5)
    """
    columns, rows = greedy(similarity)
    each_row, each_column = np.arange(len(a)), np.arange(len(b))
    flow = np.zeros_like(similarity)
    flow[each_row, columns] = a / a.sum()
    precision = float(similarity[each_row, columns] @ a / a.sum())
    recall = float(similarity[rows, each_column] @ b / b.sum())
    return precision, recall, flow


def hungarian_scores(similarity: Floats, a: Floats, b: Floats) -> tuple[float, float, Floats]:
    """Eq. 1 and 2: precision, recall and the 0/1 alignment T (m, k).

    >>> precision, recall, _ = hungarian_scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2), np.ones(2))
    >>> precision, recall
    (0.5, 0.5)
    """
    rows, columns = assignment(1.0 - similarity)
    flow = np.zeros_like(similarity)
    flow[rows, columns] = 1.0
    matched = similarity[rows, columns]
    precision = float(matched @ a[rows] / a.sum())
    recall = float(matched @ b[columns] / b.sum())
    return precision, recall, flow


def emd_scores(similarity: Floats, a: Floats, b: Floats) -> tuple[float, float, Floats]:
    """Eq. 3–5: precision, recall and the plan T (m, k). Tokens of zero mass do not count in the sums, m and k."""
    rows, columns = np.flatnonzero(a > 0), np.flatnonzero(b > 0)
    matchable = similarity[np.ix_(rows, columns)]
    h, r = a[rows] / a[rows].sum(), b[columns] / b[columns].sum()
    plan = emd(h, r, 1.0 - matchable).flow
    moved = plan * matchable
    precision = float((moved.sum(axis=1) / h).mean())
    recall = float((moved.sum(axis=0) / r).mean())
    flow = np.zeros_like(similarity)
    flow[np.ix_(rows, columns)] = plan
    return precision, recall, flow


# ---------------------------------------------------------------------------------------------------------------------
# Options


@dataclass(frozen=True, kw_only=True)
class BertScoreOptions(TokenOptions):
    """Options of `bertscore_hungarian` and `bertscore_emd`, including the names of evaluate's bertscore."""

    weights: Literal["norm", "uniform", "idf"] | None = option(
        None, "mass of a token: vector norm (default of `bertscore_emd`), uniform (`bertscore_hungarian`) or IDF"
    )
    idf: object = option(
        None,
        "IDF table for both sides; True or `corpus` computes it from the references of this call",
        values="True, False, 'corpus', path, IdfTable or None",
    )
    layer: object = option(
        "last",
        "layer of the token vectors (0 = embeddings, negative from the end), or how layers are aggregated",
        values="'last', 'mean', 'pmeans', 'routing', a layer number or several ('4+6')",
    )
    alignment: Literal["optimal", "greedy"] = option(
        "optimal", "`greedy` is the original BERTScore on the same vectors"
    )
    greedy_special: bool = option(
        True, "whether special tokens can be matched in a greedy alignment, as in the package `bert-score`"
    )
    rescale_with_baseline: bool = option(False, "evaluate's name for `rescale`", alias_of="rescale")
    baseline_path: object = option(
        None,
        "evaluate's name for the file of `rescale`; greedy alignments also read the format of the package `bert-score`",
        values="path or None",
        alias_of="rescale",
    )
    lang: str | None = option(None, "language code, as in evaluate's bertscore; the default encoder is for English")
    model_type: object = option(None, "evaluate's name for `model`", values="as model", alias_of="model")
    num_layers: object = option(None, "evaluate's name for `layer`", values="int or None", alias_of="layer")
    nthreads: int | None = option(None, "evaluate's name for `threads`", alias_of="threads")
    verbose: bool = option(False, "evaluate's name for `progress`", alias_of="progress")
    all_layers: bool = option(False, "only False is accepted; request one layer at a time")
    use_fast_tokenizer: bool = option(True, "ignored; fast tokenizers are always used")

    presets = {"paper": {"layer": 0}}  # "the lowest level token embeddings"

    def settle(self, metric: str) -> Self:
        if self.all_layers:
            raise InputError(f"{metric}: all_layers: expected False; ask for one layer at a time")
        if self.lang is not None:
            check_language(metric, self.lang)
        if self.baseline_path is not None and not self.rescale_with_baseline:
            raise InputError(
                f"{metric}: baseline_path={self.baseline_path!r} requires rescale_with_baseline=True; "
                f"rescale={self.baseline_path!r} means both"
            )
        idf = ("corpus" if self.idf else None) if isinstance(self.idf, bool) else self.idf
        default = "norm" if metric == "bertscore_emd" and self.alignment == "optimal" else "uniform"
        weights = choose_weights(metric, self.weights, idf, default)
        return replace(self, layer=parse_aggregation(metric, self.layer), idf=idf, weights=weights)


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


@dataclass(frozen=True, kw_only=True)
class BertScore(TokenMetric):
    """Base of both metrics; a subclass defines the alignment."""

    options: BertScoreOptions
    options_class = BertScoreOptions

    @staticmethod
    @abc.abstractmethod
    def optimal_scores(similarity: Floats, a: Floats, b: Floats) -> tuple[float, float, Floats]:
        """Precision, recall and the alignment T (m, k)."""

    @property
    def baseline_layer(self) -> int | None:
        """Layer whose row applies in a baseline file of the package `bert-score`; None if there is none."""
        layer = self.encoding and self.encoding.aggregation
        if self.encoding is None or not layer or layer.kind not in ("last", "layer"):
            return None
        return layer.needed(self.encoding.encoder.states)[0]

    @property
    def extra(self) -> dict[str, object]:
        return {"hashcode": self.signature}  # the name in evaluate's bertscore

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Bag]]:
        """Tokens with unit vectors and masses (not normalised); special tokens can be matched but have no mass."""
        special_tokens = self.options.alignment == "greedy" and self.options.greedy_special
        table = self.tables[0] if self.tables else None
        for index, tokens in self.read_tokens(texts):
            places = tokens.places({}, special_tokens)
            vectors, special = tokens.vectors[places], tokens.tokens.special[places]
            keys = [tokens.keys[place] for place in places.tolist()] if table else []
            masses = weigh(self.options.weights or "uniform", np.ones(len(places)), vectors, keys, table)
            masses = np.where(special, 0.0, masses)
            if len(masses) and not masses.any():
                masses = np.where(special, 0.0, 1.0)
                warn_no_mass(self.name)
            labels, dropped = tokens.labels(places.tolist(), {}) if self.options.return_alignment else ((), ())
            bag = tokens.bag(texts[index], dropped)
            yield index, bag._replace(vectors=unit_rows(vectors), masses=masses, labels=labels)

    def align(self, prediction: Bag, reference: Bag) -> Comparison:
        similarity = np.asarray(prediction.vectors @ reference.vectors.T, dtype=np.float64)
        np.clip(similarity, -1.0, 1.0, out=similarity)  # a product of unit vectors exceeds 1 by rounding
        scores = greedy_scores if self.options.alignment == "greedy" else self.optimal_scores
        precision, recall, flow = scores(similarity, prediction.masses, reference.masses)
        # float32 vectors of equal texts miss 1 by rounding, and differently: without this they are not tied.
        precision, recall = (1.0 if part > 1 - 1e-6 else part for part in (precision, recall))
        f1 = f1_of(precision, recall)
        moved = float((flow * (1.0 - similarity)).sum())
        aligned = self.options.return_alignment
        alignment = alignment_of(prediction, reference, flow, 1.0 - similarity, moved) if aligned else None
        return Comparison(f1, {"precision": precision, "recall": recall, "f1": f1}, alignment=alignment, distance=moved)

    def compare_empty(self, equal: bool) -> Comparison:
        parts = dict.fromkeys(("precision", "recall", "f1"), float(equal))
        return super().compare_empty(equal)._replace(parts=parts)

    @classmethod
    def build(cls, name: str, options: BertScoreOptions, corpus: Corpus | None = None) -> Self:
        layer = parse_aggregation(name, options.layer)
        encoder, encoding, tables, fields = load_tokens(name, options, layer, corpus)
        fields["align"] = options.alignment
        if options.alignment == "greedy":
            fields["special"] = "match" if options.greedy_special else "drop"
        fields["weights"] = options.weights
        if tables:
            fields["idf"] = tables[0].digest
        fields["refs"] = options.multi_ref
        line = signature(name, fields)
        return cls(name=name, signature=line, options=options, encoder=encoder, encoding=encoding, tables=tables)


class BertScoreHungarian(BertScore):
    """BERTScore with the optimal one-to-one alignment (F_disc): every token is matched at most once.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` = `f1`, `precision`, `recall` (lists), `distances`, `signature` =
        `hashcode`, `n_empty`, `n_unfiltered`, `n_truncated`, `n_unknown`, and `alignments` on request.

    Examples
    --------
    >>> import movers
    >>> round(movers.bertscore_hungarian(["hello there"], ["hello there"])["f1"][0], 5)
    1.0
    """

    optimal_scores = staticmethod(hungarian_scores)


class BertScoreEmd(BertScore):
    """BERTScore with the optimal one-to-many alignment (F_cont): transport of token mass, by default the vector norm.

    Examples
    --------
    >>> import movers
    >>> round(movers.bertscore_emd(["hello there"], ["hello there"])["f1"][0], 5)
    1.0
    """

    optimal_scores = staticmethod(emd_scores)
