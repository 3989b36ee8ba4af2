from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from movers import InputError, bertscore_tensors
from movers.scores.bertscore import emd_scores, f1_of, greedy_scores, hungarian_scores

ALIGNMENTS = ["emd", "hungarian", "greedy"]
every_alignment = pytest.mark.parametrize("alignment", ALIGNMENTS)


def batch(seed: int, rows: int = 6, m: int = 7, k: int = 5, d: int = 8, dtype: Any = torch.float64) -> tuple[Any, ...]:
    """Random embeddings and masks with at least one token a side; masked places hold large numbers."""
    torch.manual_seed(seed)
    sides = []
    for size in (m, k):
        lengths = torch.randint(1, size + 1, (rows,))
        mask = torch.arange(size) < lengths[:, None]
        mask = torch.stack([row[torch.randperm(size)] for row in mask])  # not only on the right
        embeddings = torch.randn(rows, size, d, dtype=torch.float64)
        embeddings = torch.where(mask[..., None], embeddings, 1e3)
        sides += [embeddings.to(dtype), mask]
    return tuple(sides)


def expected(hyp_emb: Any, hyp_mask: Any, ref_emb: Any, ref_mask: Any, alignment: str, weights: str) -> list[Any]:
    """The same by the NumPy functions, one by one."""
    values = []
    for row in range(len(hyp_emb)):
        a = hyp_emb[row][hyp_mask[row].bool()].double().numpy()
        b = ref_emb[row][ref_mask[row].bool()].double().numpy()
        h, r = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
        similarity = (a / h[:, None]) @ (b / r[:, None]).T
        if weights == "uniform" or alignment != "emd":
            h, r = np.ones(len(h)), np.ones(len(r))
        function = {"emd": emd_scores, "hungarian": hungarian_scores, "greedy": greedy_scores}[alignment]
        precision, recall = function(similarity, h, r)[:2]
        values.append((precision, recall, f1_of(precision, recall)))
    return values


@every_alignment
@pytest.mark.parametrize("weights", ["norm", "uniform"])
def test_tensors_give_what_the_numpy_functions_give(alignment: Any, weights: Any) -> None:
    for seed in range(4):
        given = batch(seed)
        result = bertscore_tensors(*given, alignment=alignment, weights=weights)
        found = np.stack([part.numpy() for part in result], axis=1)
        np.testing.assert_allclose(found, expected(*given, alignment, weights), atol=1e-9)


@every_alignment
def test_masks_may_be_numbers_and_threads_change_nothing(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(1, dtype=torch.float32)
    once = bertscore_tensors(hyp, hyp_mask, ref, ref_mask, alignment=alignment, threads=1)
    for masks in ((hyp_mask.long(), ref_mask.long()), (hyp_mask.float(), ref_mask.float())):
        again = bertscore_tensors(hyp, masks[0], ref, masks[1], alignment=alignment, threads=3)
        assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


@every_alignment
def test_a_row_does_not_depend_on_the_others(alignment: Any) -> None:
    given = batch(2)
    together = bertscore_tensors(*given, alignment=alignment)
    for row in range(len(given[0])):
        alone = bertscore_tensors(*(part[row : row + 1] for part in given), alignment=alignment)
        for a, b in zip(together, alone, strict=True):
            assert float(a[row]) == pytest.approx(float(b[0]), abs=1e-12)


@every_alignment
@pytest.mark.parametrize("part", [0, 1, 2], ids=["precision", "recall", "f1"])
def test_gradients_equal_finite_differences(alignment: Any, part: int) -> None:
    # Directions of random vectors have no ties, so that a small step leaves the alignment as it is. The masses of
    # "norm" are constants by definition; with "uniform" ones the finite difference moves nothing else.
    hyp, hyp_mask, ref, ref_mask = batch(5, rows=3, m=4, k=3, d=4)
    hyp, ref = hyp.masked_fill(~hyp_mask[..., None], 0.5), ref.masked_fill(~ref_mask[..., None], 0.5)
    hyp.requires_grad_(True)
    ref.requires_grad_(True)

    def value(a: Any, b: Any) -> Any:
        return bertscore_tensors(a, hyp_mask, b, ref_mask, alignment=alignment, weights="uniform")[part].sum()

    gradients = torch.autograd.grad(value(hyp, ref), (hyp, ref))
    assert all(float(gradient.abs().max()) > 1e-3 for gradient in gradients)
    step = 1e-6
    for side, gradient in enumerate(gradients):
        given = [hyp.detach(), ref.detach()]
        numeric = torch.zeros_like(gradient)
        for place in np.ndindex(*gradient.shape):
            ends = []
            for sign in (1, -1):
                moved = given[side].clone()
                moved[place] += sign * step
                ends.append(value(*(moved if number == side else given[number] for number in (0, 1))))
            numeric[place] = (ends[0] - ends[1]) / (2 * step)
        torch.testing.assert_close(gradient, numeric, atol=1e-6, rtol=1e-5)


def test_with_norms_as_masses_the_masses_are_constants() -> None:
    hyp, hyp_mask, ref, ref_mask = batch(6, rows=3, m=4, k=3, d=4)
    hyp.requires_grad_(True)
    (gradient,) = torch.autograd.grad(bertscore_tensors(hyp, hyp_mask, ref, ref_mask)[2].sum(), hyp)
    # A cosine does not change along its own vector, so neither does the value.
    along = (gradient * hyp.detach()).sum(dim=-1)
    torch.testing.assert_close(along, torch.zeros_like(along), atol=1e-9, rtol=0)
    assert float(gradient[hyp_mask].abs().max()) > 1e-3
    assert not gradient[~hyp_mask].any()


@every_alignment
def test_pairs_without_tokens_have_0_and_without_any_1(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(8, rows=4)
    hyp_mask[0], ref_mask[1] = False, False
    hyp_mask[2], ref_mask[2] = False, False
    hyp.requires_grad_(True)
    result = bertscore_tensors(hyp, hyp_mask, ref, ref_mask, alignment=alignment)
    for part in result:
        assert part[:3].tolist() == [0, 0, 1]
        assert part[3].item() not in (0, 1)
    (gradient,) = torch.autograd.grad(result[2].sum(), hyp)
    assert bool(gradient.isfinite().all())
    assert not gradient[:3].any()


@every_alignment
def test_a_side_may_have_no_places_at_all(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(8, rows=2)
    result = bertscore_tensors(hyp, hyp_mask, ref[:, :0], ref_mask[:, :0], alignment=alignment)
    assert [part.tolist() for part in result] == [[0, 0]] * 3
    result = bertscore_tensors(hyp[:, :0], hyp_mask[:, :0], ref[:, :0], ref_mask[:, :0], alignment=alignment)
    assert [part.tolist() for part in result] == [[1, 1]] * 3


@every_alignment
def test_what_stands_at_masked_places_does_not_matter(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(9)
    results = []
    for filling in (0.0, 7.0, float("nan"), float("inf")):
        filled = hyp.masked_fill(~hyp_mask[..., None], filling).requires_grad_(True)
        other = ref.masked_fill(~ref_mask[..., None], filling)
        f1 = bertscore_tensors(filled, hyp_mask, other, ref_mask, alignment=alignment)[2]
        (gradient,) = torch.autograd.grad(f1.sum(), filled)
        results.append(torch.cat([f1.detach(), gradient[hyp_mask].flatten()]))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], atol=1e-12, rtol=0)


@every_alignment
def test_vectors_of_length_zero_are_no_accident(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(10, rows=3)
    hyp[0], ref[1] = 0.0, 0.0
    hyp[2, 0] = 0.0
    hyp_mask[2] = True
    hyp.requires_grad_(True)
    result = bertscore_tensors(hyp, hyp_mask, ref, ref_mask, alignment=alignment)
    (gradient,) = torch.autograd.grad(result[2].sum(), hyp)
    assert all(bool(part.isfinite().all()) for part in (*result, gradient))
    assert result[2][:2].tolist() == [0, 0]


@every_alignment
def test_equal_tokens_score_1_and_no_more(alignment: Any) -> None:
    torch.manual_seed(3)
    x = torch.randn(64, 9, 7)
    mask = torch.ones(64, 9)
    assert float((x / x.norm(dim=-1, keepdim=True)).square().sum(dim=-1).max()) > 1  # by rounding
    for part in bertscore_tensors(x, mask, x, mask, alignment=alignment):
        assert 1 - 1e-5 < float(part.min()) <= float(part.max()) <= 1


def test_f1_is_0_where_precision_and_recall_are_not_above_0() -> None:
    hyp = torch.tensor([[[1.0, 0.0]]])
    precision, recall, f1 = bertscore_tensors(hyp, torch.ones(1, 1), -hyp, torch.ones(1, 1))
    assert (float(precision), float(recall), float(f1)) == (-1, -1, 0)


@every_alignment
def test_half_precision_is_near_the_whole_one_and_has_gradients(alignment: Any) -> None:
    hyp, hyp_mask, ref, ref_mask = batch(11, d=64, dtype=torch.bfloat16)
    hyp.requires_grad_(True)
    result = bertscore_tensors(hyp, hyp_mask, ref, ref_mask, alignment=alignment)
    whole = bertscore_tensors(hyp.detach().double(), hyp_mask, ref.double(), ref_mask, alignment=alignment)
    for half, exact in zip(result, whole, strict=True):
        torch.testing.assert_close(half.detach().double(), exact, atol=1e-5, rtol=0)
    result[2].sum().backward()
    assert hyp.grad is not None and hyp.grad.dtype == torch.bfloat16
    assert bool(hyp.grad.isfinite().all()) and bool(hyp.grad.any())


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            ((2, 3), (2, 3), (2, 3, 4), (2, 3)),
            r"hyp_emb, hyp_mask: expected \(B, n, d\) and \(B, n\), but got \(2, 3\)",
        ),
        (((2, 3, 4), (2, 4), (2, 3, 4), (2, 3)), r"but got \(2, 3, 4\) and \(2, 4\)"),
        (((2, 3, 4), (2, 3), (2, 3, 4), (3, 2)), r"ref_emb, ref_mask: .* but got \(2, 3, 4\) and \(3, 2\)"),
        (((2, 3, 4), (2, 3), (3, 3, 4), (3, 3)), r"same batch size and dimension, but got \(2, 3, 4\) and \(3, 3, 4\)"),
        (((2, 3, 4), (2, 3), (2, 3, 5), (2, 3)), r"same batch size and dimension, but got \(2, 3, 4\) and \(2, 3, 5\)"),
    ],
    ids=["no-dimension", "mask-length", "mask-turned", "batch-size", "dimension"],
)
def test_shapes_that_do_not_fit_are_told(shapes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"bertscore_tensors: .*{message}"):
        bertscore_tensors(*(torch.ones(shape) for shape in shapes))


def test_unknown_alignments_and_weights_are_told() -> None:
    given = batch(0, rows=1)
    with pytest.raises(ValueError, match="alignment: expected one of 'emd', 'hungarian', 'greedy', but got 'best'"):
        bertscore_tensors(*given, alignment="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weights: expected one of 'norm', 'uniform', but got 'idf'"):
        bertscore_tensors(*given, weights="idf")  # type: ignore[arg-type]


@every_alignment
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_an_error_that_names_the_row(alignment: Any, bad: float) -> None:
    hyp_emb, hyp_mask, ref_emb, ref_mask = batch(1)
    ref_emb[2, ref_mask[2].nonzero()[0, 0], 3] = bad
    with pytest.raises(InputError, match=r"bertscore_tensors: ref_emb\[2\]: expected finite numbers"):
        bertscore_tensors(hyp_emb, hyp_mask, ref_emb, ref_mask, alignment=alignment)


@every_alignment
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_the_length_of_embeddings_changes_no_cosine(alignment: Any, scale: float) -> None:
    hyp_emb, hyp_mask, ref_emb, ref_mask = batch(2, dtype=torch.float32)
    plain = bertscore_tensors(hyp_emb, hyp_mask, ref_emb, ref_mask, alignment=alignment)
    scaled = bertscore_tensors(hyp_emb * scale, hyp_mask, ref_emb * scale, ref_mask, alignment=alignment)
    for one, other in zip(plain, scaled, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@every_alignment
def test_no_value_exceeds_one(alignment: Any) -> None:
    hyp_emb, hyp_mask, _, _ = batch(3, rows=40, dtype=torch.float32)
    for value in bertscore_tensors(hyp_emb, hyp_mask, hyp_emb, hyp_mask, alignment=alignment):
        assert float(value.max()) <= 1.0 and float(value.min()) > 1 - 1e-6
