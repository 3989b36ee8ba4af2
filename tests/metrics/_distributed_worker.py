"""One of two processes that evaluate together: `python _distributed_worker.py job.json process_id`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def fail(**_: Any) -> None:
    raise MemoryError("no room for the model")


def main(job_path: str, process_id: int) -> None:
    import evaluate

    import movers

    job = json.loads(Path(job_path).read_text())
    results: dict[str, Any] = {}
    for name, rows in job["rows"].items():
        module = evaluate.load(
            movers.module_path(name), num_process=2, process_id=process_id, experiment_id=job["experiment"]
        )
        share = {key: texts[process_id::2] for key, texts in rows.items()}
        over = Path(job_path).with_name(f"{name}.failed")
        if process_id == 0:
            module._compute = fail
            try:
                module.compute(**share)
            except MemoryError:
                del module._compute
                over.touch()
        else:
            module.compute(**share)
            while not over.exists():
                time.sleep(0.02)
        module.add_batch(**share)
        results[name] = module.compute()
    Path(job_path).with_name(f"result{process_id}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
