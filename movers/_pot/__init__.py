"""A stand-in for the one name that POT's compiled kernel imports from the rest of POT (see `movers.transport`)."""
