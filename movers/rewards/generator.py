"""A seq2seq or causal language model from a folder: sampling, greedy decoding, and log-probabilities of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

from movers.encoders.load import remote_code_allowed
from movers.errors import InputError
from movers.rewards.losses import token_log_probs

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["TextGenerator", "load_generator"]


@dataclass(frozen=True)
class TextGenerator:
    """A model and its tokenizer; outputs are token ids without end token or padding."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompt_tokens: int
    new_tokens: int

    @property
    def encodes(self) -> bool:
        """Whether an encoder reads the prompt; else the output continues it."""
        return bool(self.model.config.is_encoder_decoder)

    @property
    def end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    def encode(self, text: str) -> list[int]:
        """Ids of an output text, as many as may be generated."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids[: self.new_tokens]

    def decode(self, outputs: Sequence[Sequence[int]]) -> list[str]:
        return [self.tokenizer.decode(row, skip_special_tokens=True).strip() for row in outputs]

    def generate(self, prompts: Sequence[str], sample: bool = False) -> list[list[int]]:
        """An output per prompt: drawn from the model's distribution, or its most likely token at every step."""
        import torch
        from transformers import GenerationConfig

        config = GenerationConfig(
            do_sample=sample,
            max_new_tokens=self.new_tokens,
            pad_token_id=self._pad,
            eos_token_id=self.end,
            decoder_start_token_id=self.model.config.decoder_start_token_id if self.encodes else None,
            **({"top_k": 0, "top_p": 1.0, "temperature": 1.0} if sample else {}),
        )
        ids, mask = self._prompts(prompts)
        training = self.model.training
        self.model.eval()  # the distribution of the model as it will be used, without dropout
        with torch.no_grad():
            found = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        self.model.train(training)
        rows = found[:, 1 if self.encodes else ids.shape[1] :].tolist()
        return [row[: row.index(self.end)] if self.end in row else row for row in rows]

    def log_probs(self, prompts: Sequence[str], outputs: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B, T) of outputs with their end tokens, with gradient, and the mask (B, T) of what counts.

        An output of full length has no end token: it was cut.
        """
        import torch

        ended = [[*row, self.end] if len(row) < self.new_tokens else list(row) for row in outputs]
        target, mask = (torch.tensor(rows, device=self.model.device) for rows in _padded(ended, self._pad))
        ids, prompt_mask = self._prompts(prompts)
        if self.encodes:
            labels = target.masked_fill(mask == 0, -100)
            logits = self.model(input_ids=ids, attention_mask=prompt_mask, labels=labels).logits
        else:
            both = torch.cat([prompt_mask, mask], dim=1)
            logits = self.model(
                input_ids=torch.cat([ids, target], dim=1),
                attention_mask=both,
                position_ids=(both.cumsum(1) - 1).clamp_min(0),
                logits_to_keep=target.shape[1] + 1,
            ).logits[:, :-1]
        return token_log_probs(logits, target), mask

    @property
    def _pad(self) -> int:
        pad = self.tokenizer.pad_token_id
        return self.end if pad is None else int(pad)

    def _prompts(self, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Ids and mask (B, P); causal models continue at the right end, so that they are padded on the left."""
        import torch

        rows = [
            self.tokenizer(text, add_special_tokens=self.encodes, truncation=True, max_length=self.prompt_tokens)
            for text in prompts
        ]
        ids, mask = _padded([row["input_ids"] or [self.end] for row in rows], self._pad, left=not self.encodes)
        return torch.tensor(ids, device=self.model.device), torch.tensor(mask, device=self.model.device)


def _padded(rows: Sequence[Sequence[int]], pad: int, left: bool = False) -> tuple[list[list[int]], list[list[int]]]:
    width = max(map(len, rows))
    ids, mask = [], []
    for row in rows:
        filling = width - len(row)
        ids.append([pad] * filling + list(row) if left else list(row) + [pad] * filling)
        mask.append([0] * filling + [1] * len(row) if left else [1] * len(row) + [0] * filling)
    return ids, mask


def load_generator(folder: str | Path, prompt_tokens: int = 256, new_tokens: int = 64) -> TextGenerator:
    """The model and tokenizer of a folder (or Hub id)."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    try:
        trusted = remote_code_allowed()
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model = kind.from_pretrained(folder, trust_remote_code=trusted, weights_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
    except (OSError, ValueError, UnpicklingError) as error:
        told = " ".join(str(error).split())  # in one line
        raise InputError(f"rewards: model: expected a model folder, but got {str(folder)!r}: {told}") from None
    if tokenizer.eos_token_id is None:
        raise InputError("rewards: model: expected a tokenizer with an end-of-sequence token, but got none")
    return TextGenerator(model, tokenizer, prompt_tokens, new_tokens)
