from __future__ import annotations

import hashlib

from movers.signature import short_digest, signature
from movers.version import VERSION


def test_fields_stand_in_the_order_given_between_metric_and_version() -> None:
    assert signature("sms", {"b": 1, "a": "x"}) == f"sms|b:1|a:x|v:{VERSION}"


def test_values_are_written_plainly() -> None:
    assert signature("m", {"n": None, "t": True, "f": False, "d": 2.5}) == f"m|n:none|t:yes|f:no|d:2.5|v:{VERSION}"


def test_a_value_cannot_forge_a_field() -> None:
    line = signature("m", {"emb": "name|weights:idf"})
    assert line.count("|") == 2


def test_a_digest_is_the_beginning_of_sha256_of_utf8() -> None:
    assert short_digest("Größe") == hashlib.sha256("Größe".encode()).hexdigest()[:8]
    assert short_digest(b"\x00\xff") == hashlib.sha256(b"\x00\xff").hexdigest()[:8]


def test_a_lone_surrogate_has_a_digest() -> None:
    assert short_digest("\ud800") != short_digest("\ud801")
