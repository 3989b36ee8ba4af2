"""Designs of the aligning head side by side, each trained on the same samples: `python benchmarks/quality/designs.py`.

The language factor is the given model's; what is trained here is the network over the alignment features and how the
two are put together. Chosen by: accuracy and mutation correlation on the validation side, Spearman with people on the
first 50 documents of SummEval (the second 50 are not looked at).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from people import ASPECTS, by_document
from quality_common import Library, data_folder, judged, save, work_folder
from torch import Tensor, nn

from movers.quality.alignment import FEATURES, align
from movers.quality.data import read_pairs, split_rows
from movers.quality.faults import PAPER_KINDS, Sample
from movers.quality.heads import AlignHead, Monotone, PairInput, WeightedSum
from movers.quality.learners import VectorLearner, evaluate_samples
from movers.quality.model import QualityModel, load_model
from movers.quality.training import TrainingOptions, draw_samples, split_pairs

Side = dict[str, Any]


def measure(model: QualityModel) -> dict[str, Side]:
    """Features, intactness and labels of the training and validation samples and of SummEval's first half."""
    options = TrainingOptions.parse("designs", model.record["options"])
    folder = data_folder()
    data = read_pairs([str(folder / "corpora" / str(source["name"])) for source in model.record["data"]["sources"]])
    pairs = split_pairs(data, options.lang)
    samples = draw_samples(pairs, split_rows(data, options.seed), options)
    learner = VectorLearner(options, pairs, samples, work_folder() / "vectors", None)
    sides: dict[str, Side] = {}
    for name in ("train", "validation"):
        kept = [sample for sample in samples[name] if sample.summary.strip()]
        sides[name] = {"samples": kept, **_columns(model, learner.inputs(kept))}
    rows = judged("summeval")
    documents = list(dict.fromkeys(row["doc"] for row in rows))[:50]
    rows = [row for row in rows if row["doc"] in documents]
    library = Library()
    library.add(text for row in rows for text in (row["source"], row["candidate"]))
    inputs = []
    for row in rows:
        document, summary = library.get(row["source"]), library.get(row["candidate"])
        inputs.append(PairInput(document, summary, align(document, summary).features))
    people = {aspect: np.array([row["scores"][aspect] for row in rows]) for aspect in ASPECTS}
    groups = np.array([documents.index(row["doc"]) for row in rows])
    sides["people"] = {"people": people, "groups": groups, **_columns(model, inputs)}
    return sides


def _columns(model: QualityModel, inputs: Sequence[PairInput]) -> Side:
    head = model.module
    assert isinstance(head, AlignHead)
    order = np.argsort([len(pair.summary.tokens) for pair in inputs])
    intact = torch.zeros(len(inputs))
    with torch.inference_mode():
        for begin in range(0, len(order), 64):
            chosen = order[begin : begin + 64]
            intact[torch.from_numpy(chosen)] = head.parts(head.collate([inputs[place] for place in chosen]))[1]
    features = torch.from_numpy(np.stack([pair.features for pair in inputs]))  # type: ignore[misc]
    return {"features": (features - head.center) / head.scale, "intact": intact.clone()}


def _product(tolerance: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda logits, intact: logits.sigmoid() * (1 - torch.relu(1 - intact - tolerance) / (1 - tolerance))


def run(
    sides: dict[str, Side],
    network: nn.Module,
    combine: Callable[[Tensor, Tensor], Tensor],
    kinds: frozenset[str] | None = None,
    importance: dict[str, float] | None = None,
    columns: Sequence[int] | None = None,
    epochs: int = 15,
    rate: float = 1e-2,
) -> dict[str, float]:
    """Train one design and measure it."""
    chosen = list(range(len(FEATURES))) if columns is None else list(columns)
    training: list[Sample] = sides["train"]["samples"]
    weights = torch.tensor([(importance or {}).get(sample.kind, 1.0) for sample in training])
    places = np.array([n for n, sample in enumerate(training) if kinds is None or sample.kind in kinds])
    labels = torch.tensor([sample.label for sample in training])
    features = {name: side["features"][:, chosen] for name, side in sides.items()}
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - epoch / epochs)
        order = rng.permutation(places)
        for begin in range(0, len(order), 512):
            batch = torch.from_numpy(order[begin : begin + 512])
            scores = combine(network(features["train"][batch]).reshape(-1), sides["train"]["intact"][batch])
            loss = nn.functional.binary_cross_entropy(scores.clamp(1e-5, 1 - 1e-5), labels[batch], weights[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.inference_mode():
        found = {
            name: combine(network(features[name]).reshape(-1), sides[name]["intact"]).double().numpy() for name in sides
        }
    figures = evaluate_samples(found["validation"].tolist(), sides["validation"]["samples"])
    out = {"accuracy": figures["cross_accuracy"], "mutation": figures["mutation_pearson"]}
    for aspect in ASPECTS:
        values = by_document(found["people"], sides["people"]["people"][aspect], sides["people"]["groups"], range(50))
        out[aspect] = float(values.mean())
    return out


def _free() -> nn.Module:
    return nn.Sequential(nn.Linear(len(FEATURES), 16), nn.Tanh(), nn.Linear(16, 1))


def variants(sides: dict[str, Side]) -> dict[str, dict[str, float]]:
    paper = frozenset({"original", *PAPER_KINDS})
    importance = AlignHead.importance
    plain = _product(AlignHead.tolerance)
    out = {}

    def add(name: str, network: nn.Module, combine: Callable[[Tensor, Tensor], Tensor], **settings: Any) -> None:
        out[name] = run(sides, network, combine, **settings)
        print(f"{name:60s}", " ".join(f"{key[:5]} {value:.3f}" for key, value in out[name].items()), flush=True)

    def fresh(count: int = len(FEATURES)) -> nn.Module:
        torch.manual_seed(0)
        return Monotone(count, 16)

    torch.manual_seed(0)
    add("free network, times language", _free(), plain, importance=importance)
    add("free network, the paper's mix alone", _free(), plain, kinds=paper)
    add(
        "monotone, without the language factor", fresh(), lambda logits, intact: logits.sigmoid(), importance=importance
    )
    add("monotone, times language, no tolerance", fresh(), _product(0.0), importance=importance)
    add("monotone, least of the two", fresh(), lambda a, b: torch.minimum(a.sigmoid(), b), importance=importance)
    add("monotone, times language, all kinds weigh alike", fresh(), plain)
    add("monotone, times language, the paper's mix alone", fresh(), plain, kinds=paper, importance=importance)
    for left_out in ("match", "support", "coverage|mean_cosine|centrality", "distinct"):
        columns = [n for n, name in enumerate(FEATURES) if not any(part in name for part in left_out.split("|"))]
        name = f"monotone, times language, without {left_out.replace('|', ', ')}"
        add(name, fresh(len(columns)), plain, importance=importance, columns=columns)
    add("monotone, times language", fresh(), plain, importance=importance)
    torch.manual_seed(0)
    add("weighted sum and curve, times language (shipped)", WeightedSum(8), plain, importance=importance)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="shipped")
    model = load_model(parser.parse_args().model)
    Path(work_folder()).mkdir(parents=True, exist_ok=True)
    save("designs", {"model": model.identity, "table": variants(measure(model))})


if __name__ == "__main__":
    main()
