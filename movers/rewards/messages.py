"""What TRL hands to a reward: completions as texts or messages, references as one text, several or none."""

from __future__ import annotations

from collections.abc import Mapping

from movers.errors import InputError
from movers.inputs import check_text, is_group
from movers.texts import token_spans

__all__ = ["has_words", "repetitions", "text_of", "texts_of"]


def text_of(reward: str, argument: str, row: str, value: object) -> str:
    """A text, or the text of a conversation: what its last message says.

    >>> text_of("sms", "completions", "0", [{"role": "assistant", "content": "Snow melts."}])
    'Snow melts.'
    """
    if isinstance(value, Mapping):
        content = value.get("content")
        if content is None:  # a message that only calls a tool says nothing
            return ""
        if is_group(content):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        return check_text(reward, argument, row, content)
    if is_group(value) and all(isinstance(part, Mapping) for part in value):
        return text_of(reward, argument, row, value[-1]) if len(value) else ""
    return check_text(reward, argument, row, value)


def texts_of(reward: str, column: str, rows: object, count: int) -> list[list[str]]:
    """The texts a row is compared with: none where the row has None, nothing or blank texts alone."""
    if not is_group(rows) or len(rows) != count:
        came = f"{len(rows)}" if is_group(rows) else type(rows).__name__
        raise InputError(f"{reward}: {column}: expected one entry per completion, {count}, but got {came}")
    found = []
    for number, row in enumerate(rows):
        several = is_group(row) and not (len(row) and isinstance(row[0], Mapping))
        items = list(row) if several and is_group(row) else [row]
        texts = [text_of(reward, column, str(number), item) for item in items if item is not None]
        found.append([text for text in texts if text.strip()])
    return found


def _words(text: str) -> list[tuple[str, int]]:
    """Words in small letters, each with the place where it ends."""
    return [(token.casefold(), end) for token, _, end in token_spans(text) if any(map(str.isalnum, token))]


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit.

    >>> has_words(" … !?"), has_words("7")
    (False, True)
    """
    return any(map(str.isalnum, text))


def repetitions(text: str) -> tuple[int, str]:
    """How often a text says the same words over, and the text up to where it first begins again.

    >>> repetitions("Snow melts. Snow melts. Snow melts.")
    (3, 'Snow melts.')
    >>> repetitions("Snow melts in spring.")
    (1, 'Snow melts in spring.')
    """
    words = _words(text)
    spoken = [word for word, _ in words]
    count = len(spoken)
    for period in range(1, count // 2 + 1):
        if count % period == 0 and spoken[period:] == spoken[:-period]:
            rest = text[words[period - 1][1] :]
            closing = len(rest) - len(rest.lstrip(".,;:!?…\"'”’)"))
            return count // period, text[: words[period - 1][1] + closing]
    return 1, text
