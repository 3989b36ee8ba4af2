"""The metrics' definitions, each readable beside its paper's equations."""
