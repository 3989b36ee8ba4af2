"""Every evaluate module is treated alike: a test that asks for `name` runs once for each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.registry import METRICS, find_metric

EXAMPLES = {
    "predictions": [
        "Neighbours dug out the village bakery after the storm.",
        "Shares fell for a third day. The bank was not surprised.",
        "",
    ],
    "references": [
        "After the blizzard, villagers cleared the snow from the baker's shop.",
        "The bank saw its shares fall again.",
        "A cat slept.",
    ],
    "sources": [
        "A blizzard hit on Monday. Neighbours dug out the bakery. Bread was on sale at noon.",
        "Shares of the bank fell again on Wednesday. Nobody at the bank was surprised.",
        "A cat slept. The dog did not.",
    ],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", METRICS)


@pytest.fixture
def rows_of() -> Callable[[str], dict[str, list[str]]]:
    """Three rows, one of them with a blank prediction, as arguments of a metric."""
    return lambda name: {key: list(EXAMPLES[key]) for key in ("predictions", find_metric(name).compared_with)}


@pytest.fixture(scope="session")
def near() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """`result == near(expected)`: numbers may differ by what the make-up of batches does to a contextual encoder."""

    def tolerant(value: Any) -> Any:
        numbers = isinstance(value, float) or (
            isinstance(value, list) and all(isinstance(item, float) for item in value)
        )
        return pytest.approx(value, abs=1e-6) if numbers else value

    return lambda expected: {key: tolerant(value) for key, value in expected.items()}


@pytest.fixture(scope="session")
def fresh_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Caches of evaluate that no earlier run has written to."""
    import evaluate

    home = tmp_path_factory.mktemp("huggingface")
    patch = pytest.MonkeyPatch()
    # Modules that an earlier test loaded into another folder would be found there first.
    patch.setattr(sys, "path", [path for path in sys.path if path != str(evaluate.config.HF_MODULES_CACHE)])
    for setting in ("HF_MODULES_CACHE", "HF_METRICS_CACHE", "HF_EVALUATE_CACHE"):
        patch.setattr(evaluate.config, setting, home / setting.lower())
    for module in [module for module in sys.modules if module.split(".")[0] == "evaluate_modules"]:
        patch.delitem(sys.modules, module)
    yield home
    patch.undo()


@pytest.fixture
def load(fresh_caches: Path, tmp_path: Path) -> Callable[..., Any]:
    """`load(name, **options)` → the module, from its path; rows are stored in the test's own folder."""
    import evaluate

    return lambda name, **options: evaluate.load(movers.module_path(name), cache_dir=str(tmp_path / "rows"), **options)
