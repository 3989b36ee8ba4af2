"""POT's compiled solver, without importing the rest of POT.

`import ot` takes 2.2 s and 388 MB, because it imports every tensor library it finds, and `ot.emd` twice as long as the
compiled solver at the size of a sentence. So the extension module is loaded alone, with an empty package in the place
of `ot` while it initialises. If that fails, or if POT is imported already, `ot.emd` is used.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_MAX_ITERATIONS = 10_000_000  # documents of 5,000 words take 200,000
_loading = threading.Lock()


def solver() -> Callable[[Floats, Floats, Floats], tuple[Floats, float]]:
    """The solver: masses (m,), (n,) with equal sums and finite costs (m, n) → plan (m, n) and its cost."""
    with _loading:  # a second thread would see the package that stands in the place of `ot`
        return _solver()


@lru_cache(maxsize=1)
def _solver() -> Callable[[Floats, Floats, Floats], tuple[Floats, float]]:
    try:
        emd_c = _compiled().emd_c
    except Exception:  # whatever is different about this POT, its public function works
        import ot

        def emd_c(a: Floats, b: Floats, costs: Floats, iterations: int, threads: int) -> tuple[object, ...]:
            flow, log = ot.emd(a, b, costs, numItermax=iterations, log=True)
            return flow, log["cost"], None, None, log["result_code"]

    def solve(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float]:
        flow, cost, _, _, code = emd_c(a, b, costs, _MAX_ITERATIONS, 1)
        if code != 1:
            raise RuntimeError(f"emd: no optimum (code {code}) of a {len(a)} × {len(b)} problem")
        return flow, float(cost)

    return solve


def _compiled() -> ModuleType:
    name = "ot.lp.emd_wrap"
    if "ot" in sys.modules:
        return import_module(name)
    package = util.find_spec("ot")
    assert package is not None and package.submodule_search_locations
    file = next((Path(package.submodule_search_locations[0]) / "lp").glob("emd_wrap*.so"))
    spec = util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    # Its only import, `from ..utils import dist`, is used by one-dimensional solvers.
    stand_ins = {"ot": ModuleType("ot"), "ot.lp": ModuleType("ot.lp"), "ot.utils": SimpleNamespace(dist=None)}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]
    try:
        spec.loader.exec_module(module)
    finally:
        for stand_in in [*stand_ins, name]:
            sys.modules.pop(stand_in, None)
    return module
