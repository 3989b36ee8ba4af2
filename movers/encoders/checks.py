"""Old names, until their callers have moved."""

from movers.encoders.contextual import checked_texts, surface_vectors
from movers.encoders.static import check_vectors

__all__ = ["check_vectors", "checked_texts", "surface_vectors"]
