"""Somebody who loads every metric from the Hub: `python _hub_user.py job.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(job_path: str) -> None:
    import evaluate

    job = json.loads(Path(job_path).read_text())
    results = {name: evaluate.load(f"{job['org']}/{name}").compute(**rows) for name, rows in job["rows"].items()}
    Path(job_path).with_name("results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
