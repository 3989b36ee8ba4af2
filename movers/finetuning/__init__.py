"""Fine-tuning of an encoder on pairs of texts, as in Fig. 4 of Zhao et al. 2019."""

from __future__ import annotations
