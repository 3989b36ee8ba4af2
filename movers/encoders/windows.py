"""Windows over long texts, batches of windows, and texts reassembled from passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

Truncation = Literal["window", "error", "cut"]
Encoded = TypeVar("Encoded")

# Models whose positions start at pad_token_id + 1: that many rows of their position table are unused.
_OFFSET_POSITIONS = {"camembert", "data2vec-text", "longformer", "mpnet", "roberta", "roberta-prelayernorm",
                     "xlm-roberta", "xlm-roberta-xl", "xmod"}  # fmt: skip


class Window(NamedTuple):
    """A window over the body of a text (its non-special tokens), and the tokens that take their vectors from it."""

    text: int
    begin: int
    end: int
    take_begin: int
    take_end: int


def windows_over(text: int, body: int, room: int) -> list[Window]:
    """Windows over `body` tokens, `room` at a time, each overlapping the next by half.

    The middle of the overlap divides two neighbours: each token takes its vector from where it has more context.

    >>> [(window.begin, window.end, window.take_begin, window.take_end) for window in windows_over(0, 10, 4)]
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 7), (6, 10, 7, 10)]
    """
    if body <= room:
        return [Window(text, 0, body, 0, body)]
    step = max(1, room // 2)
    begins = list(range(0, body - room, step)) + [body - room]
    middles = [(left + room + right) // 2 for left, right in pairwise(begins)]
    return [
        Window(text, begin, begin + room, first, last)
        for begin, first, last in zip(begins, [0, *middles], [*middles, body], strict=True)
    ]


def batches(windows: Iterable[Window], frame: int, budget: int, size: int | None = None) -> Iterator[list[Window]]:
    """Batch windows, longest first: `size` at a time, or by default as many as fit into `budget` tokens.

    The first window of a batch determines the padded length; `frame` special tokens are added to each window.
    """
    batch: list[Window] = []
    width = 0
    for window in windows:
        if batch and (len(batch) == size if size else (len(batch) + 1) * width > budget):
            yield batch
            batch = []
        if not batch:
            width = window.end - window.begin + frame
        batch.append(window)
    if batch:
        yield batch


def window_limit(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Maximum number of tokens of a model, including special ones."""
    stated = getattr(tokenizer, "model_max_length", None)
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions and config.model_type in _OFFSET_POSITIONS:
        positions -= (config.pad_token_id or 0) + 1
    # Some tokenizers state 10^30.
    return min((limit for limit in (stated, positions) if limit and 0 < limit < 1_000_000), default=512)


def group_when_complete(
    passages: Sequence[Sequence[str]], encode: Callable[[list[str]], Iterable[tuple[int, Encoded]]]
) -> Iterator[tuple[int, list[Encoded]]]:
    """Yield `(index, encoded passages)` of every text as soon as its last passage is ready, in any order.

    `encode` takes the distinct passages and yields `(position, encoded)` of each, also in any order.
    """
    texts_with: defaultdict[str, list[int]] = defaultdict(list)
    left = [len(set(parts)) for parts in passages]
    for index, parts in enumerate(passages):
        for passage in dict.fromkeys(parts):
            texts_with[passage].append(index)
        if not parts:
            yield index, []
    distinct, ready = list(texts_with), dict[str, Encoded]()
    for position, encoded in encode(distinct):
        ready[distinct[position]] = encoded
        for index in texts_with[distinct[position]]:
            left[index] -= 1
            if not left[index]:
                yield index, [ready[passage] for passage in passages[index]]
