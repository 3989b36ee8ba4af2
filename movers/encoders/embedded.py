"""Old name of `wheels`, until its callers have moved."""

from movers.encoders.cache import sha256_of
from movers.encoders.wheels import SMOLLM2, WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS, minilm_folder, smollm2_folder

__all__ = ["SMOLLM2", "WORDLLAMA_TOKENIZER", "WORDLLAMA_WEIGHTS", "minilm_folder", "sha256_of", "smollm2_folder"]
