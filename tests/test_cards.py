"""Options are written once, in the options classes; modules and cards show what stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from cards import fill, option_arguments, option_help, option_table, updated_files

from movers.registry import METRICS
from movers.scores.options import Options, option, option_rows


@dataclass(frozen=True, kw_only=True)
class ToyOptions(Options):
    size: int | None = option(None, "number of words; all by default")
    side: Literal["left", "right"] = option("left", "where it begins | ends")


@pytest.mark.parametrize("name", METRICS)
def test_modules_and_cards_show_the_options_as_they_are(name: str) -> None:
    stale = [path.name for path, text in updated_files(name).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make cards`"


def test_an_option_is_shown_with_values_default_and_help() -> None:
    rows = option_rows(ToyOptions)
    assert option_arguments(rows) == ['        size=None, side="left",']
    size, side = option_help(rows)
    assert size == "        size (int or None; default None): number of words; all by default."
    assert side == "        side ('left', 'right'; default 'left'): where it begins | ends."
    assert option_table(rows)[-2] == "| **side** | 'left', 'right' | `'left'` | where it begins \\| ends |"


def test_many_options_are_wrapped_into_lines_that_fit() -> None:
    lines = option_arguments(option_rows(ToyOptions) * 20)
    assert max(map(len, lines)) <= 120
    assert len(lines) == 5


def test_a_file_without_markers_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="expected one line '# a' and below it one line '# b'"):
        fill("# b\n# a\n", ("# a", "# b"), ["x"])
