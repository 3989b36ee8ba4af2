"""`workers`: several processes give the scores and errors of one."""

from __future__ import annotations

import pytest

import movers
from movers.errors import InputError

SENTENCES = [
    "A man sells snow online.",
    "Boston suffered heavy snow.",
    "Police arrested suspects.",
    "Birds walked here.",
]
PREDICTIONS = [f"{SENTENCES[n % 4]} {SENTENCES[n % 3]} Number {n} fell." for n in range(300)]
REFERENCES = [[f"{SENTENCES[(n + 1) % 4]} It fell {n} times.", SENTENCES[n % 4]] for n in range(300)]


@pytest.mark.parametrize("name", ["wms", "sms", "swms"])
def test_workers_give_the_scores_of_one_process_row_for_row(name: str) -> None:
    options = {"return_alignment": True, "idf": "corpus"} if name == "swms" else {}
    metric = getattr(movers, name)
    assert metric(PREDICTIONS, REFERENCES, workers=2, **options) == metric(PREDICTIONS, REFERENCES, **options)


def test_an_error_in_a_worker_names_the_row() -> None:
    long = " ".join(f"word{n}" for n in range(6000))
    predictions = [*PREDICTIONS[:250], long, *PREDICTIONS[251:]]
    references = [*REFERENCES[:250], [long], *REFERENCES[251:]]
    with pytest.raises(InputError, match=r"^wms: predictions\[250\]: comparing"):
        movers.wms(predictions, references, workers=2)
