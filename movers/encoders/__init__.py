"""Encoders: words or texts → vectors."""

from __future__ import annotations

from movers.encoders.load import Encoder, load_encoder, load_static

__all__ = ["Encoder", "load_encoder", "load_static"]
