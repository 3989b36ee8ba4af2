"""How the models in the package are trained: `MOVERS_DATA=… python benchmarks/quality/ship.py [shipped] [paper]`.

Trains on the corpora below, whose terms let weights be passed on, and puts the folder (without its working files) into
`movers/quality/shipped` or `movers/quality/paper`. The same command gives the same weights.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from quality_common import WORK, data_folder

import movers.quality
from movers.quality.data import read_pairs
from movers.quality.training import TrainingOptions, train

SOURCES: list[dict[str, Any]] = [
    {
        "name": "train_cnndm.jsonl.gz",
        "what": "CNN/Daily Mail articles with their highlights",
        "licence": "MIT repository; texts of CNN and Daily Mail",
        "redistributable": True,
    },
    {
        "name": "train_scitldr_a.jsonl.gz",
        "what": "SciTLDR, abstracts of papers with summaries of one sentence",
        "licence": "Apache-2.0",
        "redistributable": True,
    },
    {
        "name": "train_scisummnet.jsonl.gz",
        "what": "ScisummNet, papers with summaries",
        "licence": "CC BY 4.0",
        "redistributable": True,
    },
]
#: Of each model: how many of the corpora above and how many documents of each it is trained on, and how.
MODELS = {
    "shipped": (3, 500, TrainingOptions(head="aspects", optimiser="adamw", batch=16, epochs=12)),
    # Bao et al.'s network over averaged word vectors; papers are longer than what it reads, so abstracts and news alone
    "paper": (2, 600, TrainingOptions(recipe="paper", encoder="wordllama", unit="sentences")),
}


def ship(name: str) -> None:
    count, documents, options = MODELS[name]
    sources = SOURCES[:count]
    data = read_pairs([str(data_folder() / "corpora" / source["name"]) for source in sources], limit=documents)
    output = WORK / name
    model = train(data, output, options, sources=sources, vectors=WORK / "vectors", progress=True)
    home = Path(movers.quality.__file__).parent / name
    home.mkdir(exist_ok=True)
    for path in output.iterdir():
        if path.is_file():
            shutil.copyfile(path, home / path.name)
            (home / path.name).chmod(0o644)  # whoever installs the package, everyone reads it
    print(f"{home}: {model.digest[:8]}", model.record["test"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], help="both if none is named")
    for name in parser.parse_args().models or MODELS:
        ship(name)


if __name__ == "__main__":
    main()
