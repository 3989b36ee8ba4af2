"""Metrics and options as text: `name[key=value,…]`, as command line, hooks and agreement tables take them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from movers.registry import Metric, find_metric

__all__ = ["parse_metric", "parse_options", "parse_value", "split_metrics"]


def parse_value(text: str) -> Any:
    """An option's value as typed on a command line.

    >>> [parse_value(text) for text in ("none", "true", "5", "0.5", "english", '["a", "b"]')]
    [None, True, 5, 0.5, 'english', ['a', 'b']]
    """
    plain = text.strip()
    words = {"none": None, "true": True, "yes": True, "false": False, "no": False}
    if plain.lower() in words:
        return words[plain.lower()]
    if plain.startswith(("[", '"')):  # quotes make a text of what looks like something else: lang="no"
        try:
            return json.loads(plain)
        except json.JSONDecodeError as error:
            raise ValueError(f"option value: expected a JSON list or text, but got {plain!r}: {error}") from None
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return plain


def parse_options(items: Iterable[str]) -> dict[str, Any]:
    """`key=value` items as keyword arguments.

    >>> parse_options(["stopwords=none", "threads=2"])
    {'stopwords': None, 'threads': 2}
    """
    options = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"option: expected key=value, but got {item!r}")
        options[key.strip().replace("-", "_")] = parse_value(value)
    return options


def parse_metric(text: str) -> tuple[Metric, dict[str, Any]]:
    """`name` or `name[key=value,…]` as a metric and its options.

    >>> metric, options = parse_metric("wms[stopwords=none,normalize=true]")
    >>> metric.name, options
    ('wms', {'stopwords': None, 'normalize': True})
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text, flags=re.DOTALL)
    if match is None:
        raise ValueError(f"metric: expected NAME or NAME[key=value,…], but got {text!r}")
    return find_metric(match[1]), parse_options(_split(match[2] or ""))


def split_metrics(text: str) -> list[str]:
    """A comma-separated list of metrics, each with its own options in brackets.

    >>> split_metrics("wms,moverscore[idf=corpus,layer=5],sms")
    ['wms', 'moverscore[idf=corpus,layer=5]', 'sms']
    """
    return _split(text)


def _split(text: str) -> list[str]:
    """Parts between commas, but not between those inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
