"""Texts → one vector a token, in context, by any transformer that `AutoModel` loads.

A text longer than the model's window is read through windows that overlap by half; every token takes its vector from
the window in which it has most context. Nothing is cut unless the caller asks for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.cache import VectorCache
from movers.encoders.layers import Aggregation

if TYPE_CHECKING:
    import torch

__all__ = ["ContextualEncoder", "EncodedText", "Tokens", "Truncation"]

Truncation = Literal["window", "error", "cut"]
Vectors = NDArray[np.float32]

# Models that number positions from pad_token_id + 1: their table has that many rows no token can use.
_OFFSET_POSITIONS = {
    "camembert",
    "data2vec-text",
    "longformer",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
_DEFAULT_WINDOW = 512
_WANTED_AT_ONCE = 4
# Models trained on shorter sentences than their positions allow: the window of sentence vectors.
_SENTENCE_WINDOW = {"all-MiniLM-L6-v2": 256, "all-mpnet-base-v2": 384}


class Tokens(NamedTuple):
    """The tokens of a text, special ones included.

    Attributes
    ----------
    ids : (n,) ids in the vocabulary
    starts, ends : (n,) character offsets in the text; 0, 0 for special tokens
    words : (n,) number of the word a token belongs to, by the tokenizer's own word ids; −1 for special tokens
    special : (n,) whether it is a special token
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    words: NDArray[np.int64]
    special: NDArray[np.bool_]


class EncodedText(NamedTuple):
    """Tokens of a text with their (n, d) vectors; `cut` tells that tokens were left out on request."""

    tokens: Tokens
    vectors: Vectors
    cut: bool = False

    @property
    def nbytes(self) -> int:
        return int(self.vectors.nbytes + 5 * self.tokens.ids.nbytes)


@dataclass
class _Piece:
    """A window over a text: its share of the body's tokens, and which of them it answers for."""

    text: int
    begin: int
    end: int
    take_begin: int
    take_end: int


class ContextualEncoder:
    """A transformer and its tokenizer, with what movers needs to know about them.

    Parameters
    ----------
    model : transformers model
        Encoder, or encoder–decoder (then its encoder is used).
    tokenizer : transformers fast tokenizer
    name : str
        How signatures call it.
    digest : str
        Identifies the weights.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        digest: str,
        cache: VectorCache | None = None,
    ) -> None:
        from tokenizers import Tokenizer

        config = model.config
        self.model = model.get_encoder() if getattr(config, "is_encoder_decoder", False) else model
        self.name = name
        self.digest = digest
        self.identity = f"{name}@{digest[:8]}"
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(
                f"model: {name}: expected a fast tokenizer (with character offsets), but got {type(tokenizer).__name__}"
            )
        definition = backend.to_str()
        # A copy: files may carry truncation and padding, and switching them off must not change the caller's object.
        self._tokenizer = Tokenizer.from_str(definition)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.tokenizer_digest = hashlib.sha256(self._tokenizer.to_str().encode("utf-8")).hexdigest()[:16]
        self._prefix, self._suffix = self._special_frame()
        self._pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0)
        self.max_window = _window_limit(config, tokenizer)
        self.sentence_window = min(self.max_window, _SENTENCE_WINDOW.get(name, self.max_window))
        layers = getattr(config, "num_hidden_layers", None) or getattr(config, "num_layers", None)
        self.states = int(layers) + 1 if layers else 0
        self.cache = VectorCache() if cache is None else cache
        self.objects: Any = None
        self._wanted: dict[Aggregation, None] = {}
        self._at_once = _WANTED_AT_ONCE
        self._lock = threading.Lock()

    @property
    def wanted(self) -> list[Aggregation]:
        """What metrics of this process make of the layers: a pass over a text serves all of them."""
        return list(self._wanted)

    def want(self, *aggregations: Aggregation) -> None:
        """Announce aggregations: several at a time are all computed together, of single ones the last few."""
        if len(aggregations) > 1:
            self._at_once = max(_WANTED_AT_ONCE, len(aggregations))
        for aggregation in aggregations:
            self._wanted.pop(aggregation, None)
            self._wanted[aggregation] = None
        while len(self._wanted) > self._at_once:
            self._wanted.pop(next(iter(self._wanted)))

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _special_frame(self) -> tuple[list[int], list[int]]:
        """Special tokens that the tokenizer puts before and after a text."""
        probe = self._tokenizer.encode("a")
        body = [place for place, special in enumerate(probe.special_tokens_mask) if not special]
        if not body:
            return list(probe.ids), []
        return list(probe.ids[: body[0]]), list(probe.ids[body[-1] + 1 :])

    def window_for(self, window: int | None) -> int:
        """The window to use, with room for at least two tokens beside the special ones."""
        least = len(self._prefix) + len(self._suffix) + 2
        chosen = self.max_window if window is None else window
        if not least <= chosen <= self.max_window:
            raise ValueError(f"window: expected {least} to {self.max_window} tokens for {self.name}, but got {chosen}")
        return chosen

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each text, special ones included, uncut."""
        return [
            self._frame(encoding) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def _frame(self, encoding: Any) -> Tokens:
        before, after = len(self._prefix), len(self._suffix)
        total = before + len(encoding.ids) + after
        ids = np.array([*self._prefix, *encoding.ids, *self._suffix], dtype=np.int64)
        offsets = np.zeros((total, 2), dtype=np.int64)
        words = np.full(total, -1, dtype=np.int64)
        special = np.ones(total, dtype=bool)
        if encoding.ids:
            offsets[before : total - after] = encoding.offsets
            words[before : total - after] = [-1 if word is None else word for word in encoding.word_ids]
            special[before : total - after] = False
        return Tokens(ids, offsets[:, 0], offsets[:, 1], words, special)

    def encode(
        self,
        texts: Sequence[str],
        aggregation: Aggregation,
        *,
        also: Sequence[Aggregation] = (),
        batch_tokens: int | None = None,
        truncation: Truncation = "window",
        window: int | None = None,
    ) -> Iterator[tuple[int, EncodedText]]:
        """Yield `(index, encoded text)` for every text as soon as it is ready, in any order.

        Batches hold at most `batch_tokens` tokens, padding included, longest texts first. `also` names aggregations
        that other metrics will ask for: they are computed in the same pass and kept in the cache, while it has room.
        """
        limit = self.window_for(window)
        missing = []
        for index, text in enumerate(texts):
            found = self.cache.get((aggregation, limit, truncation == "cut", text))
            # A long text that was read through windows before is an error all the same.
            if found is None or (truncation == "error" and len(found.tokens.ids) > limit):
                missing.append(index)
            else:
                yield index, found
        wanted = list(dict.fromkeys([aggregation, *also]))
        chosen = [texts[index] for index in missing]
        for place, tokens, vectors, cut in self._forward(chosen, wanted, limit, batch_tokens, truncation):
            results = [EncodedText(tokens, part, cut) for part in vectors]
            for kind, result in zip(wanted, results, strict=True):
                self.cache.put((kind, limit, truncation == "cut", chosen[place]), result, result.nbytes)
            yield missing[place], results[0]

    def sentence_vectors(
        self, texts: Sequence[str], *, batch_tokens: int | None = None, window: int | None = None
    ) -> Vectors:
        """(n, d) unit vectors of n texts: the mean of all tokens' last hidden states, special tokens included."""
        limit = self.sentence_window if window is None else self.window_for(window)
        distinct = list(dict.fromkeys(texts))
        rows: dict[str, Vectors] = {}
        for place, _, (vectors,), _ in self._forward(distinct, [Aggregation("last")], limit, batch_tokens, "window"):
            mean = vectors.mean(axis=0, dtype=np.float64)
            rows[distinct[place]] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        if not rows:
            return np.zeros((0, int(self.model.config.hidden_size)), np.float32)
        return np.stack([rows[text] for text in texts])

    # -----------------------------------------------------------------------------------------------------------------

    def _forward(
        self,
        texts: Sequence[str],
        wanted: Sequence[Aggregation],
        limit: int,
        batch_tokens: int | None,
        truncation: Truncation,
    ) -> Iterator[tuple[int, Tokens, list[Vectors], bool]]:
        if not texts:
            return
        frame = len(self._prefix) + len(self._suffix)
        room = limit - frame
        documents = self.tokenize(texts)
        cut = [False] * len(texts)
        for index, tokens in enumerate(documents):
            body = len(tokens.ids) - frame
            if body > room and truncation == "error":
                raise ValueError(
                    f"truncation='error': a text has {len(tokens.ids)} tokens, the window of {self.name} {limit}: "
                    f"{texts[index][:60]!r}…"
                )
            if body > room and truncation == "cut":
                documents[index] = _cut(tokens, len(self._prefix), room, len(self._suffix))
                cut[index] = True
        if any(cut):
            warnings.warn(
                f"{sum(cut)} text(s) were cut to the window of {limit} tokens (truncation='cut')", stacklevel=2
            )
        pieces = [
            piece for index, tokens in enumerate(documents) for piece in _pieces(index, len(tokens.ids) - frame, room)
        ]
        pieces.sort(key=lambda piece: piece.begin - piece.end)  # longest first; the sort is stable
        left = [0] * len(texts)
        for piece in pieces:
            left[piece.text] += 1
        # A text of several windows waits until the last of them has been read.
        waiting: dict[int, list[Vectors]] = {}
        for batch in _batches(pieces, frame, self._budget(batch_tokens)):
            for piece, parts in zip(batch, self._run(batch, documents, wanted), strict=True):
                index = piece.text
                if left[index] == 1 and index not in waiting:
                    yield index, documents[index], parts, cut[index]
                    continue
                whole = waiting.get(index)
                if whole is None:
                    size = len(documents[index].ids)
                    whole = waiting[index] = [np.zeros((size, part.shape[1]), np.float32) for part in parts]
                body = len(documents[index].ids) - frame
                for target, part in zip(whole, parts, strict=True):
                    self._place(target, part, piece, body)
                left[index] -= 1
                if not left[index]:
                    yield index, documents[index], waiting.pop(index), cut[index]

    def _place(self, target: Vectors, part: Vectors, piece: _Piece, body: int) -> None:
        before = len(self._prefix)
        shift = before - piece.begin
        target[before + piece.take_begin : before + piece.take_end] = part[
            shift + piece.take_begin : shift + piece.take_end
        ]
        if piece.begin == 0:
            target[:before] = part[:before]
        if piece.end == body and self._suffix:
            target[-len(self._suffix) :] = part[-len(self._suffix) :]

    def _budget(self, batch_tokens: int | None) -> int:
        if batch_tokens is not None:
            return batch_tokens
        return 2048 if self.device.type == "cpu" else 32768

    def _run(
        self, batch: list[_Piece], documents: list[Tokens], wanted: Sequence[Aggregation]
    ) -> Iterator[list[Vectors]]:
        import torch

        before, after = len(self._prefix), len(self._suffix)
        rows = []
        for piece in batch:
            ids = documents[piece.text].ids
            rows.append(
                np.concatenate([ids[:before], ids[before + piece.begin : before + piece.end], ids[len(ids) - after :]])
            )
        lengths = [len(row) for row in rows]
        padded = np.full((len(rows), max(lengths)), self._pad, dtype=np.int64)
        mask = np.zeros(padded.shape, dtype=np.int64)
        for place, row in enumerate(rows):
            padded[place, : len(row)] = row
            mask[place, : len(row)] = 1
        only_last = all(kind.kind == "last" for kind in wanted)
        with torch.inference_mode(), self._lock, _evaluating(self.model):
            device = self.device
            attention = torch.from_numpy(mask).to(device)
            output = self.model(
                input_ids=torch.from_numpy(padded).to(device),
                attention_mask=attention,
                output_hidden_states=not only_last,
            )
            keep = attention.bool()
            vectors = [self._combine(output, kind, keep) for kind in wanted]
        ends = np.cumsum(lengths)
        for begin, end in zip(ends - lengths, ends, strict=True):
            yield [part[begin:end].copy() for part in vectors]

    def _combine(self, output: Any, kind: Aggregation, keep: torch.Tensor) -> Vectors:
        import torch

        if kind.kind == "last":
            layers = output.last_hidden_state[keep].unsqueeze(0)
        else:
            states = output.hidden_states
            layers = torch.stack([states[number][keep] for number in kind.needed(len(states))])
        return kind.combine(layers.float()).cpu().numpy()


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """No dropout inside; a model that is being trained goes on as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _cut(tokens: Tokens, before: int, room: int, after: int) -> Tokens:
    total = len(tokens.ids)
    kept = np.r_[0 : before + room, total - after : total]
    ids, starts, ends, words, special = tokens
    return Tokens(ids[kept], starts[kept], ends[kept], words[kept], special[kept])


def _pieces(index: int, body: int, room: int) -> list[_Piece]:
    """Windows over `body` tokens, `room` at a time, each overlapping the next by half.

    Between two neighbours the middle of the overlap divides: on its left the left window has more context for a token,
    on its right the right one.

    >>> [(piece.begin, piece.end, piece.take_begin, piece.take_end) for piece in _pieces(0, 10, 4)]
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 7), (6, 10, 7, 10)]
    """
    if body <= room:
        return [_Piece(index, 0, body, 0, body)]
    step = max(1, room // 2)
    begins = list(range(0, body - room, step)) + [body - room]
    pieces = []
    for place, begin in enumerate(begins):
        end = begin + room
        first = 0 if place == 0 else (begin + begins[place - 1] + room) // 2
        last = body if place == len(begins) - 1 else (begins[place + 1] + end) // 2
        pieces.append(_Piece(index, begin, end, first, last))
    return pieces


def _batches(pieces: list[_Piece], frame: int, budget: int) -> Iterator[list[_Piece]]:
    """Pieces come longest first, so the first of a batch decides how long its rows are."""
    batch: list[_Piece] = []
    width = 0
    for piece in pieces:
        if batch and (len(batch) + 1) * width > budget:
            yield batch
            batch = []
        if not batch:
            width = piece.end - piece.begin + frame
        batch.append(piece)
    if batch:
        yield batch


def _window_limit(config: Any, tokenizer: Any) -> int:
    limits = []
    stated = getattr(tokenizer, "model_max_length", None)
    if isinstance(stated, int) and 0 < stated < 1_000_000:  # some tokenizers state 10^30
        limits.append(stated)
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if isinstance(positions, int) and positions > 0:
        if config.model_type in _OFFSET_POSITIONS:
            positions -= (config.pad_token_id or 0) + 1
        limits.append(positions)
    return min(limits) if limits else _DEFAULT_WINDOW
