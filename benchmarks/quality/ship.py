"""How the shipped model is trained: `MOVERS_DATA=… python benchmarks/quality/ship.py`.

Trains on the corpora below, whose terms let weights be passed on, and puts the folder (without its working files) into
`movers/quality/shipped`. The same command gives the same weights.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from quality_common import data_folder, work_folder

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
DOCUMENTS = 500  # of each
OPTIONS = TrainingOptions(head="aspects", optimiser="adamw", batch=16, epochs=12)


def main() -> None:
    data = read_pairs([str(data_folder() / "corpora" / source["name"]) for source in SOURCES], limit=DOCUMENTS)
    output = work_folder() / "shipped"
    model = train(data, output, OPTIONS, sources=SOURCES, progress=True)
    home = Path(movers.quality.__file__).parent / "shipped"
    home.mkdir(exist_ok=True)
    for path in output.iterdir():
        if path.is_file():
            shutil.copyfile(path, home / path.name)
            (home / path.name).chmod(0o644)  # whoever installs the package, everyone reads it
    print(f"{home}: {model.digest[:8]}", model.record["test"])


if __name__ == "__main__":
    main()
