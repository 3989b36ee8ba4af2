"""The cross-encoder in the package: `MOVERS_DATA=… python benchmarks/quality/ship.py [--measure]`.

Trains on the corpora below, whose terms let weights be passed on, and puts the folder (without its working files) into
`movers/quality/paper`; then measures it on documents that it has not seen: the test side of its corpora, and corpora of
other kinds. `--measure` trains nothing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from quality_common import WORK, Pair, corpus, save

import movers.quality
from movers.quality.data import split_rows
from movers.quality.faults import KINDS, SampleMaker, build_vocabulary
from movers.quality.model import PAPER, load_model
from movers.quality.scorer import score_pairs
from movers.quality.training import TrainingOptions, evaluate_samples, train

#: Corpora of the shipped weights, with their licences.
SOURCES = {
    "train_cnndm": "CNN/Daily Mail articles with their highlights, MIT repository; texts of CNN and Daily Mail",
    "train_scitldr_a": "SciTLDR, abstracts of papers with summaries of one sentence, Apache-2.0",
    "train_scisummnet": "ScisummNet, papers with summaries, CC BY 4.0",
}
UNSEEN = ("train_bbc_lead", "train_xsum", "train_dialogsum_devtest")
OPTIONS = TrainingOptions(epochs=1, fakes=1, candidates=8, rate=1e-4, window=96, batch=16)
DOCUMENTS = 60  # of each corpus that the model is measured on


def ship() -> None:
    sources = [f"{name}, {licence}" for name, licence in SOURCES.items()]
    output, home = WORK / PAPER, Path(movers.quality.__file__).parent / PAPER
    train([pair for name in SOURCES for pair in corpus(name)], output, OPTIONS, sources=sources)
    home.mkdir(exist_ok=True)
    for path in output.iterdir():
        if path.is_file():
            shutil.copyfile(path, home / path.name)


def measure(name: str, pairs: list[Pair], vocabulary: tuple[str, ...]) -> None:
    """Four cross pairs and six mutations of each document."""
    model, makers = load_model(PAPER), []
    for seed, (negatives, fakes) in enumerate((("cross", 4), *((kind, 2) for kind in KINDS[1:])), 77):
        makers.append(SampleMaker(pairs, negatives, vocabulary, fakes=fakes, seed=seed))  # type: ignore[arg-type]
    samples = [*makers[0], *(one for maker in makers[1:] for one in maker if one.kind != "original")]
    scores = score_pairs(model, [(pairs[one.row].document, one.summary) for one in samples])
    save("model='paper'", {name: {"documents": len(pairs), **evaluate_samples(scores, samples)}})


def main() -> None:
    if "--measure" not in sys.argv[1:]:
        ship()
    every = [pair for name in SOURCES for pair in corpus(name)]
    sides = {side: {every[row] for row in rows} for side, rows in split_rows(every, OPTIONS.seed).items()}
    vocabulary = build_vocabulary([pair.summary for pair in every if pair in sides["train"]])
    for name in SOURCES:
        measure(name, [pair for pair in corpus(name) if pair in sides["test"]][:DOCUMENTS], vocabulary)
    for name in UNSEEN:
        measure(name, corpus(name)[-DOCUMENTS:], vocabulary)


if __name__ == "__main__":
    main()
