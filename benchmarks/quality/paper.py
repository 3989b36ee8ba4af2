"""Bao et al.'s Tables 1 to 8 at a size for two processors.

    MOVERS_DATA=… python benchmarks/quality/paper.py [table ...] [--only TEXT]

Every model is trained by `movers.quality.training.train` with one negative sample per document and measured on the test
side; the cross-encoder is fine-tuned for two epochs. Table 1 has every head, Tables 2 to 4 the fully connected one;
mutations are learnt on news. Finished models and rows are kept, so that an interrupted run goes on; `--only` takes the
rows whose name contains that text. The paper's TAC 2010 is not free: Tables 5 to 8 are on SummEval, QAGS and the sets
of `blanc`, by the model that comes with the package.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from quality_common import SUITE, WORK, Pair, corpus, judged, measured, save
from rouge_score.rouge_scorer import RougeScorer
from scipy.stats import pearsonr, spearmanr

from movers.quality.faults import Sample
from movers.quality.model import PAPER, QualityModel, load_model
from movers.quality.scorer import score_pairs
from movers.quality.training import TrainingOptions, evaluate_samples, make_sides, train

DOMAINS = {
    "news": ("train_cnndm", "train_bbc_lead"),
    "science": ("train_scitldr_a",),
    "dialogue": ("train_dialogsum_devtest",),
}
DOCUMENTS = 1200  # of each domain
CROSS = "cross-encoder (MiniLM, fine-tuned, window 128), fc"
LONGER = "cross-encoder (MiniLM, fine-tuned, window 128, five epochs), fc"  # in Table 2 only
#: Text to vector and head, with the options of training.
DESIGNS: dict[str, dict[str, Any]] = {
    CROSS: {"unit": "cross", "epochs": 2},
    **{
        f"{name}, {head}": {**options, "head": head, "epochs": 30}
        for name, options in {
            "sentences (MiniLM)": {"unit": "sentences"},
            "sentences (average of wordllama)": {"encoder": "wordllama", "unit": "sentences"},
            "words (wordllama)": {"encoder": "wordllama", "unit": "words"},
        }.items()
        for head in ("fc", "cnn", "lstm")
    },
}
FULLY_CONNECTED = [design for design in DESIGNS if design.endswith("fc")]
DESIGNS[LONGER] = {"unit": "cross", "epochs": 5}
SETS = ("summeval", "qags_cnndm", "cnn_dailymail_555", "dailynews_300")


def documents(domain: str, count: int = DOCUMENTS) -> list[Pair]:
    """The first documents of a domain's corpora, alike of each."""
    names = DOMAINS[domain]
    return [pair for name in names for pair in corpus(name, count // len(names))]


def trained(design: str, domain: str, kind: str, count: int = DOCUMENTS) -> QualityModel:
    """A model from an earlier run, or trained now."""
    folder = WORK / "models" / "".join(c if c.isalnum() else "-" for c in f"{domain}-{design}-{kind}-{count}")
    if (folder / "config.json").is_file():
        return load_model(folder)
    options = TrainingOptions(**DESIGNS[design], negatives=kind)  # type: ignore[arg-type]
    return train(documents(domain, count), folder, options)


def missing(table: str, rows: Sequence[str], only: str) -> Iterator[str]:
    """Rows that the results do not have yet from this version."""
    return (row for row in rows if only in row and row not in measured(SUITE, table))


def cross_pairs(only: str) -> None:
    """Test figures of every design and domain on cross pairs (Table 1)."""
    names = {f"{domain}: {design}": (design, domain) for design in DESIGNS if design != LONGER for domain in DOMAINS}
    for row in missing("cross pairs", list(names), only):
        test = trained(*names[row], "cross").record["test"]
        save("cross pairs", {row: {"documents": len(documents(names[row][1])), **test}})


def mutations(only: str) -> None:
    """Correlation with the share of tokens left unchanged, one model for each kind of mutation (Table 2)."""
    designs = [*FULLY_CONNECTED, LONGER]
    names = {f"{design}, {kind}": (design, kind) for kind in ("add", "delete", "replace") for design in designs}
    for row in missing("mutations", list(names), only):
        design, kind = names[row]
        pearson = trained(design, "news", kind).record["test"][f"{kind}_pearson"]
        save("mutations", {row: {"documents": DOCUMENTS, "Pearson": pearson}})


def test_side(domain: str) -> tuple[list[Pair], list[Sample]]:
    maker = make_sides(documents(domain), TrainingOptions(negatives="cross"))["test"]
    return list(maker.pairs), list(maker)


def accuracy(model: QualityModel, domain: str) -> float:
    pairs, samples = test_side(domain)
    scores = score_pairs(model, [(pairs[one.row].document, one.summary) for one in samples])
    return evaluate_samples(scores, samples)["accuracy"]


def domains(only: str) -> None:
    """Accuracy on cross pairs of models trained on one domain and tested on the test side of each (Table 3)."""
    names = {f"{design}, trained on {domain}": (design, domain) for design in FULLY_CONNECTED for domain in DOMAINS}
    for row in missing("other domains", list(names), only):
        design, domain = names[row]
        model = trained(design, domain, "cross")
        accuracies = {one: accuracy(model, one) for one in DOMAINS}
        save("other domains", {row: {"documents": len(documents(domain)), **accuracies}})


def sizes(only: str) -> None:
    """Accuracy on the same test side of news after training on fewer and more documents (Table 4)."""
    pairs, _ = test_side("news")
    tested = {pair.document for pair in pairs}
    counts = (150, 300, 600, DOCUMENTS)
    names = {f"{design}, {count}": (design, count) for design in FULLY_CONNECTED for count in counts}
    for row in missing("training sizes", list(names), only):
        design, count = names[row]
        rest = [pair for pair in documents("news", 2 * DOCUMENTS) if pair.document not in tested]
        folder = WORK / "models" / "".join(c if c.isalnum() else "-" for c in f"size-{design}-{count}")
        chosen = [rest[place] for place in np.random.default_rng(0).permutation(len(rest))[:count]]
        is_trained = (folder / "config.json").is_file()
        options = TrainingOptions(**DESIGNS[design], negatives="cross")
        model = load_model(folder) if is_trained else train(chosen, folder, options)
        save("training sizes", {row: {"documents": count, "accuracy": accuracy(model, "news")}})


def correlations(rows: list[dict[str, Any]], scores: Sequence[float]) -> dict[str, float]:
    return {
        f"{column}, {name}": float(measure(scores, [row["scores"][column] for row in rows]).statistic)
        for column in rows[0]["scores"]
        for name, measure in (("Pearson", pearsonr), ("Spearman", spearmanr))
    }


def people(only: str) -> None:
    """The paper's model against people, over all rows, beside ROUGE where there are references (Tables 5 to 8)."""
    for name in missing("people, paper", SETS, only):
        rows = judged(name)
        scores = score_pairs(load_model(PAPER), [(row["source"], row["candidate"]) for row in rows])
        save("people, paper", {name: {"rows": len(rows), **correlations(rows, scores)}})
        if not rows[0].get("references"):
            continue
        kinds = ("rouge1", "rouge2", "rougeL")
        rouge = [RougeScorer(kinds, use_stemmer=True).score(row["references"][0], row["candidate"]) for row in rows]
        for kind in kinds:
            values = [one[kind].fmeasure for one in rouge]
            save("people, paper", {f"{name}, {kind} F1": {"rows": len(rows), **correlations(rows, values)}})


TABLES = {"table5": people, "table1": cross_pairs, "table3": domains, "table2": mutations, "table4": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="all if none is named")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has this text")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
        TABLES[name](arguments.only)


if __name__ == "__main__":
    main()
