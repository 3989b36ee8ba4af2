"""Vectors on disk: computed once, found again, and never taken for vectors of another kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from movers.errors import InputError
from movers.quality.store import StoreKind, VectorStore
from movers.quality.units import UnitVectors, encode_texts, split_units

KIND = StoreKind("enc@1", 3, "sentences", "en", tokens=True, window=256)
UNIT, TOKENS = np.eye(3, dtype=np.float32)[0], np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoder", "enc@2"), ("unit", "words"), ("lang", "de"), ("tokens", False), ("window", 128), ("format", 1)],
)
def test_vectors_of_another_kind_are_refused(name: str, value: object, tmp_path: Path) -> None:
    VectorStore(tmp_path, KIND).add([("a", UnitVectors(UNIT, TOKENS))])
    other = replace(KIND, **{name: value})
    with pytest.raises(InputError, match=f"expected vectors with {name} {value!r}, but got {name} "):
        VectorStore(tmp_path, other)
    assert other.folder_name != KIND.folder_name
    assert "a" in VectorStore(tmp_path, KIND)


def test_a_file_that_does_not_say_what_it_holds_is_refused(tmp_path: Path) -> None:
    import pyarrow

    table = pyarrow.table({"key": [b"0" * 16], "vector": [[1.0, 0.0, 0.0]], "tokens": [[1.0]]})
    with pyarrow.OSFile(str(tmp_path / "part-0.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    with pytest.raises(InputError, match="part-0.arrow: expected vectors with .*encoder 'enc@1'.* encoder None"):
        VectorStore(tmp_path, KIND)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    VectorStore(tmp_path, KIND).add([("a", UnitVectors(UNIT, TOKENS))])
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=f"{path.name}: expected an Arrow file of vectors"):
        VectorStore(tmp_path, KIND)


def test_vectors_are_computed_once_and_found_again(
    tmp_path: Path, minilm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = StoreKind(minilm.identity, 384, "sentences", "en", True, minilm.sentence_window)
    VectorStore(tmp_path, kind).fill(["Rain fell.", "It stopped."], minilm, progress=False)
    monkeypatch.setattr(type(minilm), "encode", lambda *_, **__: pytest.fail("encoded again"))
    again = VectorStore(tmp_path, kind)
    again.fill(["It stopped.", "Rain fell."], minilm, progress=False)
    expected = minilm.sentence_vectors(["Rain fell."])[0]
    assert again.get("Rain fell.").vector == pytest.approx(expected, abs=1e-3)


def test_stored_texts_are_fresh_texts_in_half_precision(tmp_path: Path, minilm: Any) -> None:
    texts = ["Rain fell on the town. It stopped at noon.", "The river rose."]
    kind = StoreKind(minilm.identity, 384, "sentences", "en", True, minilm.sentence_window)
    store = VectorStore(tmp_path, kind)
    store.fill([unit for text in texts for unit in split_units(text, "sentences")], minilm, part=2, progress=False)
    assert len(list(tmp_path.iterdir())) == 2
    for index, fresh in encode_texts(texts, minilm, "sentences"):
        stored = store.text(split_units(texts[index], "sentences"))
        assert stored.units == fresh.units and np.array_equal(stored.owners, fresh.owners)
        assert stored.vectors == pytest.approx(fresh.vectors, abs=1e-3)
        assert stored.tokens.astype(np.float32) == pytest.approx(fresh.tokens, abs=1e-3)


def test_units_without_tokens_survive_the_store(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, KIND)
    store.add([("a", UnitVectors(UNIT, np.zeros((0, 3), np.float32))), ("b", UnitVectors(UNIT, TOKENS))])
    text = VectorStore(tmp_path, KIND).text(["a", "b", "a"])
    assert text.vectors.shape == (3, 3) and text.owners.tolist() == [1, 1, 1]
