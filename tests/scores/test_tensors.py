from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from plain import cosines

from movers import InputError, bertscore_tensors
from movers.scores.bertscore import emd_scores, f1_of, greedy_scores, hungarian_scores

FUNCTIONS = {"emd": emd_scores, "hungarian": hungarian_scores, "greedy": greedy_scores}
every_alignment = pytest.mark.parametrize("alignment", FUNCTIONS)


def batch(seed: int, rows: int = 6, m: int = 7, k: int = 5, d: int = 8, dtype: Any = torch.float64) -> tuple[Any, ...]:
    """Random embeddings and masks with at least one token a side; masked places hold large numbers."""
    torch.manual_seed(seed)
    sides = []
    for size in (m, k):
        mask = torch.arange(size) < torch.randint(1, size + 1, (rows,))[:, None]
        mask = torch.stack([row[torch.randperm(size)] for row in mask])  # not only on the right
        embeddings = torch.where(mask[..., None], torch.randn(rows, size, d, dtype=torch.float64), 1e3)
        sides += [embeddings.to(dtype), mask]
    return tuple(sides)


@every_alignment
@pytest.mark.parametrize("weights", ["norm", "uniform"])
def test_tensors_give_what_the_numpy_functions_give_in_any_batch(alignment: Any, weights: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = tensors = batch(1)
    result = bertscore_tensors(*tensors, alignment=alignment, weights=weights)
    numbers = bertscore_tensors(
        hyp, hyp_mask.long(), ref, ref_mask.float(), alignment=alignment, weights=weights, threads=1
    )
    assert all(torch.equal(one, other) for one, other in zip(result, numbers, strict=True))
    for row in range(len(hyp)):
        a, b = hyp[row][hyp_mask[row]].numpy(), ref[row][ref_mask[row]].numpy()
        h, r = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
        if weights == "uniform" or alignment != "emd":
            h, r = np.ones(len(h)), np.ones(len(r))
        precision, recall, _ = FUNCTIONS[alignment](cosines(a, b), h, r)
        expected = [precision, recall, f1_of(precision, recall)]
        assert [float(part[row]) for part in result] == pytest.approx(expected, abs=1e-9)
        alone = bertscore_tensors(*(part[row : row + 1] for part in tensors), alignment=alignment, weights=weights)
        assert [float(part[0]) for part in alone] == pytest.approx(expected, abs=1e-9)


@every_alignment
@pytest.mark.parametrize("part", [0, 1, 2], ids=["precision", "recall", "f1"])
def test_gradients_are_those_of_finite_differences(alignment: Any, part: int) -> None:
    # Directions of random vectors have no ties, so that a small step leaves the alignment as it is. The masses of
    # "norm" are constants by definition; with "uniform" ones the finite difference moves nothing else.
    hyp, hyp_mask, ref, ref_mask = batch(5, rows=3, m=4, k=3, d=4)
    sides = [hyp.masked_fill(~hyp_mask[..., None], 0.5), ref.masked_fill(~ref_mask[..., None], 0.5)]

    def value(a: Any, b: Any) -> Any:
        return bertscore_tensors(a, hyp_mask, b, ref_mask, alignment=alignment, weights="uniform")[part].sum()

    leaves = [side.clone().requires_grad_(True) for side in sides]
    for side, gradient in enumerate(torch.autograd.grad(value(*leaves), leaves)):
        assert float(gradient.abs().max()) > 1e-3
        numeric = torch.zeros_like(gradient)
        for place in np.ndindex(*gradient.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [tensor.clone() for tensor in sides]
                moved[side][place] += step
                ends.append(value(*moved))
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        torch.testing.assert_close(gradient, numeric, atol=1e-6, rtol=1e-5)


def test_with_norms_as_masses_the_masses_are_constants() -> None:
    hyp, hyp_mask, ref, ref_mask = batch(6, rows=3, m=4, k=3, d=4)
    hyp.requires_grad_(True)
    (gradient,) = torch.autograd.grad(bertscore_tensors(hyp, hyp_mask, ref, ref_mask)[2].sum(), hyp)
    # A cosine does not change along its own vector, so neither does the value.
    along = (gradient * hyp.detach()).sum(dim=-1)
    torch.testing.assert_close(along, torch.zeros_like(along), atol=1e-9, rtol=0)
    assert float(gradient[hyp_mask].abs().max()) > 1e-3 and not gradient[~hyp_mask].any()


@every_alignment
def test_pairs_without_tokens_zero_vectors_and_masked_places(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(8, rows=6)
    hyp_mask[0], ref_mask[1] = False, False
    hyp_mask[2], ref_mask[2] = False, False
    hyp[4], ref[5] = 0.0, 0.0
    values = []
    for filling in (0.0, 7.0, float("nan"), float("inf")):
        first = hyp.masked_fill(~hyp_mask[..., None], filling).requires_grad_(True)
        second = ref.masked_fill(~ref_mask[..., None], filling)
        result = bertscore_tensors(first, hyp_mask, second, ref_mask, alignment=alignment)
        (gradient,) = torch.autograd.grad(result[2].sum(), first)
        assert bool(gradient.isfinite().all()) and not gradient[:3].any()
        assert all(part[:3].tolist() == [0, 0, 1] and part[3].item() not in (0, 1) for part in result)
        assert result[2][4:].tolist() == [0, 0]
        values.append(torch.stack(result).detach())
    for other in values[1:]:
        torch.testing.assert_close(other, values[0], atol=1e-12, rtol=0)


@every_alignment
def test_precision_and_scale_change_little_and_equal_tokens_score_1_and_no_more(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(11, rows=40, d=64, dtype=torch.bfloat16)
    exact = torch.stack(bertscore_tensors(hyp.double(), hyp_mask, ref.double(), ref_mask, alignment=alignment))
    hyp.requires_grad_(True)
    half = bertscore_tensors(hyp, hyp_mask, ref, ref_mask, alignment=alignment)
    half[2].sum().backward()
    assert hyp.grad is not None and hyp.grad.dtype == torch.bfloat16 and bool(hyp.grad.isfinite().all())
    for scale in (1e30, 1e-30):
        scaled = bertscore_tensors(hyp.float() * scale, hyp_mask, ref.float() * scale, ref_mask, alignment=alignment)
        for values in (half, scaled):
            torch.testing.assert_close(torch.stack(values).detach().double(), exact, atol=1e-5, rtol=0)
    same = hyp.detach().float()
    for part in bertscore_tensors(same, hyp_mask, same, hyp_mask, alignment=alignment):
        assert 1 - 1e-5 < float(part.min()) <= float(part.max()) <= 1


def test_a_token_of_length_zero_has_no_mass() -> None:
    two = torch.eye(2)[None]
    three = torch.cat([two, torch.zeros(1, 1, 2)], dim=1)
    assert [float(part) for part in bertscore_tensors(three, torch.ones(1, 3), two, torch.ones(1, 2))] == [1, 1, 1]


def test_wrong_tensors_are_errors() -> None:
    tensors: Any = batch(1)
    with pytest.raises(InputError, match=r"ref_emb, ref_mask: expected \(B, n, d\) and \(B, n\), but got \(6, 5, 8\)"):
        bertscore_tensors(*tensors[:3], tensors[3].T)
    with pytest.raises(InputError, match=r"same batch size and dimension, but got \(6, 7, 8\) and \(6, 5, 7\)"):
        bertscore_tensors(*tensors[:2], tensors[2][..., 1:], tensors[3])
    with pytest.raises(InputError, match="^bertscore_tensors: weights: expected one of 'norm', 'uniform', but got"):
        bertscore_tensors(*tensors, weights="idf")
    tensors[2][2, tensors[3][2].nonzero()[0, 0], 3] = float("nan")
    with pytest.raises(InputError, match=r"bertscore_tensors: ref_emb\[2\]: expected finite numbers"):
        bertscore_tensors(*tensors)
