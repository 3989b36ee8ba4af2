"""Files written in blocks: complete blocks stay, whatever happens, and nothing else does."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT

from movers.errors import InputError
from movers.io import compress_block, open_blocks

HEAD = {"run": "one"}


class Stop(Exception):
    """The run ends."""


def write(path: Path, *blocks: bytes) -> None:
    """Append blocks, then stop."""
    with pytest.raises(Stop), open_blocks(path, resume=True) as file:
        file.begin(HEAD)
        for number, block in enumerate(blocks):
            file.append(block, [{"number": number}])
        raise Stop


def kept(path: Path) -> tuple[list[bytes], object]:
    with open_blocks(path, resume=True) as file:
        return list(file), file.state


def test_blocks_of_any_bytes_are_kept_in_order_and_become_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first, second = bytes(range(256)) * 9, b'\n{"bytes": 3}\n'
    write(path, first)
    write(path, second, b"")
    assert kept(path) == ([first, second, b""], [{"number": 1}])
    with open_blocks(path, resume=True) as file:
        assert file.begin(HEAD) == [{"number": 1}]
        with file.finish() as whole:
            whole.writelines(file)
    assert path.read_bytes() == first + second
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("damage", ["flipped", "cut", "lines", "zeros"])
def test_only_what_is_complete_counts(tmp_path: Path, damage: str) -> None:
    path, partial = tmp_path / "t", tmp_path / "t.partial"
    write(path, b"one" * 50, b"two" * 50)
    data = partial.read_bytes()
    partial.write_bytes(
        {
            "flipped": data[:-1] + bytes([data[-1] ^ 1]),
            "cut": data[:-1],
            "lines": data[: data.rindex(b'{"bytes"')] + b"[1, 2]\nabc",
            "zeros": data[: data.rindex(b'{"bytes"')] + bytes(300),
        }[damage]
    )
    assert kept(path) == ([b"one" * 50], [{"number": 0}])
    write(path, b"2")
    assert kept(path)[0] == [b"one" * 50, b"2"]


def test_a_run_that_stops_before_its_first_block_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_a_link_has_its_partial_file_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "t")
    write(tmp_path / "link", b"one")
    assert (tmp_path / "folder" / "t.partial").exists()
    assert kept(tmp_path / "folder" / "t")[0] == [b"one"]


def test_whoever_waits_for_a_file_that_is_removed_gets_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, partial = tmp_path / "t", tmp_path / "t.partial"
    opened, real = [], os.open

    def open_late(name: object, *more: object) -> int:
        descriptor = real(name, *more)  # type: ignore[arg-type]
        if name == partial:
            opened.append(descriptor)
            if len(opened) == 1:
                partial.unlink()  # by a run that finishes just now
        return descriptor

    monkeypatch.setattr("movers.io.blocks.os.open", open_late)
    write(path, b"one")
    assert len(opened) == 2 and kept(path)[0] == [b"one"]


def test_the_children_of_a_killed_run_do_not_keep_its_file_locked(tmp_path: Path) -> None:
    path = tmp_path / "t"
    code = f"""if True:
        import os, signal, time
        from movers.io import open_blocks
        with open_blocks({str(path)!r}) as file:
            file.begin({HEAD})
            file.append(b"one", [{{"number": 0}}])
            child = os.fork()
            if not child:
                os.close(1)
                time.sleep(60)
                os._exit(0)
            time.sleep(0.5)
            print(child, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert done.returncode == -signal.SIGKILL
        assert kept(path) == ([b"one"], [{"number": 0}])
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def test_members_make_one_gzip_file() -> None:
    assert gzip.decompress(compress_block(b"one") + compress_block(b"two")) == b"onetwo"
    assert compress_block(b"one")[4:8] == bytes(4)


def test_a_head_names_what_differs(tmp_path: Path) -> None:
    write(tmp_path / "t", b"one")
    with (
        pytest.raises(InputError, match="cannot resume this run: expected run: one, but got two; repeat"),
        open_blocks(tmp_path / "t", resume=True) as file,
    ):
        file.begin({"run": "two"})
    line = (tmp_path / "t.partial").read_bytes().splitlines()[0]
    assert json.loads(line) == {"format": "movers-partial-1", **HEAD}


def test_a_full_disk_keeps_what_was_complete(small_disk: Path) -> None:
    path = small_disk / "t"
    with (
        pytest.raises(InputError, match=r"t\.partial: cannot write it: No space left on device"),
        open_blocks(path) as file,
    ):
        file.begin(HEAD)
        file.append(b"one", [{"number": 0}])
        file.append(bytes(100_000), [{"number": 1}])
    assert kept(path) == ([b"one"], [{"number": 0}])
