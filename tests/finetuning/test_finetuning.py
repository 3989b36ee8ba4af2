"""Fine-tuning of an encoder: it learns, a killed run ends with the same bytes, bad rows are named, metrics take it."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from test_training_loop import Killed, kills
from tiny import TINY_WORDS, tiny_model, tiny_tokenizer

import movers
from movers.cli import main
from movers.errors import InputError
from movers.finetuning.data import PairData, TextPair, read_pairs, split_off
from movers.finetuning.learners import PairLearner
from movers.finetuning.training import TuningOptions, tune

NLI = ("entailment", "neutral", "contradiction")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny transformer."""
    folder = tmp_path_factory.mktemp("base") / "tiny"
    tiny_model(layers=2).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def scored_pairs(count: int = 40) -> PairData:
    """Half of the pairs are the same words in another order (1.0), half are other words (0.0)."""
    rng, pairs = np.random.default_rng(5), []
    for n in range(count):
        words = rng.permutation(TINY_WORDS)
        other = rng.permutation(words[:4]) if n % 2 else words[4:8]
        pairs.append(TextPair(" ".join(words[:4]), " ".join(other), float(n % 2)))
    return PairData(tuple(pairs), bounds=(0.0, 5.0))


def labelled_pairs(count: int = 45) -> PairData:
    """The label is told by the first word of the hypothesis."""
    rng = np.random.default_rng(6)
    texts = [" ".join(rng.permutation(TINY_WORDS)[:4]) for _ in range(count)]
    pairs = (TextPair(text, f"{('red', 'old', 'big')[n % 3]} {text}", float(n % 3)) for n, text in enumerate(texts))
    return PairData(tuple(pairs), labels=NLI)


def quick(base: str, task: str = "similarity", **further: object) -> TuningOptions:
    chosen = {"task": task, "encoder": base, "epochs": 2, "batch": 8, "rate": 1e-3, "patience": 30, **further}
    return TuningOptions.parse("train encoder", chosen)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("task", ["similarity", "nli"])
def test_the_loss_falls_and_held_out_pairs_are_told_apart(task: str, base: str, tmp_path: Path) -> None:
    data = scored_pairs(120) if task == "similarity" else labelled_pairs(120)
    record = tune(data, tmp_path / "m", quick(base, task, epochs=15, rate=5e-3, schedule="constant"))
    losses = [entry["training_loss"] for entry in record["curve"]]
    assert losses[-1] < 0.7 * losses[0]
    if task == "nli":
        assert max(entry["validation_accuracy"] for entry in record["curve"]) > 0.6  # one third by chance
    else:
        assert max(entry["validation_pearson"] for entry in record["curve"]) > 0.6


def test_a_run_killed_at_any_write_ends_with_the_same_bytes(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = quick(base, "nli", steps=3)
    tune(labelled_pairs(), tmp_path / "whole", options)
    for number, _ in enumerate(kills(monkeypatch)):
        folder = tmp_path / str(number)
        with suppress(Killed):
            tune(labelled_pairs(), folder, options)
        monkeypatch.undo()
        record = tune(labelled_pairs(), folder, options)
        assert weights(folder) == weights(tmp_path / "whole")
        assert [entry["epoch"] for entry in record["curve"]] == [0, 1]


def test_a_run_killed_while_it_is_saved_is_no_encoder_until_it_is_finished(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import PreTrainedTokenizerFast

    options = quick(base)
    tune(scored_pairs(), tmp_path / "whole", options)

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(PreTrainedTokenizerFast, "save_pretrained", die)
    with pytest.raises(Killed):
        tune(scored_pairs(), tmp_path / "run", options)
    monkeypatch.undo()
    with pytest.raises(ValueError):
        movers.load_encoder(str(tmp_path / "run"))
    tune(scored_pairs(), tmp_path / "run", options)
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_metrics_take_the_folder_and_the_encoder_it_came_from_stays_as_it_was(base: str, tmp_path: Path) -> None:
    texts = ["the cat sat on the mat", "a man sells snow"], ["the dog sat on it", "snow is red"]
    before = movers.moverscore(*texts, model=base)
    tune(scored_pairs(), tmp_path / "tuned", quick(base))
    after = movers.moverscore(*texts, model=str(tmp_path / "tuned"))
    assert movers.moverscore(*texts, model=base) == before
    assert after["scores"] != before["scores"] and "|emb:tuned@" in after["signature"]
    assert movers.wms(*texts, model=str(tmp_path / "tuned"))["scores"] != movers.wms(*texts, model=base)["scores"]


def test_the_folder_holds_no_pickle_and_says_what_was_done(base: str, tmp_path: Path) -> None:
    tune(labelled_pairs(), tmp_path / "m", quick(base, "nli"), sources=[{"name": "made up"}])
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert {"README.md", "config.json", "model.safetensors", "record.json", "tokenizer.json", "work"} <= names
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in names)
    assert not (tmp_path / "m" / "work" / "saved").exists()
    record = json.loads((tmp_path / "m" / "record.json").read_text())
    assert record["labels"] == list(NLI) and record["options"]["seed"] == 0 and record["base"].startswith("tiny@")
    assert record["data"]["train"] + record["data"]["validation"] == 45
    assert record["data"]["sources"] == [{"name": "made up"}]
    assert "--task nli" in (tmp_path / "m" / "README.md").read_text()


def test_another_seed_gives_other_weights_and_another_run_is_not_mixed_in(base: str, tmp_path: Path) -> None:
    tune(scored_pairs(), tmp_path / "a", quick(base))
    tune(scored_pairs(), tmp_path / "b", quick(base, seed=1))
    assert weights(tmp_path / "a") != weights(tmp_path / "b")
    with pytest.raises(InputError, match="train encoder: output: .* has a run with other seed"):
        tune(scored_pairs(), tmp_path / "a", quick(base, seed=1))
    with pytest.raises(InputError, match="other data"):
        tune(scored_pairs(30), tmp_path / "a", quick(base))


@pytest.mark.parametrize("task", ["similarity", "nli"])
def test_the_loss_is_that_of_sentence_bert(task: str, base: str) -> None:
    """Against the formulas of the paper in plain NumPy, on vectors that the metrics' own encoder gives."""
    data = scored_pairs(12) if task == "similarity" else labelled_pairs(12)
    torch.manual_seed(0)
    learner = PairLearner(quick(base, task), data.pairs, data.pairs, len(data.labels), "cpu")
    batch = data.pairs[:6]
    learner.module.eval()
    found = float(learner.loss(batch).detach())
    encoder = movers.load_encoder(base)
    u, v = (np.stack([_mean_of_last(encoder, pair[place]) for pair in batch]).astype(np.float64) for place in (0, 1))
    targets = np.array([pair.target for pair in batch])
    if task == "similarity":
        cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
        expected = np.mean((cosines - targets) ** 2)
    else:
        assert learner.module.classifier is not None
        head = learner.module.classifier.weight.detach().numpy(), learner.module.classifier.bias.detach().numpy()
        logits = np.hstack([u, v, abs(u - v)]) @ head[0].T + head[1]
        logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = -np.mean(logs[np.arange(6), targets.astype(int)])
    assert found == pytest.approx(expected, rel=1e-5)


def _mean_of_last(encoder: object, text: str) -> np.ndarray:
    from movers.encoders.layers import Aggregation

    ((_, encoded),) = encoder.encode([text], Aggregation("last"))  # type: ignore[attr-defined]
    return encoded.vectors.mean(axis=0)


def test_epochs_of_steps_go_through_all_pairs_in_turn(base: str) -> None:
    data = scored_pairs(40)
    learner = PairLearner(quick(base, steps=2), data.pairs, data.pairs, 0, "cpu")
    seen = [pair for epoch in range(5) for batch in learner.batches(epoch) for pair in batch]  # 10 steps: two passes
    assert sorted(seen) == sorted([*data.pairs, *data.pairs])
    assert sorted(seen[:40]) == sorted(data.pairs) and seen[:40] != seen[40:]


def test_long_texts_are_cut_to_the_window_and_counted(base: str) -> None:
    pairs = [TextPair("cat " * 20 + "dog", f"dog {word}", 0.5) for word in TINY_WORDS]
    learner = PairLearner(quick(base, window=8), pairs, pairs, 0, "cpu")
    tokenizer = tiny_tokenizer()
    assert learner.cut == 1
    assert tokenizer.decode(learner._ids[pairs[0].first]) == "[CLS] cat cat cat cat cat cat [SEP]"


def test_pairs_with_the_same_premise_are_on_one_side() -> None:
    pairs = [TextPair(f"premise {n // 3}", f"hypothesis {n}", 0.0) for n in range(60)]
    train, held = split_off(pairs, 0.1, seed=3)
    assert sorted([*train, *held]) == sorted(pairs) and len(held) == 6
    assert not {pair.first for pair in train} & {pair.first for pair in held}
    with pytest.raises(InputError, match="expected different first texts"):
        split_off([TextPair("one", "two", 0.0)] * 12, 0.1, seed=0)


# --- files ------------------------------------------------------------------------------------------------------------


def rows_of(kind: str, count: int = 12) -> list[dict[str, object]]:
    if kind == "nli":
        return [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": NLI[n % 3]} for n in range(count)]
    return [{"sentence1": f"a{n}", "sentence2": f"b{n}", "score": n % 6} for n in range(count)]


def written(path: Path, rows: list[dict[str, object]]) -> str:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return str(path)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_every_kind_of_file_gives_the_same_pairs(suffix: str, tmp_path: Path) -> None:
    scored = read_pairs([written(tmp_path / f"s{suffix}", rows_of("similarity"))], "similarity")
    assert scored.pairs[4] == TextPair("a4", "b4", 0.8) and scored.bounds == (0, 5)
    labelled = read_pairs([written(tmp_path / f"n{suffix}", rows_of("nli"))], "nli")
    assert labelled.pairs[4] == TextPair("p4", "h4", 1) and labelled.labels == NLI


def test_labels_may_be_the_hubs_numbers_and_pairs_without_majority_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [{**row, "label": n % 3} for n, row in enumerate(rows_of("nli", 15))]
    rows[5]["label"] = -1
    data = read_pairs([written(tmp_path / "hub.jsonl", rows)], "nli")
    assert data.labels == ("0", "1", "2") and data.unlabelled == 1 and len(data.pairs) == 14
    two = [{**row, "label": ("not_entailment", "entailment")[n % 2]} for n, row in enumerate(rows_of("nli"))]
    assert read_pairs([written(tmp_path / "two.jsonl", two)], "nli").labels == ("entailment", "not_entailment")


def test_columns_labels_and_bounds_can_be_named(tmp_path: Path) -> None:
    rows = [{"x": f"a{n}", "y": f"b{n}", "z": ("yes", "no")[n % 2]} for n in range(12)]
    columns = {"first": "x", "second": "y", "target": "z"}
    data = read_pairs([written(tmp_path / "own.csv", rows)], "nli", columns=columns, labels=["no", "yes"])
    assert data.labels == ("no", "yes") and data.pairs[0] == TextPair("a0", "b0", 1)
    scored = read_pairs([written(tmp_path / "s.csv", rows_of("similarity"))], "similarity", bounds=(-5.0, 5.0))
    assert scored.pairs[0].target == 0.5


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("nli", {"label": "entailmnt"}, "line 4: expected a label among entailment, neutral, contradiction, but got"),
        ("nli", {"label": None}, "line 4: expected a label among"),
        ("nli", {"label": 0}, "line 4: expected a label among entailment, neutral, contradiction, but got 0"),
        ("nli", {"hypothesis": " "}, "line 4: expected two texts, but one is blank"),
        ("nli", {"premise": 7}, r"line 4\]: expected a text \(str\), but got int"),
        ("similarity", {"score": "high"}, "line 4: expected a number as score, but got 'high'"),
        ("similarity", {"score": float("nan")}, "line 4: expected a number as score, but got nan"),
        ("similarity", {"score": True}, "line 4: expected a number as score, but got True"),
        ("similarity", {"score": 5.5}, "line 4: expected a score from 0.0 to 5.0, but got 5.5"),
    ],
)
def test_a_bad_row_is_an_error_with_file_and_row(
    task: str, change: dict[str, object], message: str, tmp_path: Path
) -> None:
    rows = rows_of(task)
    rows[3] |= change
    path = written(tmp_path / "pairs.jsonl", rows)
    with pytest.raises(InputError, match=rf"(?s)train encoder: data.*pairs\.jsonl.*{message}"):
        read_pairs([path], task, bounds=(0.0, 5.0) if task == "similarity" else (None, None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"premise": "a", "label": "neutral"}] * 12, "expected --second-column to name a column"),
        (rows_of("nli", 9), "expected at least 10 pairs, but got 9"),
        ([{**row, "label": "neutral"} for row in rows_of("nli")], "expected at least two labels"),
    ],
)
def test_files_that_cannot_train_are_refused(rows: list[dict[str, object]], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs([written(tmp_path / "pairs.jsonl", rows)], "nli")


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_trains_on_files_and_validates_on_others(
    base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path / "train.csv", rows_of("similarity", 20))
    held = written(tmp_path / "dev.jsonl", rows_of("similarity", 10))
    command = ["train", "encoder", "--task", "similarity", "--data", data, "--validation", held, "--encoder", base]
    assert main([*command, "-o", str(tmp_path / "m"), "--epochs", "1", "--held-out", "0.2", "-q"]) == 0
    assert "best epoch 0 of 1\n  validation loss: " in capsys.readouterr().out
    record = json.loads((tmp_path / "m" / "record.json").read_text())
    assert (record["data"]["train"], record["data"]["validation"]) == (20, 10)
    assert record["data"]["sources"] == [{"name": "train.csv"}]  # no path


def test_the_command_takes_every_hyperparameter_and_checks_it_before_data_are_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["train", "encoder", "--help"])
    shown = capsys.readouterr().out
    for item in fields(TuningOptions):
        assert f"--{item.name.replace('_', '-')} " in shown
    for given, message in (
        (["--epochs", "0"], "epochs: expected a whole number above zero, but got 0"),
        (["--held-out", "0.9"], "held_out: expected a number above 0 and up to 0.5, but got 0.9"),
        (["--epochs", "1"], "none.jsonl: no such file"),
    ):
        assert main(["train", "encoder", "--data", "none.jsonl", "-o", "none", *given]) != 0
        assert message in capsys.readouterr().err


def test_a_static_encoder_cannot_be_fine_tuned(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train encoder: encoder: expected a transformer, but wordllama-256@"):
        tune(scored_pairs(), tmp_path / "m", quick("wordllama"))
