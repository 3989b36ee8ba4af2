"""The version, alone in its file so that `setup.py` reads it without importing the package."""

VERSION = "0.3.0"
