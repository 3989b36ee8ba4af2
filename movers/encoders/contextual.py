"""Contextual encoders: one vector per token, from any transformer that `AutoModel` loads.

A text longer than the model's window is read in windows that overlap by half; every token takes its vector from the
window in which it has most context. Texts are truncated only on request.
"""

from __future__ import annotations

import hashlib
import threading
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from movers.encoders.cache import VECTORS, VectorCache
from movers.encoders.layers import Aggregation
from movers.encoders.partial import find_layers, lower_states
from movers.encoders.static import check_vectors
from movers.encoders.wheels import MINILM, MPNET
from movers.encoders.windows import Truncation, Window, batches, window_limit, windows_over
from movers.errors import InputError, TextError
from movers.texts import split_pieces, token_spans

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Vectors = NDArray[np.float32]

# Window of sentence vectors, for models trained on shorter inputs than their positions allow.
_SENTENCE_WINDOW = {"all-MiniLM-L6-v2": 256, "all-mpnet-base-v2": 384}
_ACCENTS = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}]\p{M}*)\p{M}")
_VISIBLE = regex.compile(r"[^\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]")


class Tokens(NamedTuple):
    """The n tokens of a text, special ones included, as columns (n,)."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]  # character offsets in the text; 0 for special tokens
    ends: NDArray[np.int64]
    words: NDArray[np.int64]  # number of the word that a token belongs to; −1 for special tokens
    special: NDArray[np.bool_]
    unknown: NDArray[np.bool_]  # missing from the vocabulary


class EncodedText(NamedTuple):
    """Tokens of a text with their (n, d) vectors; `cut` if it was truncated."""

    tokens: Tokens
    vectors: Vectors
    cut: bool = False


class ContextualEncoder:
    """A transformer (of an encoder–decoder, the encoder) and its fast tokenizer; `digest` identifies the weights.

    The weights of a `watched` model may change: `is_current` tells.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str, digest: str,
        cache: VectorCache = VECTORS, watched: bool = False,
    ) -> None:  # fmt: skip
        from tokenizers import Tokenizer

        config = model.config
        self.model = model.get_encoder() if getattr(config, "is_encoder_decoder", False) else model
        self.objects, self.name, self.digest, self.cache = (model, tokenizer), name, digest, cache
        self.identity = f"{name}@{digest[:16]}"
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InputError(f"model: {name}: expected a fast tokenizer, but got {type(tokenizer).__name__}")
        # A copy: truncation and padding from the tokenizer's files are disabled without changing the caller's object.
        self._tokenizer = Tokenizer.from_str(backend.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.tokenizer_digest = hashlib.sha256(self._tokenizer.to_str().encode("utf-8")).hexdigest()[:16]
        # Numbers of special tokens before and after a text.
        mask = [*self._tokenizer.encode("a").special_tokens_mask, 0]
        self._before = mask.index(0)
        self._after = max(0, sum(mask) - self._before)
        # Unknown is what the tokenizer declares, and what its algorithm emits: GPT-2 declares its end-of-text token.
        algorithm = self._tokenizer.model
        token = getattr(algorithm, "unk_token", None)
        emitted = self._tokenizer.token_to_id(token) if token else getattr(algorithm, "unk_id", None)
        self._unknown = [int(number) for number in (tokenizer.unk_token_id, emitted) if number is not None]
        self._pad = int(tokenizer.pad_token_id or 0)
        self.max_window = window_limit(config, tokenizer)
        self.sentence_window = min(self.max_window, _SENTENCE_WINDOW.get(name, self.max_window))
        layers = getattr(config, "num_hidden_layers", None) or getattr(config, "num_layers", None)
        self.states = int(layers) + 1 if layers else 0
        self._key = (digest, self.tokenizer_digest, self.dtype, str(self.device))  # in a shared cache
        self._lock = threading.Lock()
        self._layers: torch.nn.ModuleList | None = None  # once they were looked for
        self._looked_for_layers = False
        self._norms = self._weight_norms() if watched else None
        self._alone = False  # one text per forward pass
        self._alone = digest not in (MINILM.sha256, MPNET) and self._depends_on_batch()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> str:
        """Precision of the model, for signatures."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def is_current(self) -> bool:
        """Whether the weights are still those of the digest: a caller may train the model."""
        return self._norms is None or self._norms == self._weight_norms()

    def _weight_norms(self) -> list[float]:
        import torch

        return [float(torch.linalg.vector_norm(value.float())) for value in self.objects[0].state_dict().values()]

    def _depends_on_batch(self) -> bool:
        """Whether vectors depend on the other texts of a batch, as where pooling or convolution reads the padding."""
        texts = ["a", "a b c d e f g h"]
        documents, last = self.tokenize(texts), [Aggregation("last")]
        try:
            runs = [dict(self._forward(texts, documents, last, self.max_window, size)) for size in (2, 1, 1)]
        except (IndexError, RuntimeError) as error:
            raise InputError(f"model: {self.name}: cannot encode {texts[0]!r} alone: {error}") from error
        together, alone, again = (np.concatenate([run[0][0], run[1][0]]) for run in runs)
        tolerance = (1e-4 if self.dtype == "float32" else 0.05) * np.abs(alone).max()
        if np.abs(alone - again).max() > tolerance:
            raise InputError(f"model: {self.name}: expected equal vectors whenever a text is encoded")
        return bool(np.abs(alone - together).max() > tolerance)

    def window_for(self, window: int | None) -> int:
        """The window to use, with room for at least two tokens besides the special ones."""
        least = self._before + self._after + 2
        chosen = self.max_window if window is None else window
        if not least <= chosen <= self.max_window:
            raise InputError(f"window: expected {least} to {self.max_window} tokens for {self.name}, but got {chosen}")
        return chosen

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each text, special ones included, without truncation."""
        documents = []
        for text, encoding in zip(texts, self._tokenizer.encode_batch(list(texts)), strict=True):
            ids = np.array(encoding.ids, dtype=np.int64)
            starts, ends = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2).T
            words = np.array([-1 if word is None else word for word in encoding.word_ids], dtype=np.int64)
            special = np.array(encoding.special_tokens_mask, dtype=bool)
            unknown = np.array([number in self._unknown for number in encoding.ids], dtype=bool) & ~special
            tokens = Tokens(ids, starts, ends, words, special, unknown)
            if self._tokenizer.normalizer is not None and not text.isascii():
                tokens = self._restore_deleted(text, tokens)
            documents.append(tokens._replace(words=_word_numbers(text, tokens)))
        return documents

    def _restore_deleted(self, text: str, tokens: Tokens) -> Tokens:
        """Tokens with one unknown token for each word of which the tokenizer's normaliser deletes visible characters.

        Accents of Latin, Greek and Cyrillic letters may be deleted: that is the model's own reading of the word.
        """
        lost = {
            word
            for word in {span[0] for span in token_spans(text) if not span[0].isascii()}
            if _visible_count(self._tokenizer.normalizer.normalize_str(word)) < _visible_count(word)
        }
        for word, start, end in token_spans(text) if lost else []:
            if word not in lost:
                continue
            inside = np.flatnonzero((tokens.starts < end) & (tokens.ends > start) & ~tokens.special)
            begin, end = min([start, *tokens.starts[inside]]), max([end, *tokens.ends[inside]])
            place = np.count_nonzero(tokens.ends[: len(tokens.ids) - self._after] <= begin)
            values = (self._unknown or [self._pad])[0], begin, end, -1, False, True
            columns = zip(tokens, values, strict=True)
            tokens = Tokens._make(np.insert(np.delete(column, inside), place, value) for column, value in columns)
        return tokens

    def count_pieces(self, words: Sequence[str]) -> int:
        return sum(map(len, self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)))

    def encode(
        self, texts: Sequence[str], aggregation: Aggregation, *, extra: Sequence[Aggregation] = (),
        batch_size: int | None = None, truncation: Truncation = "window", window: int | None = None,
    ) -> Iterator[tuple[int, EncodedText]]:  # fmt: skip
        """Yield `(index, encoded text)` for every text as soon as it is ready, in any order.

        `extra` names aggregations that other metrics will need: they are computed in the same forward pass and cached.
        `batch_size` is the number of texts (or windows of long texts) per forward pass, by default as many as fit into
        a number of tokens; `window` is the number of tokens read at once, special ones included.
        """
        limit = self.window_for(window)
        missing = []
        for index, text in enumerate(texts):
            cached = self.cache.get((self._key, aggregation, limit, truncation == "cut", text))
            # With truncation="error" a long text is an error even if its vectors are cached.
            if not isinstance(cached, EncodedText) or (truncation == "error" and len(cached.tokens.ids) > limit):
                missing.append(index)
            else:
                yield index, cached
        wanted = list(dict.fromkeys([aggregation, *extra]))
        rest = [texts[index] for index in missing]
        documents, cut = self._fit(rest, limit, truncation)
        for place, matrices in self._forward(rest, documents, wanted, limit, batch_size):
            results = [EncodedText(documents[place], matrix, cut[place]) for matrix in matrices]
            for kind, result in zip(wanted, results, strict=True):
                size = result.vectors.nbytes + 5 * result.tokens.ids.nbytes
                self.cache.put((self._key, kind, limit, truncation == "cut", rest[place]), result, size)
            yield missing[place], results[0]

    def count(
        self, texts: Sequence[str], *, truncation: Truncation, window: int | None
    ) -> Iterator[tuple[int, EncodedText]]:
        """The tokens that `encode` would give, with one 1 as each vector; costs no forward pass."""
        documents, cut = self._fit(texts, self.window_for(window), truncation)
        for index, tokens in enumerate(documents):
            yield index, EncodedText(tokens, np.ones((len(tokens.ids), 1), np.float32), cut[index])

    def sentence_vectors(self, texts: Sequence[str], *, batch_size: int | None = None) -> Vectors:
        """(n, d) unit vectors of n texts: the mean of all tokens' last hidden states, special tokens included."""
        distinct = list(dict.fromkeys(texts))
        rows: dict[str, Vectors] = {}
        last, limit = [Aggregation("last")], self.sentence_window
        for place, (vectors,) in self._forward(distinct, self.tokenize(distinct), last, limit, batch_size):
            mean = vectors.mean(axis=0, dtype=np.float64)
            rows[distinct[place]] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        return np.stack([rows[text] for text in texts])

    def _forward(
        self, texts: Sequence[str], documents: Sequence[Tokens], wanted: Sequence[Aggregation], limit: int,
        batch_size: int | None,
    ) -> Iterator[tuple[int, list[Vectors]]]:  # fmt: skip
        """Yield the index of a text and one (n, D) matrix per wanted aggregation, once its last window was read."""
        before, frame = self._before, self._before + self._after
        windows: list[Window] = []
        for index, tokens in enumerate(documents):
            windows += windows_over(index, len(tokens.ids) - frame, limit - frame)
        windows.sort(key=lambda window: window.begin - window.end)  # longest first; the sort is stable
        windows_left = Counter(window.text for window in windows)
        matrices: dict[int, list[Vectors]] = {}
        budget = 1024 if self.device.type == "cpu" else 32768  # more tokens would not fit into the CPU cache
        for batch in batches(windows, frame, budget, 1 if self._alone else batch_size):
            for window, parts in zip(batch, self._run(batch, documents, wanted), strict=True):
                index, tokens = window.text, documents[window.text]
                total = len(tokens.ids)
                if index not in matrices:
                    matrices[index] = [np.empty((total, part.shape[1]), np.float32) for part in parts]
                # Special tokens take their vectors from the first or the last window.
                begin = 0 if window.begin == 0 else before + window.take_begin
                end = total if window.end == total - frame else before + window.take_end
                for matrix, part in zip(matrices[index], parts, strict=True):
                    matrix[begin:end] = part[begin - window.begin : end - window.begin]
                windows_left[index] -= 1
                if not windows_left[index]:
                    for matrix in matrices[index]:
                        check_vectors(self.identity, texts[index], matrix, total)
                        _tell_unknown_apart(texts[index], tokens, matrix)
                    yield index, matrices.pop(index)

    def _fit(self, texts: Sequence[str], limit: int, truncation: Truncation) -> tuple[list[Tokens], list[bool]]:
        """Tokens of the texts, cut to the window or refused if `truncation` says so; and whether each was cut."""
        documents = self.tokenize(texts)
        is_long = [len(tokens.ids) > limit for tokens in documents]
        if truncation == "window" or not any(is_long):
            return documents, [False] * len(texts)
        if truncation == "error":
            first = is_long.index(True)
            text, lengths = texts[first], f"{len(documents[first].ids)} tokens, the window of {self.name} {limit}"
            raise TextError(f"truncation='error': a text has {lengths}: {text[:60]!r}…", text)
        message = f"{sum(is_long)} text(s) were cut to the window of {limit} tokens (truncation='cut')"
        warnings.warn(message, stacklevel=3)
        for index in np.flatnonzero(is_long):
            total = len(documents[index].ids)
            places = np.r_[0 : limit - self._after, total - self._after : total]
            documents[index] = Tokens._make(column[places] for column in documents[index])
        return documents, is_long

    def _run(
        self, batch: list[Window], documents: Sequence[Tokens], wanted: Sequence[Aggregation]
    ) -> Iterator[list[Vectors]]:
        """One forward pass: for every window one (n, D) matrix per wanted aggregation."""
        import torch

        before, after = self._before, self._after
        lengths = [before + window.end - window.begin + after for window in batch]
        padded = np.full((len(batch), max(lengths)), self._pad, dtype=np.int64)
        for row, length, window in zip(padded, lengths, batch, strict=True):
            ids = documents[window.text].ids
            row[:before], row[length - after : length] = ids[:before], ids[len(ids) - after :]
            row[before : length - after] = ids[before + window.begin : before + window.end]
        mask = np.arange(padded.shape[1]) < np.array(lengths)[:, None]
        # Outside of a surrounding autocast: the precision is that of the weights, which the signature names.
        with torch.inference_mode(), torch.autocast(self.device.type, enabled=False), self._lock:
            training = [module for module in self.model.modules() if module.training]
            attention, inputs = torch.from_numpy(mask).to(self.device), torch.from_numpy(padded).to(self.device)
            try:
                self.model.eval()
                states, count = self._states({"input_ids": inputs, "attention_mask": attention.long()}, wanted)
            finally:
                for module in training:
                    module.training = True
            vectors = []
            for kind in wanted:
                chosen = [states[-1 if kind.kind == "last" else number] for number in kind.needed(count)]
                if any(state.shape[:2] != inputs.shape for state in chosen):
                    raise InputError(f"model: {self.name}: layer: {kind} needs layers with one vector per token")
                layers = [state.flatten(0, 1).float() for state in chosen]
                vectors.append(kind.combine(layers).unflatten(0, inputs.shape).cpu().numpy())
        for place, length in enumerate(lengths):
            yield [part[place, :length] for part in vectors]

    def _states(
        self, arguments: dict[str, torch.Tensor], wanted: Sequence[Aggregation]
    ) -> tuple[Mapping[int, torch.Tensor], int]:
        """Hidden states by number, at least those that are needed (−1 is the model's output), and how many there are.

        Layers above the highest one that is needed are not computed, if the model's layers can be found.
        """
        numbers = sorted({number for kind in wanted for number in kind.needed(self.states)}) if self.states else []
        if numbers and numbers[-1] < self.states - 1:
            if not self._looked_for_layers:
                one_row = {name: value[:1] for name, value in arguments.items()}
                self._layers, self._looked_for_layers = find_layers(self.model, self.states - 1, one_row), True
            if self._layers is not None:
                return lower_states(self.model, self._layers, numbers, arguments), self.states
        output = self.model(**arguments, output_hidden_states=any(kind.kind != "last" for kind in wanted))
        states = getattr(output, "hidden_states", None) or ()
        return {-1: output.last_hidden_state, **dict(enumerate(states))}, len(states) or 1


def _visible_count(text: str) -> int:
    """Number of visible characters in a form that does not depend on composition, case or accents."""
    return len(_VISIBLE.findall(_ACCENTS.sub("", unicodedata.normalize("NFKD", text))))


def _word_numbers(text: str, tokens: Tokens) -> NDArray[np.int64]:
    """Number of the word that each token belongs to, −1 for special tokens.

    A word begins where the tokenizer's does and at every Unicode word boundary: to some tokenizers a text without
    spaces, or any text, is one word. White space continues a word.
    """
    pieces = [number for number, piece in enumerate(split_pieces(text)) for _ in piece]  # of each character
    columns = (tokens.starts.tolist(), tokens.ends.tolist(), tokens.words.tolist(), tokens.special.tolist())
    numbers, number, before = [], -1, (-1, -1)
    for start, end, word, special in zip(*columns, strict=True):
        first = end - len(text[start:end].lstrip())
        if not special and first < end:
            number += pieces[first] > before[0] or word != before[1]
            before = pieces[end - 1], word
        numbers.append(-1 if special else number)
    return np.array(numbers, dtype=np.int64)


def _tell_unknown_apart(text: str, tokens: Tokens, vectors: Vectors) -> None:
    """Replace the vectors of unknown subwords by `surface_vectors`."""
    places = np.flatnonzero(tokens.unknown)
    if len(places):
        surfaces = [text[tokens.starts[place] : tokens.ends[place]] for place in places]
        lengths = np.linalg.norm(vectors[places].astype(np.float64), axis=1)
        vectors[places] = surface_vectors(surfaces, lengths, vectors.shape[1])


def surface_vectors(surfaces: list[str], lengths: NDArray[np.float64], width: int) -> Vectors:
    """Vectors (n, width) of the given lengths, with a pseudo-random direction per surface form.

    A tokenizer maps all unknown subwords to one id, so any two of them would match. With these vectors a subword
    matches only identical ones and is nearly orthogonal to everything else.
    """
    rows = []
    for surface in surfaces:
        seed = int.from_bytes(hashlib.sha256(surface.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        direction = np.random.Generator(np.random.PCG64(seed)).standard_normal(width)
        rows.append(direction / np.linalg.norm(direction))
    return (np.stack(rows) * lengths[:, None]).astype(np.float32)
