r"""BERTScore with optimal alignments on tensors, for training with rewards from a model's own embeddings.

The alignment is computed on detached costs, and the value is differentiable through the similarities: by the envelope
theorem the gradient of an optimal cost is that of the cost at the fixed optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from movers.encoders.layers import unit_vectors
from movers.errors import InputError
from movers.inputs import check_choice
from movers.scores.bertscore import emd_scores, hungarian_scores
from movers.threads import one_blas_thread, solver_pool

if TYPE_CHECKING:
    import torch

TensorAlignment = Literal["emd", "hungarian", "greedy"]


def bertscore_tensors(
    hyp_emb: torch.Tensor,
    hyp_mask: torch.Tensor,
    ref_emb: torch.Tensor,
    ref_mask: torch.Tensor,
    alignment: TensorAlignment = "emd",
    weights: Literal["norm", "uniform"] = "norm",
    threads: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Precision, recall and F1 (B,) of a batch of token embeddings, on any device.

    `hyp_emb` (B, m, d) and `ref_emb` (B, k, d) are compared where `hyp_mask` (B, m) and `ref_mask` (B, k) are True or
    1. `weights` are the masses for "emd". The results are differentiable through the cosines; alignment and masses are
    constants. Half-precision embeddings are converted to float32. A pair without tokens on one side scores 0, on both
    sides 1.

    Examples
    --------
    >>> import torch
    >>> x = torch.eye(3).unsqueeze(0)
    >>> mask = torch.ones(1, 3)
    >>> [round(float(value), 4) for value in bertscore_tensors(x, mask, x, mask)]
    [1.0, 1.0, 1.0]
    """
    import torch

    for name, emb, mask in (("hyp", hyp_emb, hyp_mask), ("ref", ref_emb, ref_mask)):
        if emb.ndim != 3 or mask.shape != emb.shape[:2]:
            raise InputError(
                f"bertscore_tensors: {name}_emb, {name}_mask: expected (B, n, d) and (B, n), "
                f"but got {tuple(emb.shape)} and {tuple(mask.shape)}"
            )
    if hyp_emb.shape[0] != ref_emb.shape[0] or hyp_emb.shape[2] != ref_emb.shape[2]:
        raise InputError(
            "bertscore_tensors: hyp_emb and ref_emb: expected the same batch size and dimension, "
            f"but got {tuple(hyp_emb.shape)} and {tuple(ref_emb.shape)}"
        )
    check_choice("bertscore_tensors", "alignment", alignment, ("emd", "hungarian", "greedy"))
    check_choice("bertscore_tensors", "weights", weights, ("norm", "uniform"))
    hyp, ref = hyp_mask.bool(), ref_mask.bool()
    # Masked positions may contain NaN, and 0 · NaN is not 0.
    hyp_emb, ref_emb = (emb.float() if emb.element_size() < 4 else emb for emb in (hyp_emb, ref_emb))
    hyp_emb, ref_emb = hyp_emb.masked_fill(~hyp.unsqueeze(-1), 0.0), ref_emb.masked_fill(~ref.unsqueeze(-1), 0.0)
    for name, emb in (("hyp_emb", hyp_emb), ("ref_emb", ref_emb)):
        finite = emb.detach().isfinite().all(dim=(1, 2))
        if not bool(finite.all()):
            row = int(finite.logical_not().nonzero()[0, 0])
            raise InputError(f"bertscore_tensors: {name}[{row}]: expected finite numbers where the mask is set")
    similarity = unit_vectors(hyp_emb) @ unit_vectors(ref_emb).transpose(1, 2)  # (B, m, k)
    if alignment == "greedy" and similarity.numel():
        both = hyp.unsqueeze(2) & ref.unsqueeze(1)
        closed = similarity.masked_fill(~both, -2.0)
        precision = (closed.amax(dim=2) * hyp).sum(dim=1) / hyp.sum(dim=1).clamp_min(1)
        recall = (closed.amax(dim=1) * ref).sum(dim=1) / ref.sum(dim=1).clamp_min(1)
    else:
        row_shares, column_shares = _shares(similarity, hyp, ref, hyp_emb, ref_emb, alignment, weights, threads)
        precision = (row_shares * similarity).sum(dim=(1, 2))
        recall = (column_shares * similarity).sum(dim=(1, 2))
    no_hyp, no_ref = ~hyp.any(dim=1), ~ref.any(dim=1)
    fixed = (no_hyp & no_ref).to(similarity.dtype)
    empty = no_hyp | no_ref
    precision = torch.where(empty, fixed, precision).clamp(max=1.0)  # products of unit vectors exceed 1 by rounding
    recall = torch.where(empty, fixed, recall).clamp(max=1.0)
    positive = (precision > 0) & (recall > 0)
    f1 = torch.where(positive, 2 * precision * recall / torch.where(positive, precision + recall, 1.0), 0.0)
    return precision, recall, f1


def _shares(
    similarity: torch.Tensor,
    hyp: torch.Tensor,
    ref: torch.Tensor,
    hyp_emb: torch.Tensor,
    ref_emb: torch.Tensor,
    alignment: TensorAlignment,
    weights: str,
    threads: int | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, m, k) constant weights of the similarities in precision and in recall."""
    import torch

    values = similarity.detach().cpu().double().numpy()
    rows, columns = hyp.cpu().numpy(), ref.cpu().numpy()
    row_norms = hyp_emb.detach().norm(dim=-1, dtype=torch.float64).cpu().numpy()
    column_norms = ref_emb.detach().norm(dim=-1, dtype=torch.float64).cpu().numpy()

    def solve(index: int) -> tuple[np.ndarray, np.ndarray]:
        by_row, by_column = np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
        i, j = np.flatnonzero(rows[index]), np.flatnonzero(columns[index])
        if not len(i) or not len(j):
            return by_row, by_column
        place, norms = np.ix_(i, j), (row_norms[index, i], column_norms[index, j])
        a, b = (side if weights == "norm" and side.any() else np.ones(len(side)) for side in norms)
        if alignment == "hungarian":
            *_, flow = hungarian_scores(values[index][place], a, b)
            by_row[place], by_column[place] = flow / len(i), flow / len(j)
            return by_row, by_column
        *_, flow = emd_scores(values[index][place], a, b)
        h, r = a / a.sum(), b / b.sum()
        by_row[place] = np.divide(flow, h[:, None], out=np.zeros_like(flow), where=h[:, None] > 0) / (h > 0).sum()
        by_column[place] = np.divide(flow, r, out=np.zeros_like(flow), where=r > 0) / (r > 0).sum()
        return by_row, by_column

    with one_blas_thread(), solver_pool(threads) as pool:
        solved = list(pool.map(solve, range(len(values))))
    tensors = [np.stack([pair[side] for pair in solved]) for side in (0, 1)]
    first, second = (torch.from_numpy(array).to(similarity) for array in tensors)
    return first, second
