r"""BERTScore with optimal alignments (Jin & Gildea 2022), and the greedy one (Zhang et al. 2020).

With :math:`C_{ij} = 1 - \cos(\hat y_i, y_j)` between m hypothesis and k reference tokens, and
:math:`\tilde C = 1 - C`:

- `bertscore_hungarian`, :math:`F_{disc}`: T is the one-to-one alignment of least cost (Eq. 1), and
  :math:`P = \frac1m \sum_{ij} T_{ij} \tilde C_{ij}`, :math:`R = \frac1k \sum_{ij} T_{ij} \tilde C_{ij}` (Eq. 2);
- `bertscore_emd`, :math:`F_{cont}`: T is the transport plan between masses h and r (vector norms, each side
  normalised to sum 1; Eq. 3), and :math:`P = \frac1m \sum_i \frac{1}{h_i} \sum_j T_{ij} \tilde C_{ij}`,
  :math:`R = \frac1k \sum_j \frac{1}{r_j} \sum_i T_{ij} \tilde C_{ij}` (Eq. 4, 5);
- greedy: every token takes its best partner, :math:`P = \sum_i w_i \max_j \tilde C_{ij} / \sum_i w_i`.

References: L. Jin, D. Gildea. Rewarding Semantic Similarity under Optimized Alignments for AMR-to-Text Generation.
ACL 2022. — T. Zhang, V. Kishore, F. Wu, K. Q. Weinberger, Y. Artzi. BERTScore. ICLR 2020.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.layers import Aggregation, parse_aggregation
from movers.inputs import check_choice, check_pairs
from movers.scores.options import CommonKwargs, CommonOptions, make_options
from movers.scores.pairs import Comparison, MultiRef, Scorer, list_flows, no_flows, one_by_one
from movers.scores.rescaling import read_baseline
from movers.scores.tokens import Filters, TokenSource, TokenText, source_fields, token_source
from movers.scores.weighing import Corpus, check_weights, weigh
from movers.signature import signature
from movers.transport import assignment, emd, greedy, unit_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "BertScoreOptions",
    "bertscore_emd",
    "bertscore_hungarian",
    "bertscore_scorer",
    "emd_scores",
    "f1_of",
    "greedy_scores",
    "hungarian_scores",
]

Masses = NDArray[np.float64]
Alignment = Literal["optimal", "greedy"]
_DEFAULT_MODEL = "all-MiniLM-L6-v2"


# ---------------------------------------------------------------------------------------------------------------------
# The definitions, on a similarity matrix (m, k) and weights (m,), (k,)


def f1_of(precision: float, recall: float) -> float:
    """Harmonic mean; 0 where precision + recall is not above 0."""
    total = precision + recall
    return 2.0 * precision * recall / total if total > 0 else 0.0


def greedy_scores(similarity: Masses, a: Masses, b: Masses) -> tuple[float, float, Masses]:
    """Precision and recall where every token takes its best partner, and what moves for the precision, T (m, k).

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


def hungarian_scores(similarity: Masses, a: Masses, b: Masses) -> tuple[float, float, Masses]:
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


def emd_scores(similarity: Masses, a: Masses, b: Masses) -> tuple[float, float, Masses]:
    """Eq. 3–5: precision, recall and the plan T (m, k). Tokens of zero mass are left out of sums, m and k."""
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


class BertScoreKwargs(CommonKwargs, total=False):
    """Keyword arguments of `bertscore_*`; see `BertScoreOptions`."""

    layer: Any
    alignment: Alignment
    greedy_special: bool
    rescale_with_baseline: bool
    baseline_path: Any
    lang: str | None
    lowercase: bool
    model_type: Any
    num_layers: int | None
    batch_size: int | None
    nthreads: int | None
    verbose: bool
    all_layers: bool
    use_fast_tokenizer: bool


@dataclass(frozen=True, kw_only=True)
class BertScoreOptions(CommonOptions):
    """Options of `bertscore_hungarian` and `bertscore_emd`, beside those of `CommonOptions`.

    Parameters
    ----------
    weights : {"norm", "uniform", "idf"}
        Mass of a token: vector norm (default of `bertscore_emd`), equal (default of `bertscore_hungarian`), or IDF.
    idf : True, False, "corpus", path or IdfTable
        True means "corpus": a table of this call's references, for both sides.
    layer : int, "last", "mean", "pmeans" or "routing"
        Index into the hidden states (0 = embeddings, negative from the end).
    alignment : {"optimal", "greedy"}
        "greedy" gives plain BERTScore from the same vectors.
    greedy_special : bool
        Whether special tokens can be matched in a greedy alignment, as in the `bert-score` package.
    rescale_with_baseline : bool
        Rescale P, R and F1 by the baseline in `baseline_path`: (x − b) / (1 − b).
    baseline_path : path
        A file that `movers baseline` wrote, or one in the `bert-score` package's format (greedy only).
    lang : str, optional
        Accepted for calls written for evaluate's bertscore; the default encoder knows English.
    lowercase : bool
        Lower-case words for a static encoder.
    model_type, num_layers, batch_size, nthreads, verbose, all_layers, use_fast_tokenizer
        The names evaluate's bertscore has: `model_type` = model, `num_layers` = layer, `nthreads` = threads,
        `verbose` = progress; batches are formed by tokens whatever `batch_size` says.
    """

    model: Any = _DEFAULT_MODEL
    multi_ref: MultiRef = "max"
    layer: Any = "last"
    alignment: Alignment = "optimal"
    greedy_special: bool = True
    rescale_with_baseline: bool = False
    baseline_path: Any = None
    lang: str | None = None
    lowercase: bool = True
    model_type: Any = None
    num_layers: int | None = None
    batch_size: int | None = None
    nthreads: int | None = None
    verbose: bool = False
    all_layers: bool = False
    use_fast_tokenizer: bool = True

    def layers(self) -> Aggregation:
        """What the encoder's layers become."""
        return parse_aggregation("bertscore", self.layer if self.num_layers is None else self.num_layers)

    def check(self, metric: str) -> BertScoreOptions:
        """Validated options, evaluate's names translated."""
        if self.device is None:  # evaluate's way to say "auto"
            return replace(self, device="auto").check(metric)
        self.check_common(metric)
        changes: dict[str, Any] = {}
        if self.model_type is not None:
            changes["model"] = self.model_type
        if self.num_layers is not None:
            changes["layer"] = self.num_layers
        if self.nthreads is not None and self.threads is None:
            changes["threads"] = self.nthreads
        if self.verbose and self.progress is None:
            changes["progress"] = True
        if isinstance(self.idf, bool):
            changes["idf"] = "corpus" if self.idf else None
        if self.all_layers:
            raise ValueError(f"{metric}: all_layers: expected False; ask for one layer at a time")
        if self.lang is not None and not isinstance(self.lang, str):
            raise ValueError(f"{metric}: lang: expected a language code such as 'en', but got {self.lang!r}")
        for option in ("greedy_special", "rescale_with_baseline", "lowercase"):
            check_choice(metric, option, getattr(self, option), (True, False))
        check_choice(metric, "alignment", self.alignment, Alignment)
        parse_aggregation(metric, changes.get("layer", self.layer))
        if self.rescale_with_baseline and self.baseline_path is None:
            raise ValueError(
                f"{metric}: rescale_with_baseline: expected baseline_path too; "
                "`movers baseline` computes such a file for any model and corpus"
            )
        idf = changes.get("idf", self.idf)
        default = "norm" if metric == "bertscore_emd" and self.alignment == "optimal" else "uniform"
        changes["weights"] = check_weights(metric, self.weights, idf, default, ("norm", "uniform", "idf"))
        if self.lang not in (None, "en") and changes.get("model", self.model) == _DEFAULT_MODEL:
            warnings.warn(
                f"{metric}: the default encoder {_DEFAULT_MODEL} knows English; pass model= for {self.lang!r}",
                stacklevel=2,
            )
        return replace(self, model_type=None, num_layers=None, nthreads=None, verbose=False, **changes)


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


class Bag(NamedTuple):
    """Tokens of a text: unit vectors (n, d), masses (n,), places (n,) in the token list."""

    vectors: NDArray[Any]
    masses: Masses
    places: NDArray[np.intp]


def bertscore_scorer(metric: str, options: BertScoreOptions, corpus: Corpus | None = None) -> Scorer:
    """`bertscore_hungarian` or `bertscore_emd` with its options settled."""
    options = options.check(metric)
    source = token_source(metric, options, options.layers(), corpus)
    baseline = _read_baseline(metric, options, source.encoder)
    is_greedy = options.alignment == "greedy"
    filters = Filters(special_tokens=is_greedy and options.greedy_special)

    def bag(text: TokenText, side: int) -> Bag:
        units = text.units(filters)
        assert units is not None  # the text is not empty, and nothing but special tokens is filtered
        masses = weigh(
            options.weights, np.ones(len(units.keys)), lambda: units.vectors, lambda: units.keys, source.table(side)
        )
        # Special tokens are matched at most, they never weigh.
        masses = np.where(text.special[units.places], 0.0, masses)
        if not masses.any():
            masses = np.where(text.special[units.places], 0.0, 1.0)
            warn_no_mass()
        return Bag(unit_rows(units.vectors), masses, units.places)

    def warn_no_mass() -> None:
        warnings.warn(f"{metric}: a text has no mass under these weights; its units weigh the same", stacklevel=2)

    def compare(first: TokenText, second: TokenText, aligned: bool) -> Comparison:
        if first.empty or second.empty:
            value = 1.0 if first.blank and second.blank else 0.0
            parts = {"precision": value, "recall": value, "f1": value}
            return Comparison(value, parts, empty=True, alignment=no_flows() if aligned else None)
        a = first.remember(0, lambda: bag(first, 0))
        b = second.remember(1, lambda: bag(second, 1))
        similarity = np.asarray(a.vectors @ b.vectors.T, dtype=np.float64)
        if is_greedy:
            precision, recall, flow = greedy_scores(similarity, a.masses, b.masses)
        elif metric == "bertscore_hungarian":
            precision, recall, flow = hungarian_scores(similarity, a.masses, b.masses)
        else:
            precision, recall, flow = emd_scores(similarity, a.masses, b.masses)
        f1 = f1_of(precision, recall)
        alignment = _alignment(first, second, a, b, similarity, flow) if aligned else None
        if baseline is not None:
            precision, recall, f1 = (
                (value - base) / (1.0 - base) for value, base in zip((precision, recall, f1), baseline, strict=True)
            )
        return Comparison(f1, {"precision": precision, "recall": recall, "f1": f1}, alignment=alignment)

    name = _signature(metric, options, source, baseline)
    return Scorer(
        name=metric,
        signature=name,
        also={"hashcode": name},  # as evaluate's bertscore calls it
        represent=source.represent,
        compare=one_by_one(compare),
        was_cut=lambda text: text.cut,
        multi_ref=options.multi_ref,
        threads=options.threads,
        progress=options.progress,
    )


def _alignment(first: TokenText, second: TokenText, a: Bag, b: Bag, similarity: Masses, flow: Masses) -> dict[str, Any]:
    return {
        "distance": float((flow * (1.0 - similarity)).sum()),
        "prediction": first.describe(a.places, a.masses / a.masses.sum()),
        "reference": second.describe(b.places, b.masses / b.masses.sum()),
        "flows": list_flows(flow, 1.0 - similarity),
    }


def _read_baseline(metric: str, options: BertScoreOptions, encoder: Any) -> tuple[float, float, float] | None:
    if not options.rescale_with_baseline:
        return None
    layer = options.layers()
    state = layer.needed(encoder.states)[0] if layer.kind in ("last", "layer") and hasattr(encoder, "states") else None
    expected = {
        "metric": metric,
        "alignment": options.alignment,
        "model": encoder.identity,
        "layer": str(layer),
        "weights": options.weights,
    }
    return read_baseline(metric, options.baseline_path, expected, state)


def _signature(
    metric: str, options: BertScoreOptions, source: TokenSource, baseline: tuple[float, float, float] | None
) -> str:
    fields = source_fields(source, options)
    fields["align"] = options.alignment
    if options.alignment == "greedy":
        fields["special"] = "match" if options.greedy_special else "drop"
    fields["weights"] = options.weights
    if source.tables is not None:
        fields["idf"] = source.tables.digest
    if baseline is not None:
        fields["baseline"] = ",".join(f"{value:.4f}" for value in baseline)
    fields["refs"] = options.multi_ref
    return signature(metric, fields)


def _score(metric: str, predictions: Any, references: Any, return_alignment: bool, options: Any) -> dict[str, Any]:
    settled = make_options(BertScoreOptions, metric, options).check(metric)
    check_choice(metric, "return_alignment", return_alignment, (True, False))
    texts, groups = check_pairs(metric, predictions, references)
    return bertscore_scorer(metric, settled, Corpus.of(texts, groups)).score(texts, groups, return_alignment)


def bertscore_hungarian(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[BertScoreKwargs],
) -> dict[str, Any]:
    """BERTScore with the optimal one-to-one alignment (F_disc): a token counts once, however often it is repeated.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    return_alignment : bool
        Add `alignments`: what was matched with what.
    **options
        See `BertScoreOptions`.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` = `f1`, `precision`, `recall` (lists), `signature` = `hashcode`, `n_empty`,
        `n_unfiltered`, `n_truncated`, and `alignments` on request.

    Examples
    --------
    >>> result = bertscore_hungarian(["hello there"], ["hello there"])
    >>> round(result["f1"][0], 5)
    1.0
    """
    return _score("bertscore_hungarian", predictions, references, return_alignment, options)


def bertscore_emd(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[BertScoreKwargs],
) -> dict[str, Any]:
    """BERTScore with the optimal one-to-many alignment (F_cont): token mass, by default the vector norm, is moved.

    Parameters and result as for `bertscore_hungarian`.

    >>> result = bertscore_emd(["hello there"], ["hello there"])
    >>> round(result["f1"][0], 5)
    1.0
    """
    return _score("bertscore_emd", predictions, references, return_alignment, options)
