"""Options are written once, in the options classes; modules and cards show what stands there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from cards import fill, updated_files

import movers
from movers.registry import METRICS


@pytest.mark.parametrize("name", METRICS)
def test_modules_and_cards_show_the_options_as_they_are(name: str) -> None:
    stale = [path.name for path, text in updated_files(name).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make cards`"
    assert len((Path(movers.module_path(name)) / "README.md").read_text(encoding="utf-8").split()) <= 1000


@pytest.mark.parametrize("name", METRICS)
def test_the_cases_beside_a_module_are_true(name: str) -> None:
    for case in runpy.run_path(f"{movers.module_path(name)}/tests.py")["test_cases"]:
        expected = case.pop("result")
        result = getattr(movers, name)(**case)
        assert {key: result[key] for key in expected} == pytest.approx(expected, abs=1e-4)


def test_a_file_without_markers_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="expected one line '# a' and below it one line '# b'"):
        fill("# b\n# a\n", ("# a", "# b"), ["x"])
