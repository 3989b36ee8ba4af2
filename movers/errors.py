"""Errors that a user can mend, and warnings that are shown once."""

from __future__ import annotations

import warnings
from functools import lru_cache
from importlib import import_module
from typing import Any

__all__ = ["InputError", "RowError", "TextError", "import_extra", "install_hint", "warn_once"]


class InputError(ValueError, TypeError):
    """Invalid user input: an argument, an option, a file, a missing package.

    It is shown as a message; any other exception is a bug and shows its traceback.
    """


InputError.__module__ = "movers"  # the name under which a traceback shows it, and users import it


class RowError(InputError):
    """What is wrong with one row (from 0) of `predictions`, `references` or `sources`, and with which of its texts.

    >>> print(RowError("wms", "references", 3, "too long", 1).at("r.txt: line 4"))
    wms: r.txt: line 4: too long
    """

    def __init__(self, metric: str, argument: str, row: int, reason: str, place: int | None = None) -> None:
        super().__init__(metric, argument, row, reason, place)
        self.metric, self.argument, self.row, self.reason, self.place = metric, argument, row, reason, place

    def __str__(self) -> str:
        place = "" if self.place is None else f"[{self.place}]"
        return f"{self.metric}: {self.argument}[{self.row}]{place}: {self.reason}"

    def at(self, where: str) -> InputError:
        """The error with that place instead of an index."""
        return InputError(f"{self.metric}: {where}: {self.reason}")


class TextError(InputError):
    """What is wrong with a text, raised before its row is known."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(reason)
        self.reason, self.text = reason, text


@lru_cache(maxsize=1024)
def warn_once(message: str) -> None:
    """Warn, but only once per process with the same message, however often a metric is called."""
    warnings.warn(message, stacklevel=2)


def install_hint(extra: str) -> str:
    """How to install an extra of this package."""
    return f"pip install '.[{extra}]' in a checkout of movers"


def import_extra(module: str, extra: str, need: str) -> Any:
    """A module that an extra installs; without it, `need` begins the error."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{need}: {install_hint(extra)}") from None
