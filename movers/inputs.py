"""Validation of inputs; every message names the metric, the argument and the row, with expected and actual values."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TypeGuard

from movers.errors import InputError


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__


def check_text(metric: str, argument: str, row: str, value: object) -> str:
    """Check one text: a str that can be encoded in UTF-8."""
    if not isinstance(value, str):
        actual = "None" if value is None else f"{_kind(value)}: {value!r:.60}"
        raise InputError(f"{metric}: {argument}[{row}]: expected a text (str), but got {actual}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        surrogate = f"a lone surrogate ({value[error.start]!a} at character {error.start})"
        raise InputError(f"{metric}: {argument}[{row}]: expected valid Unicode, but got {surrogate}") from None
    return str(value)


def _as_list(metric: str, argument: str, value: object, expected: str) -> list[object]:
    # A set has no order.
    if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable):
        actual = f"a single str: {value!r:.40}" if isinstance(value, str) else _kind(value)
        raise InputError(f"{metric}: {argument}: expected {expected}, but got {actual}")
    return list(value)


def check_texts(metric: str, argument: str, value: object, first_row: int = 0) -> list[str]:
    """Check a list of texts; `first_row` is the number of the first in error messages."""
    texts = _as_list(metric, argument, value, "a list of texts")
    return [check_text(metric, argument, str(row), text) for row, text in enumerate(texts, first_row)]


def check_text_groups(metric: str, argument: str, value: object, first_row: int = 0) -> list[list[str]]:
    """Check a list of texts or of lists of texts (may be ragged); returns a list of lists."""
    rows = _as_list(metric, argument, value, "a list of texts or of lists of texts")
    groups: list[list[str]] = []
    grouped = bool(rows) and is_group(rows[0])
    for row, item in enumerate(rows, first_row):
        if is_group(item) != grouped and (is_group(item) or isinstance(item, str)):
            expected = "a list of texts" if grouped else "a text (str)"
            actual = f"{_kind(item)}; give every row a str or every row a list of str"
            message = f"expected {expected} like {argument}[{first_row}], but got {actual}"
            raise InputError(f"{metric}: {argument}[{row}]: {message}")
        if not grouped:
            groups.append([check_text(metric, argument, str(row), item)])
            continue
        if not is_group(item):
            raise InputError(f"{metric}: {argument}[{row}]: expected a list of texts, but got {_kind(item)}")
        if not len(item):
            raise InputError(f"{metric}: {argument}[{row}]: expected at least one text, but got an empty list")
        groups.append([check_text(metric, argument, f"{row}][{place}", text) for place, text in enumerate(item)])
    return groups


def is_group(item: object) -> TypeGuard[Sequence[object]]:
    """Whether a row is a list of texts, not a single text."""
    if isinstance(item, str | bytes):  # includes NumPy strings, which look like arrays
        return False
    # pandas and datasets in NumPy format give arrays as rows.
    return isinstance(item, Sequence) or getattr(item, "ndim", 0) > 0


def check_pairs(
    metric: str, predictions: object, references: object, argument: str = "references", first_row: int = 0
) -> tuple[list[str], list[list[str]]]:
    """Check predictions and references; returns one list of references per prediction."""
    texts = check_texts(metric, "predictions", predictions, first_row)
    groups = check_text_groups(metric, argument, references, first_row)
    if len(texts) != len(groups):
        counts = f"{len(texts)} predictions and {len(groups)} {argument}"
        raise InputError(f"{metric}: predictions and {argument}: expected equally many rows, but got {counts}")
    if not texts:
        raise InputError(f"{metric}: predictions: expected at least one text, but got an empty list")
    return texts, groups


def check_choice(metric: str, option: str, value: object, choices: Collection[object]) -> None:
    """Check that `value` is one of `choices`; True is not 1."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        listed = ", ".join(map(repr, choices))
        raise InputError(f"{metric}: {option}: expected one of {listed}, but got {value!r}")


def check_positive(metric: str, option: str, value: object, none_allowed: bool = True, least: int = 1) -> None:
    """Check that `value` is an integer of at least `least`, or None where allowed."""
    if value is None and none_allowed:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        expected = "above zero" if least == 1 else f"of at least {least}"
        raise InputError(f"{metric}: {option}: expected a whole number {expected}, but got {value!r}")


def check_options(metric: str, options: Iterable[str], valid: Iterable[str]) -> None:
    known = sorted(valid)
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"{metric}: unknown option {name!r}{hint}; valid options: {', '.join(known)}")


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """The most similar valid name as a question, or nothing."""
    close = difflib.get_close_matches(name.lower(), list(valid), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
