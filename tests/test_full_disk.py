"""Every writer on a disk of 2 MB: the error names the file, the old file is whole, nothing is left, and later it works.

The disk is filled up to a number of KiB, so that a writer runs out of it at different moments.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import TINY_WORDS, tiny_model, tiny_table, tiny_tokenizer, vector_bytes

import movers
from movers.agreement.readers import read_file, write_judged
from movers.cli import main
from movers.errors import InputError
from movers.finetuning.data import PairData, TextPair
from movers.finetuning.training import TuningOptions, tune
from movers.quality.data import Pair
from movers.quality.training import TrainingOptions, train
from movers.rewards.training import RewardOptions, train_reward
from movers.weights import IdfTable

FULL = "No space left on device"


def fill(disk: Path, room: int) -> Path:
    """Leave so many KiB free."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    state = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, state.f_bavail * state.f_frsize - (room << 10))))
    return filler


def names(disk: Path) -> set[str]:
    return {path.relative_to(disk).as_posix() for path in disk.rglob("*") if path.is_file()} - {"filler"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to read, on a disk with room."""
    folder = tmp_path_factory.mktemp("texts")
    words = [" ".join(TINY_WORDS[n % 16 : n % 16 + 4]) for n in range(4000)]
    for name in ("p.txt", "r.txt"):
        (folder / name).write_text("\n".join(words if name == "p.txt" else words[::-1]) + "\n")
    rows = [{"candidate": words[n], "references": [words[-n]], "scores": {"overall": n % 7}} for n in range(400)]
    (folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "v.txt").write_bytes(vector_bytes(tiny_table([*TINY_WORDS, *map(str, range(20_000))]), "glove"))
    return folder


def command(*arguments: str) -> Callable[[Path, Path], None]:
    """A command that writes to the disk; its message becomes the error that it was."""

    def run(texts: Path, disk: Path) -> None:
        places = {"DISK": str(disk), "TEXTS": str(texts)}
        given = [argument.format(**places) for argument in arguments]
        os.environ["MOVERS_DEBUG"] = "1"  # raises the error instead of printing it
        try:
            main(given)
        finally:
            del os.environ["MOVERS_DEBUG"]

    return run


BOTH = ("-p", "{TEXTS}/p.txt", "-r", "{TEXTS}/r.txt")
PAIR = ("--prediction", "the cat sat " * 30, "--reference", "the dog runs " * 30)
WRITERS: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "score .csv": ("t.csv", command("score", "wms", *BOTH, "-o", "{DISK}/t.csv")),
    "score .jsonl.gz": ("t.jsonl.gz", command("score", "wms", *BOTH, "--alignment", "-o", "{DISK}/t.jsonl.gz")),
    "correlate": ("t.json", command("correlate", "--data", "{TEXTS}/judged.jsonl", "--metrics", "wms,sms,swms",
                                    "--resamples", "5", "-o", "{DISK}/t.json")),
    "correlate --plots": ("correlation.png", command("correlate", "--data", "{TEXTS}/judged.jsonl", "--metrics", "wms",
                                                  "--resamples", "5", "--plots", "{DISK}")),
    "compare": ("t.md", command("compare", "{TEXTS}/p.txt", "{TEXTS}/r.txt", "-r", "{TEXTS}/r.txt",
                                "--resamples", "5", "--exchanges", "5", "-o", "{DISK}/t.md")),
    "explain .html": ("t.html", command("explain", "wms", *PAIR, "-o", "{DISK}/t.html")),
    "explain .svg": ("t.svg", command("explain", "wms", *PAIR, "-o", "{DISK}/t.svg")),
    "explain .png": ("t.png", command("explain", "wms", *PAIR, "-o", "{DISK}/t.png")),
    "baseline": ("t.json", command("baseline", "--metric", "wms", "--corpus", "{TEXTS}/p.txt", "--pairs", "5",
                                   "-o", "{DISK}/t.json")),
    "IdfTable.save": ("t.json", lambda texts, disk: IdfTable(
        {f"word{n}": 1 for n in range(900)}, 900, "words").save(disk / "t.json")),
    "write_judged": ("t.jsonl", lambda texts, disk: write_judged(read_file(texts / "judged.jsonl"), disk / "t.jsonl")),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_on_a_full_disk(disk: Path, texts: Path, writer: str) -> None:
    name, write = WRITERS[writer]
    (disk / name).write_text("old")
    filler = fill(disk, room=0)
    with pytest.raises(InputError, match=rf"{name}(\.partial)?: cannot write it: {FULL}"):
        write(texts, disk)
    assert (disk / name).read_text() == "old" and names(disk) == {name}
    filler.unlink()
    write(texts, disk)
    assert (disk / name).read_bytes()[:3] != b"old"


# --- folders ---------------------------------------------------------------------------------------------------------


def documents() -> list[Pair]:
    """Thirty documents of two sentences with their summaries."""
    return [Pair(f"The cat sat on mat {n}. It is {n % 7} old.", f"A cat, {n % 7} old, sat on {n}.") for n in range(30)]


def train_quality(base: Path, output: Path) -> None:
    train(documents(), output, TrainingOptions(encoder=str(base / "encoder"), head="fc", epochs=2))


def train_cross(base: Path, output: Path) -> None:
    train(documents(), output, TrainingOptions(encoder=str(base / "encoder"), unit="cross", epochs=1))


def train_encoder(base: Path, output: Path) -> None:
    pairs = tuple(TextPair(f"the cat {n}", f"a dog {n}", float(n % 2)) for n in range(20))
    options = TuningOptions(task="similarity", encoder=str(base / "encoder"), epochs=2)
    tune(PairData(pairs, bounds=(0.0, 1.0)), output, options)


def train_generator(base: Path, output: Path) -> None:
    options = RewardOptions(reward="rouge", epochs=1, mle_epochs=1, new_tokens=4)
    train_reward(documents(), base / "generator", output, options)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models to start from."""
    import transformers

    folder = tmp_path_factory.mktemp("base")
    tiny_model(layers=1).save_pretrained(folder / "encoder")
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]", "eos_token": "[SEP]"})
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 400, "vocab_size": len(tokenizer)}
    config = transformers.GPT2Config(bos_token_id=1, eos_token_id=2, pad_token_id=0, **sizes)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "generator")
    for name in ("encoder", "generator"):
        tokenizer.save_pretrained(folder / name)
    return folder


@pytest.mark.parametrize("run", [train_quality, train_cross, train_encoder, train_generator])
def test_a_run_of_training_on_a_full_disk(disk: Path, base: Path, tmp_path: Path, run: Callable[..., None]) -> None:
    run(base, tmp_path / "whole")
    refused = 0
    for room in (0, 8, 40, 100, 200, 640):
        fill(disk, room)
        try:
            run(base, disk / "model")
        except InputError as error:
            refused += 1
            assert f"{disk}/model" in str(error) and FULL in str(error)
            assert not (disk / "model" / "model.safetensors").exists()  # a whole model or none
            assert not {name for name in names(disk) if ".tmp" in name or "/saved/" in name}
        else:
            break
    assert refused > 2
    for name in {path.name for path in (tmp_path / "whole").iterdir()} - {"work"}:
        if name.endswith((".safetensors", ".md", "config.json", "tokenizer.json")):
            assert (disk / "model" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_word_vectors_in_a_cache_on_a_full_disk(disk: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_CACHE", str(disk / "cache"))
    for room in (0, 16, 150, 330, 480, 640, 900):
        fill(disk, room)
        try:
            movers.load_encoder(str(texts / "v.txt"))
        except InputError as error:
            assert room < 900 and str(error).startswith(f"cache: cannot write to {disk}/cache")
            assert FULL in str(error) and "MOVERS_CACHE" in str(error)
            assert not {name for name in names(disk) if "vectors/" in name}
        else:
            break
    assert room > 150 and movers.load_encoder(str(texts / "v.txt")).dimension == 4
