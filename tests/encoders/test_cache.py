from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from movers.encoders.cache import VectorCache, build_once, file_digest
from movers.errors import InputError


def test_a_replaced_or_rewritten_file_has_another_digest_even_at_equal_size_and_time(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"one")
    assert file_digest(path) == hashlib.sha256(b"one").hexdigest()
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    other.write_bytes(b"two")
    os.utime(other, ns=times)
    other.replace(path)
    assert file_digest(path) == hashlib.sha256(b"two").hexdigest()
    path.write_bytes(b"six")
    os.utime(path, ns=times)
    assert file_digest(path) == hashlib.sha256(b"six").hexdigest()


def test_an_interrupted_build_leaves_nothing_and_a_killed_one_is_cleared_away(empty_cache: Path) -> None:
    def interrupted(building: Path) -> Path:
        (building / "half").write_text("")
        raise KeyboardInterrupt

    def build(building: Path) -> Path:
        (building / "whole").write_text("content")
        return building

    with pytest.raises(KeyboardInterrupt):
        build_once("thing", interrupted)
    assert not list(empty_cache.glob("thing*"))
    (empty_cache / "thing.building").mkdir()
    (empty_cache / "thing.building" / "half").write_text("")
    folder = build_once("thing", build)
    assert [path.name for path in folder.iterdir()] == ["whole"]
    assert list(empty_cache.glob("thing*")) == [folder]


def test_a_cache_that_cannot_be_written_names_the_variable_that_moves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(building: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("MOVERS_CACHE", str(tmp_path / "full"))
    with pytest.raises(InputError, match=r"cannot write to .*full \(No space left on device\): set MOVERS_CACHE"):
        build_once("thing", full)


def test_vectors_are_bounded_in_bytes_and_the_least_recently_used_go_first() -> None:
    cache = VectorCache(capacity=10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    assert cache.get("a") == 1
    cache.put("c", 3, 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), cache.size) == (1, None, 3, 8)
    cache.put("a", 4, 6)  # counts once
    cache.put("big", 5, 11)
    assert (cache.get("a"), cache.get("big"), cache.size) == (4, None, 10)
    cache.clear()
    assert (cache.get("a"), cache.size) == (None, 0)
