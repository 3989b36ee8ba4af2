"""Definitions of the metrics, with the equation numbers of their papers."""
