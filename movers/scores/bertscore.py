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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from movers.encoders.layers import parse_aggregation
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.scores.bags import Bag, alignment_of, no_alignment
from movers.scores.engine import Comparison, check_size, run
from movers.scores.options import References, documented, option
from movers.scores.tokens import Filters, Side, TokenMetric, TokenOptions, TokenReader, TokenText, TokenUnits
from movers.signature import signature
from movers.texts import check_language
from movers.threads import CELLS
from movers.transport import assignment, emd, greedy, unit_rows
from movers.weights import Corpus, choose_weights, warn_no_mass, weigh

__all__ = [
    "BertScoreEmd",
    "BertScoreHungarian",
    "BertScoreOptions",
    "bertscore_emd",
    "bertscore_hungarian",
    "emd_scores",
    "f1_of",
    "greedy_scores",
    "hungarian_scores",
]

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
    kept = similarity[np.ix_(rows, columns)]
    h, r = a[rows] / a[rows].sum(), b[columns] / b[columns].sum()
    plan = emd(h, r, 1.0 - kept).flow
    moved = plan * kept
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
    batch_size: int | None = option(None, "ignored; batches are formed by tokens, see `batch_tokens`")
    all_layers: bool = option(False, "only False is accepted; request one layer at a time")
    use_fast_tokenizer: bool = option(True, "ignored; fast tokenizers are always used")

    presets = {"paper": {}}  # the defaults are the paper's

    def settle(self, metric: str) -> Self:
        """Translate the names of evaluate's bertscore."""
        if self.all_layers:
            raise InputError(f"{metric}: all_layers: expected False; ask for one layer at a time")
        if self.lang is not None:
            check_language(metric, self.lang)
        if self.baseline_path is not None and not self.rescale_with_baseline:
            raise InputError(
                f"{metric}: baseline_path: expected rescale_with_baseline=True beside it, but got "
                f"{self.baseline_path!r} alone; rescale={self.baseline_path!r} means both"
            )
        model = self.model if self.model_type is None else self.model_type
        idf = ("corpus" if self.idf else None) if isinstance(self.idf, bool) else self.idf
        default = "norm" if metric == "bertscore_emd" and self.alignment == "optimal" else "uniform"
        return replace(
            self,
            model=model,
            rescale=(self.baseline_path or True) if self.rescale_with_baseline else self.rescale,
            layer=parse_aggregation(metric, self.layer if self.num_layers is None else self.num_layers),
            idf=idf,
            weights=choose_weights(metric, self.weights, idf, default),
            threads=self.nthreads if self.threads is None else self.threads,
            progress=True if self.verbose and self.progress is None else self.progress,
            model_type=None,
            num_layers=None,
            nthreads=None,
            verbose=False,
            rescale_with_baseline=False,
            baseline_path=None,
        )


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

    def table_row(self) -> int | None:
        encoder, layer = self.reader.encoder, self.reader.aggregation
        if isinstance(encoder, StaticEncoder) or layer.kind not in ("last", "layer"):
            return None
        return layer.needed(encoder.states)[0]

    def extra(self) -> dict[str, object]:
        return {"hashcode": self.signature}  # the name in evaluate's bertscore

    def bag(self, text: TokenText, side: Side) -> Bag:
        """Tokens with unit vectors and masses (not normalised); special tokens can be matched but have no mass."""
        found = text.bags.get((side, True))
        if found is None:
            matched = self.options.alignment == "greedy" and self.options.greedy_special
            units = text.units(Filters(special_tokens=matched))
            assert units is not None  # the text is not empty, and nothing but special tokens is filtered
            masses = weigh(self.options.weights or "uniform", np.ones(len(units)), units, self.reader.table(side))
            masses = np.where(units.special(), 0.0, masses)
            if not masses.any():
                masses = np.where(units.special(), 0.0, 1.0)
                warn_no_mass(self.name)
            found = text.bags[side, True] = Bag(UnitTokens(units.text, units.places), masses)
        return found

    def compare(self, prediction: TokenText, reference: TokenText, costs: Floats | None = None) -> Comparison:
        aligned = self.options.return_alignment
        if prediction.empty or reference.empty:
            value = 1.0 if prediction.same_as(reference) else 0.0
            parts = {"precision": value, "recall": value, "f1": value}
            alignment = no_alignment() if aligned else None
            return Comparison(value, parts, empty=True, alignment=alignment, distance=0.0 if value else None)
        first, second = self.bag(prediction, 0), self.bag(reference, 1)
        m, n, limit = len(first.masses), len(second.masses), self.options.max_cells
        check_size(m, n, limit)
        align = greedy_scores if self.options.alignment == "greedy" else self.optimal_scores
        with CELLS.hold(m * n, limit):
            similarity = np.asarray(first.units.vectors() @ second.units.vectors().T, dtype=np.float64)
            np.clip(similarity, -1.0, 1.0, out=similarity)  # a product of unit vectors exceeds 1 by rounding
            precision, recall, flow = align(similarity, first.masses, second.masses)
        precision, recall = min(precision, 1.0), min(recall, 1.0)  # a weighted mean of ones exceeds 1 by rounding
        f1 = f1_of(precision, recall)
        moved = float((flow * (1.0 - similarity)).sum())
        alignment = alignment_of(first, second, flow, 1.0 - similarity, moved) if aligned else None
        return Comparison(f1, {"precision": precision, "recall": recall, "f1": f1}, alignment=alignment, distance=moved)

    @classmethod
    def build(cls, name: str, options: BertScoreOptions, corpus: Corpus | None = None) -> Self:
        layer = parse_aggregation(name, options.layer)
        reader = TokenReader.load(name, options, layer, corpus)
        fields = {**reader.fields(), "align": options.alignment}
        if options.alignment == "greedy":
            fields["special"] = "match" if options.greedy_special else "drop"
        fields["weights"] = options.weights
        if reader.tables is not None:
            fields["idf"] = reader.tables.digest
        if options.unescape:
            fields["html"] = "decoded"
        fields["refs"] = options.multi_ref
        return cls(name=name, signature=signature(name, fields), options=options, reader=reader)


@dataclass(frozen=True)
class UnitTokens(TokenUnits):
    """Tokens whose vectors have length 1."""

    @cached_property
    def matrix(self) -> NDArray[np.float32]:
        return unit_rows(super().vectors())

    def vectors(self) -> NDArray[np.float32]:
        return self.matrix


class BertScoreHungarian(BertScore):
    """F_disc: one-to-one."""

    optimal_scores = staticmethod(hungarian_scores)


class BertScoreEmd(BertScore):
    """F_cont: one-to-many."""

    optimal_scores = staticmethod(emd_scores)


@documented(BertScoreOptions)
def bertscore_hungarian(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """BERTScore with the optimal one-to-one alignment (F_disc): every token is matched at most once.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` = `f1`, `precision`, `recall` (lists), `distances`, `signature` =
        `hashcode`, `n_empty`, `n_unfiltered`, `n_truncated`, `n_unknown`, and `alignments` on request.

    Examples
    --------
    >>> result = bertscore_hungarian(["hello there"], ["hello there"])
    >>> round(result["f1"][0], 5)
    1.0
    """
    return run(BertScoreHungarian, "bertscore_hungarian", predictions, references, options)


@documented(BertScoreOptions)
def bertscore_emd(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """BERTScore with the optimal one-to-many alignment (F_cont): transport of token mass, by default the vector norm.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Examples
    --------
    >>> result = bertscore_emd(["hello there"], ["hello there"])
    >>> round(result["f1"][0], 5)
    1.0
    """
    return run(BertScoreEmd, "bertscore_emd", predictions, references, options)
