"""Web pages to try the metrics: one for a single metric (its Space), one for several of them (`movers serve`).

A page has an API: every metric is an endpoint of its name. Nothing that is typed is stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

from movers.serve.pages import all_metrics_page, launch, metric_page

__all__ = ["all_metrics_page", "launch", "metric_page"]
