"""Build sdist and wheel of a commit twice, compare their bytes, and put them into `dist/`: `make release`.

    python tools/release.py [--ref v0.2.0] [--out dist]

The files come from the commit alone, with its time as the time of all that is written, so that anyone can build the
same bytes again with the versions of build and setuptools in constraints.txt.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def unpack(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(folder, filter="data")


def normalised(archive: bytes, epoch: int) -> bytes:
    """A tar.gz of the same files in the order of their names, without owners and with one time for all."""
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as source, tarfile.open(fileobj=content, mode="w") as target:
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.size, entry.mtime = member.type, member.size, epoch
            entry.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(entry, source.extractfile(member) if member.isfile() else None)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=epoch) as file:
        file.write(content.getvalue())
    return packed.getvalue()


def build(ref: str, folder: Path) -> dict[str, bytes]:
    """The two files of a release by name, built in a folder that is empty so far."""
    epoch = int(git("log", "-1", "--format=%ct", ref))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0", "TZ": "UTC"}

    def run(kind: str, source: Path) -> tuple[str, bytes]:
        target = folder / kind
        command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(target), str(source)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, umask=0o022)
        (archive,) = target.iterdir()
        return archive.name, archive.read_bytes()

    unpack(git("-c", "tar.umask=0022", "archive", ref), folder / "source")
    sdist, raw = run("sdist", folder / "source")
    content = normalised(raw, epoch)
    unpack(content, folder / "unpacked")
    wheel, built = run("wheel", folder / "unpacked" / sdist.removesuffix(".tar.gz"))
    return {sdist: content, wheel: built}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ref", help="what to build (default: the tag of the commit that is checked out)")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to write to (default: dist)")
    options = parser.parse_args(arguments)
    try:
        ref = options.ref or git("describe", "--tags", "--exact-match").decode().strip()
    except subprocess.CalledProcessError:
        sys.exit("release: the commit that is checked out has no tag; name one with --ref")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, second = build(ref, Path(one)), build(ref, Path(other))
    if first != second:
        sys.exit(f"release: two builds of {ref} differ: {[name for name in first if first[name] != second.get(name)]}")
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    for name, content in first.items():
        (options.out / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {options.out / name}")
    print(f"two builds of {ref} are equal, byte for byte")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
