"""Kill commands at random moments, run the same command again, and compare what it writes with an undisturbed run.

    python tools/qa/kills.py [--kills 100] [--seed 0] [--only NAME …]

Every command works on made-up texts with tiny models, in a folder that is emptied before each trial. A trial ends the
command and its children with SIGKILL after a random share of the time that a whole run takes, and runs it again; in
every third trial that run is killed too. Then the files must be those of an undisturbed run, byte for byte (except for
the seconds in records of training), with no other files beside them. Prints a table; the exit status is 1 if any output
differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tiny import TINY_WORDS, tiny_model, tiny_table, tiny_tokenizer, vector_bytes  # type: ignore # noqa: E402

SCORE = "score wms[idf=corpus],sms -p ../predictions.txt -r ../references.txt -m ../vectors.txt --resume"
CORRELATE = "correlate --data ../judged.jsonl --metrics wms[model=../vectors.txt] --resamples 300"
COMMANDS = {
    **{f"score to {kind}": f"{SCORE} -o out/scores.{kind}" for kind in ("jsonl", "jsonl.gz", "csv")},
    "correlate": f"{CORRELATE} -o out/table.csv",
    "train quality": "train quality --data ../documents.jsonl --encoder ../encoder --unit sentences -o out/model",
}


def write_inputs(folder: Path) -> None:
    """Texts, vectors and a model that the commands read."""
    draw = np.random.default_rng(0)

    def sentence(words: int = 8) -> str:
        return " ".join(draw.choice(TINY_WORDS[2:], words)) + "."

    def write(name: str, rows: list[dict[str, object]]) -> None:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    (folder / "vectors.txt").write_bytes(vector_bytes(tiny_table(TINY_WORDS, 16), "glove"))
    for name in ("predictions", "references"):
        (folder / f"{name}.txt").write_text("".join(f"{sentence()} {sentence()}\n" for _ in range(18_000)))
    texts = [(" ".join(sentence() for _ in range(6)), f"{sentence()} {sentence()}") for _ in range(60)]
    write("documents.jsonl", [{"document": document, "summary": summary} for document, summary in texts])
    write("judged.jsonl", [
        {"id": str(row), "candidate": sentence(), "references": [sentence()], "system": f"s{row % 4}",
         "scores": {"overall": float(draw.normal())}} for row in range(200)
    ])  # fmt: skip
    tiny_model(layers=2, positions=64).save_pretrained(folder / "encoder")
    tiny_tokenizer().save_pretrained(folder / "encoder")


def start(command: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "movers", *command.split(), "-q"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MOVERS_CACHE": str(folder.parent / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(command: str, folder: Path) -> float:
    """Run a command to its end; returns the seconds it took."""
    begin = time.perf_counter()
    running = start(command, folder)
    _, errors = running.communicate()
    if running.returncode:
        sys.exit(f"{command}: {errors}")
    return time.perf_counter() - begin


def kill(command: str, folder: Path, seconds: float) -> bool:
    """Run a command and kill it after a time; whether it was still running."""
    running = start(command, folder)
    try:
        running.communicate(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        return True


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    return folder


def written(folder: Path) -> dict[str, str]:
    """Every file with the digest of its content; of working files only the names count."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"):
        content = path.read_bytes()
        if path.suffix == ".json":
            content = json.dumps(without_seconds(json.loads(content))).encode()
        working = "work" in path.relative_to(folder).parts
        files[str(path.relative_to(folder))] = "" if working else hashlib.sha256(content).hexdigest()
    return files


def without_seconds(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def try_command(name: str, command: str, folder: Path, kills: int, draw: random.Random) -> bool:
    """Print a row of the table; whether all outputs were equal."""
    whole = finish(command, emptied(folder))
    expected = written(folder)
    killed = running = trials = equal = 0
    differing: set[str] = set()
    while killed < kills:
        emptied(folder)
        for _ in range(min(1 + (trials % 3 == 2), kills - killed)):
            killed += 1
            running += kill(command, folder, draw.uniform(0, whole))
        if name != "train quality" or written(folder) != expected:  # it does not begin where a run has ended
            finish(command, folder)
        trials += 1
        files = written(folder)
        equal += files == expected
        differing |= {file for file in {*files, *expected} if files.get(file) != expected.get(file)}
    print(f"| `{name}` | {whole:.1f} s | {killed} | {running} | {equal} of {trials} |", *sorted(differing), flush=True)
    return equal == trials


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="over all commands (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    arguments = parser.parse_args()
    print("| command | whole run | kills | while running | equal output |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="movers-kills-") as name:
        write_inputs(Path(name))
        share = -(-arguments.kills // len(arguments.only))
        draw = random.Random(arguments.seed)
        results = [try_command(one, COMMANDS[one], Path(name) / "run", share, draw) for one in arguments.only]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
