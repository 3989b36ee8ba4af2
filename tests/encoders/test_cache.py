from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from movers.encoders import cache
from movers.encoders.cache import VectorCache, cache_folder, file_digest, folder_digest, sha256_of


def test_the_cache_folder_is_the_chosen_one_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_CACHE", "/chosen")
    assert cache_folder() == Path("/chosen")
    monkeypatch.delenv("MOVERS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/movers")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "movers"


def test_a_digest_is_computed_once_and_again_after_a_change(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert file_digest(path) == sha256_of(path) == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(cache, "sha256_of", lambda path: pytest.fail("the file was read again"))
        assert file_digest(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")  # as long as before
    os.utime(path, ns=(1, 2))
    assert file_digest(path) == hashlib.sha256(b"two").hexdigest()


def test_damaged_memory_of_a_digest_is_ignored(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    expected = file_digest(path)
    (memory,) = (empty_cache / "digests").iterdir()
    for damaged in ("", "[]", '{"path": 3}', "not json"):
        memory.write_text(damaged)
        assert file_digest(path) == expected


def test_a_folders_digest_follows_names_and_contents_of_matching_files(tmp_path: Path, empty_cache: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"1")
    first = folder_digest(tmp_path, ("*.bin",))
    (tmp_path / "notes.txt").write_text("ignored")
    assert folder_digest(tmp_path, ("*.bin",)) == first
    (tmp_path / "b.bin").write_bytes(b"2")
    assert folder_digest(tmp_path, ("*.bin",)) != first
    assert folder_digest(tmp_path, ("a*", "*.bin", "b.bin")) == folder_digest(tmp_path, ("*.bin",))


def test_the_least_recently_used_value_goes_first() -> None:
    kept = VectorCache(capacity=10)
    kept.put("a", 1, 4)
    kept.put("b", 2, 4)
    assert kept.get("a") == 1
    kept.put("c", 3, 4)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), kept.size, len(kept)) == (1, None, 3, 8, 2)


def test_a_value_that_is_put_again_counts_once_and_one_too_big_is_not_kept() -> None:
    kept = VectorCache(capacity=10)
    kept.put("a", 1, 6)
    kept.put("a", 2, 7)
    kept.put("big", 3, 11)
    assert (kept.get("a"), kept.get("big"), kept.size) == (2, None, 7)
    kept.clear()
    assert (kept.get("a"), kept.size, len(kept)) == (None, 0, 0)


def test_the_default_capacity_is_bounded() -> None:
    assert 0 < VectorCache().capacity <= 1 << 30


def test_a_file_replaced_by_one_of_equal_size_and_time_has_another_digest(tmp_path: Path, empty_cache: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"one")
    first, status = file_digest(path), path.stat()
    other.write_bytes(b"two")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns and path.stat().st_size == status.st_size
    assert file_digest(path) == hashlib.sha256(b"two").hexdigest() != first
    path.write_bytes(b"six")  # in place
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file_digest(path) == hashlib.sha256(b"six").hexdigest()
