"""Two processes that evaluate together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny import ROOT

import movers

pytestmark = pytest.mark.slow
PREDICTIONS = ["Snow melts in spring.", "The bank was not surprised.", "A cat slept."]
OTHERS = ["Ice thaws when it gets warm.", "Nobody at the bank wondered.", "The dog did not sleep."]
ROWS = {"predictions": PREDICTIONS, "references": OTHERS}


# The first process fails once, and both compute again.
TOGETHER = """
import evaluate, json, movers, pathlib, sys, time
rows, folder, process = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
module = evaluate.load(movers.module_path("wms"), num_process=2, process_id=process, experiment_id="two")
share = {key: texts[process::2] for key, texts in rows.items()}
try:
    module.compute(**share, model="/no/such/file" if process == 0 else "wordllama")
except movers.InputError:
    (folder / "failed").touch()
while not (folder / "failed").exists():
    time.sleep(0.02)
module.add_batch(**share)
print(json.dumps(module.compute()))
"""


def test_two_processes_give_one_result_on_the_first(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"PYTHONPATH": str(ROOT), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HOME": str(tmp_path / "huggingface")}
    command = [sys.executable, "-c", TOGETHER, json.dumps(ROWS), str(tmp_path)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen([*command, number], **pipes) for number in "01"]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    first, second = (json.loads(output.splitlines()[-1]) for output, _ in outputs)
    # Rows are gathered process by process, so their order is that of the shares.
    predictions, others = ([texts[i] for i in (0, 2, 1)] for texts in (PREDICTIONS, OTHERS))
    assert first == movers.wms(predictions, others)
    assert second is None
