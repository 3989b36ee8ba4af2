"""The paper's Tables 1 to 8 at a size for two processors.

    MOVERS_DATA=… python benchmarks/quality/paper.py [table ...] [--only TEXT]

Every model is trained by `movers.quality.training.train` with the paper's settings (one negative sample per document,
of a mix all four; RMSProp, patience 3, split 80/10/10 by document) and measured on the test side. Finished
models are kept, so that an interrupted run goes on; `--only` takes the rows whose name contains that text. The paper's
TAC 2010 is not free: Tables 5 to 8 are on SummEval.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from quality_common import WORK, Library, data_folder, judged, save, score_pairs
from rouge import rouge_n, rouge_w, stems
from scipy.stats import pearsonr, spearmanr

import movers
from movers.quality.data import Pair, read_pairs, split_rows
from movers.quality.learners import evaluate_samples
from movers.quality.model import QualityModel, load_model
from movers.quality.training import TrainingOptions, draw_samples, split_pairs, train

#: Corpora of each domain; all their documents unless a design takes fewer.
DOMAINS = {
    "news": ("train_cnndm", "train_bbc_lead"),
    "science": ("train_scitldr_a",),
    "dialogue": ("train_dialogsum_devtest",),
}
AVERAGE = {"encoder": "wordllama", "unit": "sentences"}  # as the paper's averaging encoder
FROZEN = {"unit": "cross", "freeze": True}
#: Text to vector and head, with the number of documents of each corpus (None: all) and further options.
DESIGNS: dict[str, tuple[int | None, dict[str, Any]]] = {
    "sentences (average of wordllama), fc": (None, {**AVERAGE, "head": "fc"}),
    "sentences (average of wordllama), cnn": (None, {**AVERAGE, "head": "cnn"}),
    "sentences (average of wordllama), lstm": (None, {**AVERAGE, "head": "lstm"}),
    "sentences (MiniLM), fc": (None, {"head": "fc"}),
    "sentences (MiniLM), cnn": (None, {"head": "cnn"}),
    "sentences (MiniLM), lstm": (None, {"head": "lstm"}),
    "words (wordllama), fc": (None, {"encoder": "wordllama", "head": "fc"}),
    "words (wordllama), cnn": (None, {"encoder": "wordllama", "head": "cnn"}),
    "words (wordllama), lstm": (None, {"encoder": "wordllama", "head": "lstm"}),
    "cross-encoder (MiniLM, frozen, window 512), fc": (None, FROZEN),
    "cross-encoder (MiniLM, fine-tuned, window 256), fc": (600, {"unit": "cross", "window": 256, "epochs": 5}),
}
KINDS = ("cross", "add", "delete", "replace")
MAIN = "sentences (average of wordllama), fc"
MINILM = "sentences (MiniLM), fc"
CROSS = "cross-encoder (MiniLM, frozen, window 512), fc"
TUNED = "cross-encoder (MiniLM, fine-tuned, window 256), fc"


def corpus(domain: str, limit: int | None = None) -> list[Pair]:
    names = [str(data_folder() / "corpora" / f"{name}.jsonl.gz") for name in DOMAINS[domain]]
    return read_pairs(names, limit=limit)


def trained(name: str, data: list[Pair], settings: dict[str, Any]) -> QualityModel:
    """The model of that name: trained now, or found from an earlier run with the same data and options."""
    folder = WORK / "models" / name.replace(" ", "-").replace(",", "").replace("(", "").replace(")", "")
    options = TrainingOptions(**settings)
    try:
        return train(data, folder, options, vectors=WORK / "vectors")
    except ValueError as error:
        if "output" not in str(error):
            raise
        shutil.rmtree(folder)
        return train(data, folder, options, vectors=WORK / "vectors")


def designed(design: str, domain: str, kind: str) -> QualityModel:
    """A model of a design by one kind of negative samples, or by all four (`mix`)."""
    size, settings = DESIGNS[design]
    how = {"recipe": "paper"} if kind == "mix" else {"negatives": kind}
    return trained(f"{domain}-{design}-{kind}", corpus(domain, size), settings | how)


def designs(name: str, kinds: Sequence[str], figure: str, only: str) -> None:
    """Test figures of every design and domain, one model for each kind of negatives."""
    for domain in ("news", "science"):
        for design in DESIGNS:
            row: dict[str, Any] = {}
            if only not in (title := f"{domain}: {design}"):
                continue
            for kind in kinds:
                model = designed(design, domain, kind)
                row |= {"documents": model.record["data"]["documents"], "parameters": model.record["parameters"]}
                row[kind] = model.record["test"].get(figure, float("nan"))
            save(name, {title: row})  # each row at once, should the run be stopped


def cross_pairs(domain: str, size: int | None) -> list[tuple[str, Any]]:
    """Cross pairs of the test side of a domain, with their documents."""
    data = corpus(domain, size)
    pairs = split_pairs(data, "en")
    samples = draw_samples(pairs, split_rows(data), TrainingOptions(head="fc", negatives="cross"))["test"]
    return [(pairs[sample.row].document, sample) for sample in samples]


def scores_of(model: QualityModel, summaries: list[str], documents: list[str]) -> list[float]:
    read = {"truncation": "cut"} if model.config["unit"] == "cross" else {}  # as in the paper
    result: dict[str, Any] = movers.reference_free_summary_quality(
        summaries, documents, model=model, progress=False, **read
    )
    return result["scores"]


def accuracy(model: QualityModel, items: list[tuple[str, Any]]) -> float:
    scores = scores_of(model, [sample.summary for _, sample in items], [document for document, _ in items])
    return evaluate_samples(scores, [sample for _, sample in items])["cross_accuracy"]


def domains(only: str) -> None:
    """Accuracy on cross pairs of models trained on one domain and tested on another (Table 3)."""
    for design in (MAIN, MINILM, CROSS, TUNED):
        # of as many documents as it is trained on: the test side of all may hold some of its training side
        tests = {domain: cross_pairs(domain, DESIGNS[design][0]) for domain in DOMAINS}
        for source in DOMAINS:
            if only in (title := f"{design}, trained on {source}"):
                model = designed(design, source, "cross")
                save("other domains", {title: {target: accuracy(model, items) for target, items in tests.items()}})


def sizes(only: str) -> None:
    """Accuracy on news after training on more and more documents, of news and of science (Table 4)."""
    held = cross_pairs("news", None)
    tested = {document for document, _ in held}
    for design, source in product((MAIN, MINILM), ("news", "science")):
        rest = [pair for pair in corpus(source) if pair.document not in tested]
        rest = [rest[place] for place in np.random.default_rng(0).permutation(len(rest))]
        if only in (title := f"{design}, trained on {source}"):
            row = {}
            for count in (300, 1000, 2500):
                name, settings = f"size-{design}-{source}-{count}", DESIGNS[design][1] | {"negatives": "cross"}
                row[f"{count:,}"] = accuracy(trained(name, rest[:count], settings), held)
            save("training sizes", {title: row})


def _correlations(rows: list[dict[str, Any]], scores: Sequence[float]) -> dict[str, float]:
    return {
        f"{column}, {name}": float(measure(scores, [row["scores"][column] for row in rows]).statistic)
        for column in rows[0]["scores"]
        for name, measure in (("Pearson", pearsonr), ("Spearman", spearmanr))
    }


def _models(only: str) -> Iterator[tuple[str, QualityModel]]:
    for kind in (*KINDS, "mix"):
        if only in kind:
            yield {"cross": "crosspair", "mix": "mix (all 4 above)"}.get(kind, kind), designed(MAIN, "news", kind)


def people(only: str) -> None:
    """Correlation with the judgements of SummEval, all rows together, by kind of samples (Tables 5 and 6)."""
    rows = judged("summeval")
    summaries, sources = [row["candidate"] for row in rows], [row["source"] for row in rows]
    for title, model in _models(only):
        save("kinds of samples", {title: _correlations(rows, scores_of(model, summaries, sources))})


def rouges(only: str) -> None:
    """The same beside ROUGE against the article's own highlights (Tables 7 and 8)."""
    rows = judged("summeval")
    pairs = [(stems(row["candidate"]), stems(row["references"][0])) for row in rows]
    for name, measure in {
        "ROUGE-1": lambda a, b: rouge_n(a, b, 1),
        "ROUGE-2": lambda a, b: rouge_n(a, b, 2),
        "ROUGE-4": lambda a, b: rouge_n(a, b, 4),
        "ROUGE-W-1.2": rouge_w,
    }.items():
        if only in name:
            values = [measure(*pair) for pair in pairs]
            parts = {f"{name} {part}": [value[place] for value in values] for place, part in enumerate("PRF")}
            save("ROUGE", {title: _correlations(rows, scores) for title, scores in parts.items()})
    if only in (ours := "the shipped score"):
        library = Library()
        texts = [(row["source"], row["candidate"]) for row in rows]
        library.add(text for pair in texts for text in pair)
        save("ROUGE", {ours: _correlations(rows, score_pairs(load_model(), library, texts))})


def shipped(only: str) -> None:
    """The shipped model on documents that it has not seen: rows of the corpora that its record leaves out."""
    model = load_model()
    library = Library()
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
        figures: dict[str, float] = {"documents": len(data)}
        for negatives, fakes in (("cross", 5), ("mix", 8)):
            options = TrainingOptions(negatives=negatives, fakes=fakes, seed=77)  # type: ignore[arg-type]
            samples = draw_samples(pairs, rows, options)["train"]
            library.add(text for sample in samples for text in (pairs[sample.row].document, sample.summary))
            scores = score_pairs(model, library, [(pairs[s.row].document, s.summary) for s in samples])
            measured = evaluate_samples(scores, samples)
            if negatives == "mix":
                figures |= {kind: measured[f"{kind}_pearson"] for kind in ("mutation", "add", "delete", "replace")}
                continue
            figures["accuracy"] = measured["cross_accuracy"]
            own = {s.row: score for s, score in zip(samples, scores, strict=True) if s.kind == "original"}
            crossed = [(s.row, score) for s, score in zip(samples, scores, strict=True) if s.kind == "cross"]
            figures["own above cross"] = float(np.mean([own[row] > score for row, score in crossed]))
        save("shipped model", {name: figures})


TABLES = {
    "table1": lambda only: designs("cross pairs", ("cross",), "cross_accuracy", only),
    # over originals and fakes together, as in the paper
    "table2": lambda only: designs("mutations", ("add", "delete", "replace"), "pearson", only),
    "table3": domains,
    "table4": sizes,
    "table5": people,
    "table7": rouges,
    "shipped": shipped,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="all if none is named")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has this text")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
        TABLES[name](arguments.only)


if __name__ == "__main__":
    main()
