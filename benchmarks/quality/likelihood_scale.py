"""The scale of the likelihood, from texts without judgements.

    MOVERS_DATA=… python benchmarks/quality/likelihood_scale.py

Summaries that people wrote, of documents spread over the corpora whose weights may ship. The scale is the power of the
median likelihood that equals the median aspect, taken for faithfulness and fluency and averaged: with it, aspects keep
their level when a language model is added.
"""

from __future__ import annotations

import numpy as np
from quality_common import Library, data_folder, save

from movers.io import progress_bar
from movers.quality.data import read_pairs
from movers.quality.lm import SMALL, load_lm
from movers.quality.model import load_model
from movers.quality.scorer import compare_vectors, pair_likelihoods

CORPORA = ("train_cnndm", "train_scitldr_a", "train_scisummnet")
DOCUMENTS = 60  # of each
MEASURES = ("faithfulness", "fluency", "likelihood")


def main() -> None:
    library, lm = Library(), load_lm(SMALL, "cpu")
    medians: dict[str, dict[str, float]] = {}
    everything: list[list[float]] = []
    for corpus in CORPORA:
        pairs = read_pairs(str(data_folder() / "corpora" / f"{corpus}.jsonl.gz"))
        pairs = pairs[:: len(pairs) // DOCUMENTS][:DOCUMENTS]
        library.add(text for pair in pairs for text in (pair.document, pair.summary))
        rows = []
        with progress_bar(len(pairs), desc=corpus, unit=" documents") as bar:
            for pair in pairs:
                texts = [(library.get(pair.summary), library.get(pair.document))]
                (likelihood,) = pair_likelihoods(lm, texts)
                assert likelihood is not None
                parts = compare_vectors(load_model(), texts)[0].parts
                rows.append([parts["faithfulness"], parts["fluency"], likelihood.new])
                bar.update(1)
        medians[corpus] = dict(zip(MEASURES, np.median(rows, axis=0).tolist(), strict=True))
        everything += rows
    whole = dict(zip(MEASURES, np.median(everything, axis=0).tolist(), strict=True))
    scales = {name: float(np.log(whole[name]) / np.log(whole["likelihood"])) for name in MEASURES[:2]}
    print(whole, scales)
    save(
        "scale",
        {
            "lm": SMALL,
            "documents": len(everything),
            "medians": {**medians, "all": whole},
            "scales": scales,
            "scale": sum(scales.values()) / len(scales),
        },
    )


if __name__ == "__main__":
    main()
