"""The one rule for progress bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from movers.io.tables import printable

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["progress_bar"]


def progress_bar(
    total: int | None = None, *, desc: str, unit: str, progress: bool | None = None, **tqdm_options: object
) -> tqdm:
    """A progress bar on standard error that disappears when it is closed.

    Parameters
    ----------
    total : int, optional
        How many units there will be.
    desc, unit : str
        What is being done, and to what.
    progress : bool, optional
        True shows the bar, False does not; by default it is shown on terminals only, after two seconds.
    **tqdm_options
        Any other option of tqdm, such as `iterable` or `leave`.
    """
    from tqdm import tqdm

    chosen = {"leave": False, "delay": 0 if progress else 2, **tqdm_options}
    return tqdm(
        total=total, desc=printable(desc), unit=unit, disable=None if progress is None else not progress, **chosen
    )
