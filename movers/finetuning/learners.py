"""What the training loop asks of an encoder that is being fine-tuned.

Both tasks are those of Sentence-BERT (Reimers & Gurevych 2019): each text is read on its own, and the mean of its
tokens' last hidden states is its vector. `nli` puts a linear classifier on `[u, v, |u − v|]`, trained with
cross-entropy. `similarity` trains the cosine of u and v, with the square error.

This module imports torch; import it late.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from movers.encoders import load_encoder
from movers.encoders.contextual import Tokens
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.finetuning.data import COMMAND, TextPair

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from movers.finetuning.training import TuningOptions

__all__ = ["PairEncoder", "PairLearner"]


class PairEncoder(nn.Module):
    """A transformer that gives both texts of a pair their vectors; with classes also a linear classifier over both."""

    def __init__(self, transformer: PreTrainedModel, classes: int = 0) -> None:
        super().__init__()
        self.transformer = transformer
        width = int(transformer.config.hidden_size)
        self.classifier = nn.Linear(3 * width, classes) if classes else None

    def vectors(self, rows: Sequence[Sequence[int]], pad: int) -> Tensor:
        """(n, d) means of the last hidden states of n rows of token ids."""
        place = next(self.transformer.parameters()).device
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows], device=place)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=place)
        states = self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state
        kept = mask.unsqueeze(-1).to(states.dtype)
        return (states * kept).sum(dim=1) / kept.sum(dim=1)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(n, classes) logits, or (n,) cosines, of (n, d) vectors."""
        if self.classifier is None:
            return functional.cosine_similarity(first, second)
        return self.classifier(torch.cat([first, second, (first - second).abs()], dim=1))


class PairLearner:
    """A `movers.training.Learner` of pairs.

    Parameters
    ----------
    pairs, held : the pairs for training and for validation
    classes : number of labels; 0 for `similarity`
    """

    default_rate = 2e-5

    def __init__(
        self,
        options: TuningOptions,
        pairs: Sequence[TextPair],
        held: Sequence[TextPair],
        classes: int,
        device: str | None = "auto",
    ) -> None:
        encoder = load_encoder(options.encoder, device=device)
        if isinstance(encoder, StaticEncoder):
            raise InputError(f"{COMMAND}: encoder: expected a transformer, but {encoder.identity} is static")
        self.encoder = encoder
        self.model: PreTrainedModel = copy.deepcopy(encoder.objects[0])  # what metrics use stays as it is
        self.model.requires_grad_(True)
        nested = getattr(self.model.config, "is_encoder_decoder", False)
        self.module = PairEncoder(self.model.get_encoder() if nested else self.model, classes)
        self.module.to(encoder.device)
        self._window = encoder.sentence_window if options.window is None else encoder.window_for(options.window)
        self._pad = int(encoder.objects[1].pad_token_id or 0)
        self._options, self._pairs, self._held = options, pairs, held
        texts = dict.fromkeys(text for pair in [*pairs, *held] for text in pair[:2])
        tokens = encoder.tokenize(list(texts))
        self.cut = sum(len(found.ids) > self._window for found in tokens)
        self._ids = {text: _first_tokens(found, self._window) for text, found in zip(texts, tokens, strict=True)}
        self._order = lru_cache(2)(self._shuffled)

    def _shuffled(self, number: int) -> list[list[TextPair]]:
        """The batches of one pass over all pairs, each of pairs of similar length (sorted in pools of 16 batches)."""
        size = self._options.batch
        rng = np.random.default_rng([self._options.seed, number, 2])
        order = [self._pairs[place] for place in rng.permutation(len(self._pairs))]
        batches = []
        for begin in range(0, len(order), 16 * size):
            pool = sorted(order[begin : begin + 16 * size], key=self._length)
            batches += [pool[place : place + size] for place in range(0, len(pool), size)]
        return [batches[place] for place in rng.permutation(len(batches))]

    def _length(self, pair: TextPair) -> int:
        return len(self._ids[pair.first]) + len(self._ids[pair.second])

    def batches(self, epoch: int) -> list[list[TextPair]]:
        """One pass, or the next `steps` batches of as many passes as it takes."""
        whole = len(self._order(0))
        steps = self._options.steps or whole
        numbers = range(epoch * steps, (epoch + 1) * steps)
        return [self._order(number // whole)[number % whole] for number in numbers]

    def _outputs(self, batch: Sequence[TextPair]) -> Tensor:
        rows = [self._ids[text] for pair in batch for text in pair[:2]]
        vectors = self.module.vectors(rows, self._pad)
        return self.module(vectors[0::2], vectors[1::2]).float()

    def _loss_of(self, outputs: Tensor, batch: Sequence[TextPair]) -> Tensor:
        targets = torch.tensor([pair.target for pair in batch], device=outputs.device)
        if outputs.ndim == 2:
            return functional.cross_entropy(outputs, targets.long())
        return functional.mse_loss(outputs, targets)

    def loss(self, batch: Sequence[TextPair]) -> Tensor:
        return self._loss_of(self._outputs(batch), batch)

    def validate(self) -> dict[str, float]:
        """Loss on the held-out pairs; accuracy of labels, or Pearson's correlation with scores."""
        self.module.eval()
        ordered = sorted(self._held, key=self._length)
        with torch.inference_mode():
            parts = [self._outputs(ordered[place : place + 64]) for place in range(0, len(ordered), 64)]
        outputs = torch.cat(parts)
        found = {"validation_loss": float(self._loss_of(outputs, ordered))}
        targets = np.array([pair.target for pair in ordered])
        if outputs.ndim == 2:
            found["validation_accuracy"] = float(np.mean(outputs.argmax(dim=1).cpu().numpy() == targets))
        elif len(ordered) > 2 and np.ptp(targets) > 0:
            found["validation_pearson"] = float(np.corrcoef(outputs.cpu().numpy(), targets)[0, 1])
        return found


def _first_tokens(tokens: Tokens, window: int) -> list[int]:
    """Ids of the tokens that fit into the window, with the special tokens around them."""
    ids, extra = tokens.ids.tolist(), len(tokens.ids) - window
    if extra <= 0:
        return ids
    end = int(np.flatnonzero(~tokens.special)[-1]) + 1
    return ids[: end - extra] + ids[end:]
