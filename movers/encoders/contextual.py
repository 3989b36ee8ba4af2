"""Contextual encoders: one vector per token, from any transformer that `AutoModel` loads.

A text longer than the model's window is read in windows that overlap by half; every token takes its vector from the
window in which it has most context. Texts are truncated only on request.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.cache import VECTORS, VectorCache
from movers.encoders.checks import check_vectors, surface_vectors
from movers.encoders.layers import Aggregation
from movers.encoders.windows import Truncation, Window, batches, window_limit, windows_over
from movers.errors import InputError, TextError
from movers.threads import SafeLock

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_outputs import BaseModelOutput

__all__ = ["ContextualEncoder", "EncodedText", "Tokens"]

Vectors = NDArray[np.float32]

# Window of sentence vectors, for models trained on shorter inputs than their positions allow.
_SENTENCE_WINDOW = {"all-MiniLM-L6-v2": 256, "all-mpnet-base-v2": 384}


class Tokens(NamedTuple):
    """The tokens of a text, special ones included.

    Attributes
    ----------
    ids : (n,) ids in the vocabulary
    starts, ends : (n,) character offsets in the text; 0, 0 for special tokens
    words : (n,) index of the word a token belongs to, by the tokenizer's word ids; −1 for special tokens
    special : (n,) whether it is a special token
    unknown : (n,) whether it is missing from the vocabulary
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    words: NDArray[np.int64]
    special: NDArray[np.bool_]
    unknown: NDArray[np.bool_]


class EncodedText(NamedTuple):
    """Tokens of a text with their (n, d) vectors; `cut` if it was truncated."""

    tokens: Tokens
    vectors: Vectors
    cut: bool = False

    @property
    def nbytes(self) -> int:
        return int(self.vectors.nbytes + 5 * self.tokens.ids.nbytes)


class ContextualEncoder:
    """A transformer and its tokenizer.

    Parameters
    ----------
    model : transformers model
        Encoder, or encoder–decoder (then its encoder is used).
    tokenizer : transformers fast tokenizer
    name : str
        Name in signatures.
    digest : str
        Identifies the weights.
    cache : VectorCache
        Cache of text vectors; by default shared by all encoders of the process.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        digest: str,
        cache: VectorCache = VECTORS,
    ) -> None:
        from tokenizers import Tokenizer

        config = model.config
        self.model = model.get_encoder() if getattr(config, "is_encoder_decoder", False) else model
        self.objects = model, tokenizer
        self.name = name
        self.digest = digest
        self.identity = f"{name}@{digest[:8]}"
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InputError(
                f"model: {name}: expected a fast tokenizer (with character offsets), but got {type(tokenizer).__name__}"
            )
        definition = backend.to_str()
        # A copy: truncation and padding from the tokenizer's files are disabled without changing the caller's object.
        self._tokenizer = Tokenizer.from_str(definition)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.tokenizer_digest = hashlib.sha256(self._tokenizer.to_str().encode("utf-8")).hexdigest()[:16]
        self._prefix, self._suffix = self._special_frame()
        self._unknown = self._unknown_ids(tokenizer.unk_token_id)
        self._pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0)
        self.max_window = window_limit(config, tokenizer)
        self.sentence_window = min(self.max_window, _SENTENCE_WINDOW.get(name, self.max_window))
        layers = getattr(config, "num_hidden_layers", None) or getattr(config, "num_layers", None)
        self.states = int(layers) + 1 if layers else 0
        self.cache = cache
        # Distinguishes this encoder's vectors in a shared cache.
        self._key = (digest, self.tokenizer_digest, self.dtype, str(self.device))
        self._lock = SafeLock()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> str:
        """Precision of the model, for signatures; a model passed as an object keeps its own."""
        return str(self.model.dtype).removeprefix("torch.")

    def _special_frame(self) -> tuple[list[int], list[int]]:
        """Special tokens that the tokenizer adds before and after a text."""
        probe = self._tokenizer.encode("a")
        body = [place for place, special in enumerate(probe.special_tokens_mask) if not special]
        if not body:
            return list(probe.ids), []
        return list(probe.ids[: body[0]]), list(probe.ids[body[-1] + 1 :])

    def _unknown_ids(self, named: int | None) -> list[int]:
        """Ids of unknown tokens: the tokenizer's `unk_token`, and what its model emits."""
        algorithm = self._tokenizer.model
        given = getattr(
            algorithm, "unk_token", None
        )  # GPT-2 declares its end-of-text token as unknown, which no text contains
        ids = [named, self._tokenizer.token_to_id(given) if given else getattr(algorithm, "unk_id", None)]
        return [int(number) for number in ids if number is not None]

    def window_for(self, window: int | None) -> int:
        """The window to use, with room for at least two tokens besides the special ones."""
        least = len(self._prefix) + len(self._suffix) + 2
        chosen = self.max_window if window is None else window
        if not least <= chosen <= self.max_window:
            raise InputError(f"window: expected {least} to {self.max_window} tokens for {self.name}, but got {chosen}")
        return chosen

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each text, special ones included, without truncation."""
        return [
            self._frame(encoding) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def count_pieces(self, words: Sequence[str]) -> int:
        """Number of subwords of the words, without special tokens."""
        return sum(map(len, self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)))

    def _frame(self, encoding: Encoding) -> Tokens:
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
        return Tokens(ids, offsets[:, 0], offsets[:, 1], words, special, np.isin(ids, self._unknown) & ~special)

    def encode(
        self,
        texts: Sequence[str],
        aggregation: Aggregation,
        *,
        extra: Sequence[Aggregation] = (),
        batch_tokens: int | None = None,
        truncation: Truncation = "window",
        window: int | None = None,
    ) -> Iterator[tuple[int, EncodedText]]:
        """Yield `(index, encoded text)` for every text as soon as it is ready, in any order.

        Batches hold at most `batch_tokens` tokens, padding included, longest texts first. `extra` names aggregations
        that other metrics will need: they are computed in the same forward pass and cached, if there is room.
        """
        limit = self.window_for(window)
        missing = []
        for index, text in enumerate(texts):
            found = self.cache.get((self._key, aggregation, limit, truncation == "cut", text))
            # With truncation="error" a long text is an error even if its vectors are cached.
            if not isinstance(found, EncodedText) or (truncation == "error" and len(found.tokens.ids) > limit):
                missing.append(index)
            else:
                yield index, found
        wanted = list(dict.fromkeys([aggregation, *extra]))
        chosen = [texts[index] for index in missing]
        for place, tokens, vectors, cut in self._forward(chosen, wanted, limit, batch_tokens, truncation):
            results = [EncodedText(tokens, self._checked(chosen[place], tokens, part), cut) for part in vectors]
            for kind, result in zip(wanted, results, strict=True):
                self.cache.put((self._key, kind, limit, truncation == "cut", chosen[place]), result, result.nbytes)
            yield missing[place], results[0]

    def sentence_vectors(
        self, texts: Sequence[str], *, batch_tokens: int | None = None, window: int | None = None
    ) -> Vectors:
        """(n, d) unit vectors of n texts: the mean of all tokens' last hidden states, special tokens included."""
        limit = self.sentence_window if window is None else self.window_for(window)
        distinct = list(dict.fromkeys(texts))
        rows: dict[str, Vectors] = {}
        for place, tokens, parts, _ in self._forward(distinct, [Aggregation("last")], limit, batch_tokens, "window"):
            mean = self._checked(distinct[place], tokens, parts[0]).mean(axis=0, dtype=np.float64)
            rows[distinct[place]] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        if not rows:
            return np.zeros((0, int(self.model.config.hidden_size)), np.float32)
        return np.stack([rows[text] for text in texts])

    # -----------------------------------------------------------------------------------------------------------------

    def _checked(self, text: str, tokens: Tokens, vectors: Vectors) -> Vectors:
        """Check vectors, and replace those of unknown subwords by `surface_vectors`."""
        vectors = check_vectors(self.identity, text, vectors, len(tokens.ids))
        places = np.flatnonzero(tokens.unknown)
        if len(places):
            surfaces = [text[tokens.starts[place] : tokens.ends[place]] for place in places]
            lengths = np.linalg.norm(vectors[places].astype(np.float64), axis=1)
            vectors = vectors.copy()
            vectors[places] = surface_vectors(surfaces, lengths, vectors.shape[1])
        return vectors

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
                raise TextError(
                    f"truncation='error': a text has {len(tokens.ids)} tokens, the window of {self.name} {limit}: "
                    f"{texts[index][:60]!r}…",
                    texts[index],
                )
            if body > room and truncation == "cut":
                documents[index] = _cut(tokens, len(self._prefix), room, len(self._suffix))
                cut[index] = True
        if any(cut):
            warnings.warn(
                f"{sum(cut)} text(s) were cut to the window of {limit} tokens (truncation='cut')", stacklevel=2
            )
        pieces = [
            piece
            for index, tokens in enumerate(documents)
            for piece in windows_over(index, len(tokens.ids) - frame, room)
        ]
        pieces.sort(key=lambda piece: piece.begin - piece.end)  # longest first; the sort is stable
        left = [0] * len(texts)
        for piece in pieces:
            left[piece.text] += 1
        # A text of several windows is complete when the last of them has been read.
        waiting: dict[int, list[Vectors]] = {}
        for batch in batches(pieces, frame, self._budget(batch_tokens)):
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

    def _place(self, target: Vectors, part: Vectors, piece: Window, body: int) -> None:
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
        return 1024 if self.device.type == "cpu" else 32768  # more would not fit into the CPU cache

    def _run(
        self, batch: list[Window], documents: list[Tokens], wanted: Sequence[Aggregation]
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

    def _combine(self, output: BaseModelOutput, kind: Aggregation, keep: torch.Tensor) -> Vectors:
        """(n, D) vectors of the n tokens to keep; padding takes part until then: choosing once is cheaper."""
        places = keep.flatten().nonzero().squeeze(1)
        states = (output.last_hidden_state,) if kind.kind == "last" else output.hidden_states
        layers = [states[number].flatten(0, 1).float() for number in kind.needed(len(states))]
        return kind.combine(layers).index_select(0, places).cpu().numpy()


@contextlib.contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    """Evaluation mode inside; the previous mode is restored afterwards."""
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
    ids, starts, ends, words, special, unknown = tokens
    return Tokens(ids[kept], starts[kept], ends[kept], words[kept], special[kept], unknown[kept])
