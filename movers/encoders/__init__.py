"""Encoders: words or texts → vectors."""

from __future__ import annotations

from movers.encoders.load import Encoder, load_encoder, load_static
from movers.encoders.shared import SharedPass

__all__ = ["Encoder", "SharedPass", "load_encoder", "load_static"]
