"""Texts and types that the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable

PREDICTIONS = ["A man sells snow online.", "Police arrested three suspects.", "Rain stopped play."]
REFERENCES = ["Snow is sold on the internet.", "Three people were arrested.", "The match was rained off."]

Run = Callable[..., tuple[int, str, str]]
Failure = Callable[..., str]
Files = Callable[..., list[str]]
