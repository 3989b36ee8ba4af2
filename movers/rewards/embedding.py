"""Rewards on a generator's own token embeddings, without a second encoder (Jin & Gildea 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from movers.errors import InputError
from movers.inputs import check_choice
from movers.rewards.generator import load_generator
from movers.rewards.messages import has_words, text_of, texts_of
from movers.scores.tensors import TensorAlignment, bertscore_tensors

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["EmbeddingReward", "embedding_reward"]

_TEXTS_KEPT = 1 << 16


class EmbeddingReward:
    """F1 between the token embeddings of completions and references, in 0–1.

    Called with keywords, as TRL's trainers do, it answers a list; `score_texts` and `score_ids` answer tensors.
    """

    lower = 0.0

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        alignment: TensorAlignment,
        reference_column: str,
        threads: int | None,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._alignment = alignment
        self._column = reference_column
        self._threads = threads
        special = getattr(tokenizer, "all_special_ids", None) or _special_ids(model)
        self._special = frozenset(special)
        self._kept: dict[str, list[int]] = {}
        self.__name__ = f"embedding_{alignment}"

    def __call__(
        self, *, completions: object, completion_ids: Sequence[Sequence[int]] | None = None, **columns: object
    ) -> list[float | None]:
        """One reward per completion; None where the row has no reference. `completion_ids` save tokenizing."""
        if isinstance(completions, str) or not isinstance(completions, Sequence):
            raise InputError(f"{self.__name__}: completions: expected a list, but got {type(completions).__name__}")
        texts = [text_of(self.__name__, "completions", str(row), value) for row, value in enumerate(completions)]
        if self._column not in columns:
            raise InputError(f"{self.__name__}: expected a column {self._column!r} with references, but got none")
        groups = texts_of(self.__name__, self._column, columns[self._column], len(texts))
        pairs = [(row, reference) for row, group in enumerate(groups) if has_words(texts[row]) for reference in group]
        found: list[float | None] = [self.lower if group else None for group in groups]
        if not pairs:
            return found
        ids = [self.encode(texts[row]) if completion_ids is None else list(completion_ids[row]) for row, _ in pairs]
        scores = self.score_ids(ids, [self.encode(reference) for _, reference in pairs]).tolist()
        for (row, _), value in zip(pairs, scores, strict=True):
            found[row] = max(found[row] or self.lower, value)
        return found

    def score_texts(self, completions: Sequence[str], references: Sequence[str]) -> Tensor:
        """Rewards (B,) of texts; one without a word earns 0."""
        import torch

        scores = self.score_ids([self.encode(text) for text in completions], [self.encode(text) for text in references])
        spoken = torch.tensor([has_words(text) for text in completions], device=scores.device)
        return torch.where(spoken, scores, self.lower)

    def score_ids(
        self, completions: Sequence[Sequence[int]] | Tensor, references: Sequence[Sequence[int]] | Tensor
    ) -> Tensor:
        """Rewards (B,) of token ids, as lists or padded tensors; special tokens carry no mass."""
        import torch

        table = self._model.get_input_embeddings().weight
        with torch.no_grad():
            sides = [self._embed(ids, table) for ids in (completions, references)]
            scores = bertscore_tensors(*sides[0], *sides[1], alignment=self._alignment, threads=self._threads)[2]
            return scores.clamp_min(self.lower)

    def encode(self, text: str) -> list[int]:
        """Ids of a text's tokens; kept, because the same references come again."""
        if self._tokenizer is None:
            raise InputError(f"{self.__name__}: tokenizer: expected one for texts, but got None")
        found = self._kept.pop(text, None)
        if found is None:
            found = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        self._kept[text] = found
        if len(self._kept) > _TEXTS_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _embed(self, ids: Sequence[Sequence[int]] | Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (B, n, d) and mask (B, n)."""
        import torch

        rows = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        kept = [[token for token in row if token not in self._special] for row in rows]
        width = max(1, max(map(len, kept), default=1))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in kept], device=table.device)
        lengths = torch.tensor([len(row) for row in kept], device=table.device)
        mask = torch.arange(width, device=table.device) < lengths[:, None]
        return table[padded], mask


def _special_ids(model: PreTrainedModel) -> Iterable[int]:
    config = model.config
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        value = getattr(config, name, None)
        yield from value if isinstance(value, list) else [] if value is None else [value]


def embedding_reward(
    model: PreTrainedModel | str,
    alignment: TensorAlignment = "hungarian",
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    reference_column: str = "reference",
    threads: int | None = None,
) -> EmbeddingReward:
    """F1 on the token embeddings (lowest layer) of the model that is being trained.

    Parameters
    ----------
    model : transformers model, or its folder or Hub id
        Its input embeddings are read at every call, so that they may be trained too.
    alignment : {"hungarian", "emd", "greedy"}
        F_disc, F_cont or F_BERT of Jin & Gildea 2022.
    tokenizer : optional
        For texts; that of the model's folder if the model was given by name. Ids need none.
    reference_column : str
        Column with one reference or several per row, when called by a trainer.
    threads : int, optional
        Threads that align; all processors by default.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=20, eos_token_id=0, bos_token_id=0)
    >>> reward = embedding_reward(transformers.GPT2LMHeadModel(config))
    >>> reward.score_ids([[3, 4, 5, 0], [3, 3, 3, 0]], [[5, 3, 4], [5, 3, 4]]).tolist()[0]
    1.0
    """
    check_choice("embedding_reward", "alignment", alignment, ("hungarian", "emd", "greedy"))
    if isinstance(model, str):
        loaded = load_generator(model)
        model, tokenizer = loaded.model, tokenizer or loaded.tokenizer
    return EmbeddingReward(model, tokenizer, alignment, reference_column, threads)
