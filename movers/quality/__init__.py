"""The learned metric: negative samples, heads, training and scoring of reference-free summary quality."""

from __future__ import annotations
