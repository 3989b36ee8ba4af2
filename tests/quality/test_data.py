"""Reading and splitting of training data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from movers.errors import InputError
from movers.quality.data import Pair, read_pairs, split_rows
from movers.quality.training import TrainingOptions, make_sides


def write(path: Path, row: dict[str, object]) -> str:
    path.write_text(json.dumps(row))
    return str(path)


def test_columns_are_found_by_their_usual_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"article": "Long.", "highlights": "Short.", "id": 1})
    assert read_pairs(path) == [Pair("Long.", "Short.")]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"body": "A", "summary": "a"})
    with pytest.raises(
        InputError, match="expected one of the columns source, .* for the source, but got body, summary"
    ):
        read_pairs(path)
    assert read_pairs(path, source_column="body")[0].document == "A"


def test_no_document_and_no_summary_is_on_two_sides() -> None:
    pairs = [Pair(f"d{n % 150}", f"s{n if n % 7 else 0}") for n in range(300)]
    sides = split_rows(pairs, seed=1)
    assert sorted(row for rows in sides.values() for row in rows) == list(range(300))
    for what in ("document", "summary"):
        seen = [{getattr(pairs[row], what) for row in rows} for rows in sides.values()]
        assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])


def test_the_split_is_eighty_ten_ten_and_depends_on_the_seed() -> None:
    pairs = [Pair(f"d{n}", f"s{n}") for n in range(200)]
    assert [len(rows) for rows in split_rows(pairs).values()] == [160, 20, 20]
    assert split_rows(pairs, seed=1) == split_rows(pairs, seed=1)
    assert split_rows(pairs, seed=1) != split_rows(pairs, seed=2)


def test_samples_borrow_nothing_from_another_side() -> None:
    # every word of a row carries the row's number, so that a borrowed word tells where it came from
    data = [Pair(f"Doc{n} says{n} thing{n} here{n}.", f"Sum{n} one{n}. Sum{n} two{n}.") for n in range(60)]
    sides = split_rows(data)
    for name, maker in make_sides(data, TrainingOptions(encoder="wordllama", fakes=12)).items():
        # random words may come from the training side's vocabulary: that is where a model may learn them
        allowed = set(sides[name]) | set(sides["train"])
        for sample in maker:
            numbers = {int(number) for number in re.findall(r"\d+", sample.summary)}
            assert numbers <= (allowed if sample.kind in ("add", "replace") else set(sides[name]))
