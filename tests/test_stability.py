"""What `docs/stability.md` promises: names, result keys and signature fields."""

from __future__ import annotations

import pytest

import movers
from movers.registry import METRICS
from movers.signature import read_signature

NAMES = {"IdfTable", "InputError", "Scorer", "__version__", "bertscore_emd", "bertscore_hungarian", "bertscore_tensors",
         "engines", "explain", "hooks", "load_encoder", "mbr", "module_path", "mover_distance", "moverscore",
         "pairwise", "reference_free_summary_quality", "rewards", "score_many", "sms", "swms", "wms"}  # fmt: skip

COUNTS = {"n_empty", "n_unfiltered", "n_truncated", "n_unknown"}
COMMON = {"score", "scores", "signature", "alignments", *COUNTS}
MATCHED = {"distances", "precision", "recall", "f1", "hashcode"}
KEYS = {
    "wms": {"distances", "temperature"},
    "sms": {"distances", "temperature"},
    "swms": {"distances", "temperature"},
    "moverscore": {"distances"},
    "bertscore_hungarian": MATCHED,
    "bertscore_emd": MATCHED,
    "reference_free_summary_quality": {"faithfulness", "coverage", "non_repetition"},
}
FIELDS = {
    "wms": "emb oov weights stop case words lang dist norm temp refs",
    "sms": "emb oov sentvec sentences stop case words lang dist norm temp refs",
    "swms": "emb oov sentvec weights sentences stop case words lang dist norm temp refs",
    "moverscore": "emb layer dtype window subwords special n norm weights stop punct dist sim refs",
    "bertscore_hungarian": "emb layer dtype window align weights refs",
    "bertscore_emd": "emb layer dtype window align weights refs",
    "reference_free_summary_quality": "model docs emb lang dtype window",
}


def test_the_names_of_the_package_are_those_promised() -> None:
    assert set(movers.__all__) == set(dir(movers)) == NAMES
    assert all(hasattr(movers, name) for name in NAMES)


@pytest.mark.parametrize("name", METRICS)
def test_results_and_signatures_have_the_keys_promised(name: str) -> None:
    result = getattr(movers, name)(["A cat sat."], ["The dog ran."], return_alignment=True)
    assert set(result) == COMMON | KEYS[name]
    assert list(read_signature(result["signature"])) == ["metric", *FIELDS[name].split(), "v"]
