"""Location of the evaluate modules: in the installed package, or in the checkout of an editable install."""

from __future__ import annotations

from pathlib import Path

from movers.errors import InputError

_PACKAGE = Path(__file__).parent


def module_path(name: str) -> str:
    """Folder of a metric's evaluate module, for `evaluate.load`.

    >>> from pathlib import Path
    >>> Path(module_path("wms")).name
    'wms'
    >>> module_path("wsm")
    Traceback (most recent call last):
    movers.InputError: module_path: expected one of bertscore_emd, ..., but got 'wsm'
    """
    installed = _PACKAGE / "metrics"
    metrics = installed if installed.is_dir() else _PACKAGE.parent / "metrics"
    names = sorted(script.stem for script in metrics.glob("*/*.py") if script.stem == script.parent.name)
    if name not in names:
        raise InputError(f"module_path: expected one of {', '.join(names)}, but got {name!r}")
    return str(metrics / name)
