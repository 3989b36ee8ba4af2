"""POT's compiled solver, loaded without importing all of POT.

`ot.emd` spends three times as long in Python as in C at the size of a sentence, and `import ot` takes seconds: it
imports every tensor library it finds. So the compiled module is loaded alone, tried once on a problem whose solution is
known, and `ot.emd` takes its place if anything about it is not as expected.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from movers.threads import SafeLock

__all__ = ["OPTIMAL", "Kernel", "emd_kernel"]

Floats = NDArray[np.float64]
Kernel = Callable[[Floats, Floats, Floats], tuple[Floats, float, int]]
OPTIMAL = 1
_MAX_ITERATIONS = 10_000_000  # a bound against endless loops; sentences need hundreds, documents of 5,000 words 200,000
_KERNEL_NAME = "ot.lp.emd_wrap"


def emd_kernel() -> Kernel:
    """The solver: masses (m,), (n,) and costs (m, n) → plan (m, n), cost, result code."""
    global _KERNEL
    if _KERNEL is None:
        with _KERNEL_LOCK:
            if _KERNEL is None:
                _KERNEL = _find_kernel()
    return _KERNEL


_KERNEL: Kernel | None = None
_KERNEL_LOCK = SafeLock()


def _find_kernel() -> Kernel:
    try:
        kernel = _compiled_kernel()
        if _solves_the_trial(kernel):
            return kernel
    except Exception:  # whatever is different about this POT, its public function works
        pass
    return _public_kernel()


def _solves_the_trial(kernel: Kernel) -> bool:
    flow, cost, code = kernel(np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([[0.0, 1.0], [2.0, 1.0]]))
    return code == OPTIMAL and abs(cost - 0.75) < 1e-12 and np.allclose(flow, [[0.25, 0.25], [0.0, 0.5]], atol=1e-12)


def _compiled_kernel() -> Kernel:
    emd_c = _compiled_module().emd_c

    def solve(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float, int]:
        flow, cost, _, _, code = emd_c(a, b, costs, _MAX_ITERATIONS, 1)
        return flow, float(cost), int(code)

    return solve


def _public_kernel() -> Kernel:
    import ot

    def solve(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float, int]:
        flow, log = ot.emd(a, b, costs, numItermax=_MAX_ITERATIONS, log=True)
        return flow, float(log["cost"]), int(log["result_code"])

    return solve


class _LoadedOnce:
    """Hands the compiled module out again if POT itself is imported later: it cannot be initialised twice."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == _KERNEL_NAME else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do: it has run already."""


def _compiled_module() -> ModuleType:
    if "ot" in sys.modules:
        return importlib.import_module(_KERNEL_NAME)
    package = importlib.util.find_spec("ot")
    if package is None or not package.submodule_search_locations:
        raise ImportError("POT is not installed: pip install POT")
    folder = Path(next(iter(package.submodule_search_locations))) / "lp"
    file = next(path for suffix in EXTENSION_SUFFIXES if (path := folder / f"emd_wrap{suffix}").exists())
    spec = importlib.util.spec_from_file_location(_KERNEL_NAME, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its `from ..utils import dist` is answered by movers._pot.utils instead of by all of POT.
    real = module.__package__, module.__spec__
    module.__package__, module.__spec__ = "movers._pot.lp", ModuleSpec("movers._pot.lp.emd_wrap", None)
    try:
        spec.loader.exec_module(module)
    finally:
        module.__package__, module.__spec__ = real
    sys.modules.pop(_KERNEL_NAME, None)  # so that `import ot` finds it by the finder, and binds it to its package
    sys.meta_path.insert(0, _LoadedOnce(module))
    return module
