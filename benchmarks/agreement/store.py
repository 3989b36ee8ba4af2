"""Scores on disk, so that an interrupted run loses no block."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from movers.agreement.scoring import MetricCall
from movers.version import VERSION


class ScoreStore:
    """Scores on disk, one file for each metric on each set, to which every scored block is appended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, data: str, key: Sequence[object], call: MetricCall) -> Path:
        """The file for a metric with these options on a set that ``key`` identifies."""
        told = json.dumps([*key, call.name, dict(call.options), call.output, VERSION], sort_keys=True)
        return self.folder / data / f"{call.name}-{hashlib.sha256(told.encode('utf-8')).hexdigest()[:12]}.jsonl"

    def read(self, path: Path) -> tuple[dict[int, float], str]:
        """Scores by row, and the signature, of what has been scored so far."""
        known: dict[int, float] = {}
        signature = ""
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    block = json.loads(line)
                except json.JSONDecodeError:
                    continue  # Half a line of a run that was killed while writing: its block is scored again.
                known |= {int(row): score for row, score in block["scores"].items()}
                signature = block["signature"]
        return known, signature

    def append(self, path: Path, scores: Mapping[int, float], signature: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # A run that was killed left half a line: it must not swallow this one.
            file.write(json.dumps({"signature": signature, "scores": scores}).encode() + b"\n")
