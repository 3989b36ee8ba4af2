"""Standard input, output and error, whatever the shell made of them."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

__all__ = ["discard_output", "is_of_output", "settle_streams"]

_FAILED = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


def settle_streams() -> None:
    """Let all three be there, and take every text.

    A stream that the shell closed (`<&-`, `>&-`) leaves its number to the next file that is opened, which would get
    what is printed. What the encoding of a stream lacks is printed as escapes, and so are odd bytes of file names.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # It takes the lowest free number. Nothing can be written to standard output: no result vanishes unseen.
            os.open(os.devnull, os.O_RDWR if name == "stderr" else os.O_RDONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_of_output(error: OSError) -> bool:
    """Whether it says that standard output takes no more; errors of files name them."""
    return error.errno in _FAILED and error.filename is None


def discard_output() -> None:
    """Let what is still in the buffer go nowhere, so that the interpreter ends quietly."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
