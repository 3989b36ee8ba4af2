"""Validation of encoder outputs, and vectors for unknown subwords."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from movers.errors import InputError

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder, EncodedText

__all__ = ["check_vectors", "checked_texts", "surface_vectors"]

Vectors = NDArray[np.float32]
_COLUMNS = ("ids", "starts", "ends", "words", "special", "unknown")


def check_vectors(encoder: str, what: str, vectors: object, count: int, width: int | None = None) -> Vectors:
    """Check that vectors are (count, width) finite numbers; errors name the encoder and the text.

    Parameters
    ----------
    encoder : str
        Its identity.
    what : str
        The encoded text (or words), for error messages.
    vectors : output of the encoder
    count : int
        Expected number of vectors.
    width : int, optional
        Expected dimension.
    """
    matrix = np.asarray(vectors)
    expected = f"({count}, {'d' if width is None else width})"
    if matrix.ndim != 2 or len(matrix) != count or (width is not None and matrix.shape[1] != width):
        raise InputError(f"model: {encoder}: {what[:60]!r}: expected {expected} vectors, but got {matrix.shape}")
    if not np.issubdtype(matrix.dtype, np.floating):
        raise InputError(f"model: {encoder}: {what[:60]!r}: expected real numbers, but got dtype {matrix.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        single = matrix.astype(np.float32, copy=False)  # values that are too large become infinite
        suspicious = not np.isfinite(single.sum())  # may overflow although all values are finite
    if suspicious and not np.isfinite(single).all():
        row = int(np.argwhere(~np.isfinite(single))[0, 0])
        raise InputError(f"model: {encoder}: {what[:60]!r}: expected finite numbers, but vector {row} has none")
    return single


def checked_texts(
    encoder: ContextualEncoder, texts: Sequence[str], found: Iterable[tuple[int, EncodedText]]
) -> Iterator[tuple[int, EncodedText]]:
    """Check the output of a contextual encoder: complete token columns, one vector per token, equal dimensions."""
    width = None
    for index, encoded in found:
        tokens = encoded.tokens
        lengths = [len(getattr(tokens, name, ())) for name in _COLUMNS]
        if len(set(lengths)) > 1 or not hasattr(tokens, "unknown"):
            raise InputError(
                f"model: {encoder.identity}: {texts[index][:60]!r}: expected tokens with equally long "
                f"{', '.join(_COLUMNS)}, but got lengths {lengths}"
            )
        vectors = check_vectors(encoder.identity, texts[index], encoded.vectors, lengths[0], width)
        width = vectors.shape[1]
        yield index, encoded._replace(vectors=vectors)


def surface_vectors(surfaces: list[str], lengths: NDArray[np.float64], width: int) -> Vectors:
    """Vectors (n, width) of the given lengths, with directions determined by the surface forms.

    A tokenizer maps all unknown subwords to one id, and an encoder gives them nearly the same vector, so any two of
    them would match. With a pseudo-random direction per surface form, a subword matches only identical ones and is
    nearly orthogonal to everything else.
    """
    rows = []
    for surface in surfaces:
        seed = int.from_bytes(hashlib.sha256(surface.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        direction = np.random.Generator(np.random.PCG64(seed)).standard_normal(width)
        rows.append(direction / np.linalg.norm(direction))
    return (np.stack(rows) * lengths[:, None]).astype(np.float32)
