"""Options are written once, in the options classes; modules and cards show what stands there."""

from __future__ import annotations

import pytest
from cards import fill, updated_files

from movers.registry import METRICS


@pytest.mark.parametrize("name", METRICS)
def test_modules_and_cards_show_the_options_as_they_are(name: str) -> None:
    stale = [path.name for path, text in updated_files(name).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make cards`"


def test_a_file_without_markers_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="expected one line '# a' and below it one line '# b'"):
        fill("# b\n# a\n", ("# a", "# b"), ["x"])
