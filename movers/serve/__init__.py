"""Web pages to try the metrics: one for a single metric (its Space), one for several of them (`movers serve`).

A page has an API: every metric is an endpoint of its name. Nothing that is typed is stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from movers.serve.pages import all_metrics_page, launch, metric_page

__all__ = ["all_metrics_page", "launch", "metric_page"]


def __getattr__(name: str) -> object:
    """Pages when they are asked for: the processes that score do without gradio."""
    if name not in __all__:
        raise AttributeError(f"module 'movers.serve' has no attribute {name!r}")
    from movers.serve import pages

    return getattr(pages, name)
