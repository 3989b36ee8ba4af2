"""The paper's Tables 1 to 4 at a size for two processors: cross pairs, mutations, other domains.

    MOVERS_DATA=… python benchmarks/quality/paper.py [table ...]

Every model is trained by `movers.quality.training.train` with the paper's settings (one negative sample per document,
RMSProp, patience 3, split 80/10/10 by document) and measured on the test side. Sizes are written into the result.
Finished models are kept, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from quality_common import Library, data_folder, save, score_pairs, work_folder

from movers.quality.data import Pair, read_pairs, split_rows
from movers.quality.learners import evaluate_samples
from movers.quality.model import QualityModel, load_model
from movers.quality.training import TrainingOptions, draw_samples, split_pairs, train

#: Corpus and documents of each domain.
DOMAINS = {
    "news": ("train_cnndm", 600),
    "science": ("train_scitldr_a", 600),
    "dialogue": ("train_dialogsum_devtest", 300),
}
#: Text to vector and head, with the number of documents and further options.
DESIGNS: dict[str, tuple[int, dict[str, Any]]] = {
    "sentences (MiniLM), fc": (600, {"head": "fc"}),
    "sentences (MiniLM), cnn": (600, {"head": "cnn"}),
    "sentences (MiniLM), lstm": (600, {"head": "lstm"}),
    "words (wordllama), fc": (300, {"encoder": "wordllama", "head": "fc"}),
    "words (wordllama), cnn": (300, {"encoder": "wordllama", "head": "cnn"}),
    "words (wordllama), lstm": (300, {"encoder": "wordllama", "head": "lstm"}),
    "cross-encoder (MiniLM, window 128), fc": (120, {"unit": "cross", "head": "fc", "window": 128, "epochs": 2}),
}


def corpus(domain: str, limit: int | None = None) -> list[Pair]:
    name, size = DOMAINS[domain]
    return read_pairs(str(data_folder() / "corpora" / f"{name}.jsonl.gz"), limit=limit or size)


def trained(name: str, data: list[Pair], options: TrainingOptions) -> QualityModel:
    """The model of that name: trained now, or found from an earlier run with the same data and options."""
    folder = work_folder() / "models" / name.replace(" ", "-").replace(",", "").replace("(", "").replace(")", "")
    try:
        return train(data, folder, options, vectors=work_folder() / "vectors", progress=None)
    except ValueError as error:
        if "output" not in str(error):
            raise
        shutil.rmtree(folder)
        return train(data, folder, options, vectors=work_folder() / "vectors", progress=None)


def designs(name: str, kinds: tuple[str, ...], figure: str, cross_encoder: bool) -> dict[str, Any]:
    """Test figures of every design on news, one model for each kind of negatives."""
    table: dict[str, Any] = {}
    for design, (size, settings) in DESIGNS.items():
        if settings.get("unit") == "cross" and not cross_encoder:
            continue
        row: dict[str, Any] = {"documents": size}
        for kind in kinds:
            options = TrainingOptions(**({"negatives": kind} | settings))
            model = trained(f"{design}-{kind}", corpus("news", size), options)
            row[kind] = model.record["test"].get(figure.format(kind=kind), float("nan"))
            row["parameters"] = model.record["parameters"]
            print(design, kind, row[kind], flush=True)
        table[design] = row
        save(name, {"result": table})  # what is there so far, should the run be stopped
    return table


def domains() -> dict[str, Any]:
    """Accuracy on cross pairs of models trained on one domain and tested on another (Table 3)."""
    library = Library()
    tests = {}
    for domain in DOMAINS:
        data = corpus(domain)
        pairs = split_pairs(data, "en")
        samples = draw_samples(pairs, split_rows(data), TrainingOptions(head="fc", negatives="cross"))["test"]
        tests[domain] = [(pairs[sample.row].document, sample) for sample in samples]
        library.add(text for document, sample in tests[domain] for text in (document, sample.summary))
    table: dict[str, Any] = {}
    for head in ("fc", "lstm"):
        for source in DOMAINS:
            model = trained(f"{source}-{head}-cross", corpus(source), TrainingOptions(head=head, negatives="cross"))
            row = {}
            for target, items in tests.items():
                scores = score_pairs(model, library, [(document, sample.summary) for document, sample in items])
                row[target] = evaluate_samples(scores, [sample for _, sample in items])["cross_accuracy"]
            table[f"{head}, trained on {source}"] = row
            print(head, source, row, flush=True)
    return {"documents": {domain: size for domain, (_, size) in DOMAINS.items()}, "table": table}


def sizes() -> dict[str, Any]:
    """Accuracy on the same news documents after training on more and more of the others (Table 4)."""
    data = corpus("news")
    held = set(split_rows(data)["test"])
    rest = [pair for row, pair in enumerate(data) if row not in held]
    pairs = split_pairs(data, "en")
    samples = draw_samples(pairs, split_rows(data), TrainingOptions(head="fc", negatives="cross"))["test"]
    library = Library()
    library.add(text for sample in samples for text in (pairs[sample.row].document, sample.summary))
    table: dict[str, Any] = {}
    for count in (60, 180, len(rest)):
        for head in ("fc", "lstm"):
            model = trained(f"news-{count}-{head}", rest[:count], TrainingOptions(head=head, negatives="cross"))
            scores = score_pairs(model, library, [(pairs[s.row].document, s.summary) for s in samples])
            table.setdefault(head, {})[str(count)] = evaluate_samples(scores, samples)["cross_accuracy"]
    return table


def shipped() -> dict[str, Any]:
    """The shipped model on documents that it has not seen: rows of the corpora that its record leaves out."""
    model = load_model()
    library = Library()
    result: dict[str, Any] = {}
    for name, limit in (
        ("train_cnndm", None),
        ("train_bbc_lead", 60),
        ("train_xsum", 60),
        ("train_dialogsum_devtest", 60),
    ):
        data = read_pairs(str(data_folder() / "corpora" / f"{name}.jsonl.gz"), limit=limit)
        if name == "train_cnndm":
            data = [data[row] for row in split_rows(data, int(str(model.record["options"]["seed"])))["test"]]
        pairs = split_pairs(data, "en")
        rows = {"train": list(range(len(pairs))), "validation": [], "test": []}
        figures: dict[str, float] = {}
        for negatives, fakes in (("cross", 5), ("mix", 8)):
            options = TrainingOptions(negatives=negatives, fakes=fakes, seed=77)  # type: ignore[arg-type]
            samples = draw_samples(pairs, rows, options)["train"]
            library.add(text for sample in samples for text in (pairs[sample.row].document, sample.summary))
            scores = score_pairs(model, library, [(pairs[s.row].document, s.summary) for s in samples])
            found = evaluate_samples(scores, samples)
            if negatives == "mix":
                figures |= {key: value for key, value in found.items() if key.endswith("_pearson")}
                continue
            figures["cross_accuracy"] = found["cross_accuracy"]
            own = {s.row: score for s, score in zip(samples, scores, strict=True) if s.kind == "original"}
            crossed = [(s.row, score) for s, score in zip(samples, scores, strict=True) if s.kind == "cross"]
            figures["own_above_cross"] = float(np.mean([own[row] > score for row, score in crossed]))
        result[name] = {"documents": len(data), **figures}
        print(name, result[name], flush=True)
        save("shipped", {"result": {"model": model.identity, "table": result}})
    return {"model": model.identity, "table": result}


TABLES = {
    "table1": lambda: designs("table1", ("cross",), "cross_accuracy", cross_encoder=True),
    "table2": lambda: designs("table2", ("add", "delete", "replace"), "{kind}_pearson", cross_encoder=False),
    "table3": domains,
    "table4": sizes,
    "shipped": shipped,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="all if none is named")
    Path(work_folder() / "models").mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().tables or TABLES:
        save(name, {"result": TABLES[name]()})


if __name__ == "__main__":
    main()
