"""The one class of errors that a user can mend."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError, TypeError):
    """Something given by the user is not as expected: an argument, an option, a file, a missing package.

    The message names the metric, the argument and the row, with expected and actual values. The command line, the
    pages and the Trainer hook show it as a message; any other exception is a bug and shows its traceback.

    >>> issubclass(InputError, ValueError), issubclass(InputError, TypeError)
    (True, True)
    """


InputError.__module__ = "movers"  # the name under which a traceback shows it, and users import it
