"""`workers`: several processes give the scores, errors and warnings of one."""

from __future__ import annotations

from collections.abc import Callable

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


def test_warnings_of_a_worker_arrive(run_python: Callable[..., str]) -> None:
    german = "Der Mann und die Frau sind nicht mit dem Hund in das alte Haus gegangen."
    code = (
        "import warnings, movers\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    movers.wms([{german!r}] * 300, ['Der Hund ist nicht in dem Haus.'] * 300, workers=WORKERS)\n"
        "print({str(warning.message) for warning in caught})"
    )
    one, two = (run_python(code.replace("WORKERS", workers)) for workers in ("1", "2"))
    assert "wms: " in one and two == one
