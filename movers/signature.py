"""Signatures in the manner of sacreBLEU: one line that says how a score was computed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from movers.version import VERSION


def short_digest(text: str) -> str:
    """First sixteen hexadecimal digits of the SHA-256 of a text; eight would collide within a second of search."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def signature(metric: str, fields: Mapping[str, object]) -> str:
    """`metric|key:value|…|v:version`, with None written as `none` and booleans as `yes` and `no`."""
    return "|".join([metric, *(f"{key}:{_plain(value)}" for key, value in fields.items()), f"v:{VERSION}"])


def read_signature(line: str) -> dict[str, str]:
    """Parse a signature into its fields; the name of the metric is under `metric`.

    >>> read_signature("wms|emb:wordllama-256@64b47a2dc493cb8e|v:0.1.0")
    {'metric': 'wms', 'emb': 'wordllama-256@64b47a2dc493cb8e', 'v': '0.1.0'}
    """
    metric, *fields = line.split("|")
    return {"metric": metric, **dict(field.split(":", 1) for field in fields)}


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("|", "_")
