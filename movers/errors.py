"""The one class of errors that a user can mend, and warnings that are shown once."""

from __future__ import annotations

import warnings
from functools import lru_cache

__all__ = ["InputError", "warn_once"]


class InputError(ValueError, TypeError):
    """Something given by the user is not as expected: an argument, an option, a file, a missing package.

    The message names the metric, the argument and the row, with expected and actual values. The command line, the
    pages and the Trainer hook show it as a message; any other exception is a bug and shows its traceback.

    >>> issubclass(InputError, ValueError), issubclass(InputError, TypeError)
    (True, True)
    """


InputError.__module__ = "movers"  # the name under which a traceback shows it, and users import it


@lru_cache(maxsize=1024)
def warn_once(message: str) -> None:
    """Warn, but only once per process with the same message, however often a metric is called."""
    warnings.warn(message, stacklevel=2)
