"""What a page takes, and what a request costs: estimated from its tokens before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from movers.errors import InputError
from movers.texts import token_spans

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["LIMITS", "Limits", "check_length", "check_seconds", "estimate_seconds"]

Row = tuple[str, Sequence[str]]


class Limits(NamedTuple):
    """Bounds of a page.

    Attributes
    ----------
    characters, references : int
        Of a text, of a pair.
    option_characters : int
        Of an option's value.
    file_bytes, rows, shown_rows : int
        Of an uploaded file, and how many of its rows the table shows.
    request_bytes : int
        Of any other request: five texts of the longest kind with every character escaped, and their options.
    seconds : float
        Work of one request, estimated; more is refused before it starts.
    short_seconds : float
        Up to here a request is short. Short ones never wait for long ones.
    deadline, short_deadline : float
        Seconds after which a request is stopped, whatever was estimated.
    waiting, own_waiting : int
        Requests that wait for a worker, for short and for long ones each, of all visitors and of one address; more are
        refused. Behind a proxy that does not tell addresses all visitors are one, and the latter bounds them all.
    waiting_seconds, own_waiting_seconds : float
        Work that may wait before another request is refused, likewise.
    connections, own_connections : int
        Open HTTP requests, most of them pages that listen for their results, likewise.
    sessions : int
        Visitors whose last fields and unfetched answers are kept in memory.
    upload_bytes : int
        All uploads that wait to be scored.
    memory_bytes : int
        Of a process that scores.
    """

    characters: int = 20_000
    references: int = 4
    option_characters: int = 200
    file_bytes: int = 5_000_000
    rows: int = 2_000
    shown_rows: int = 50
    request_bytes: int = 2_000_000
    seconds: float = 30.0
    short_seconds: float = 2.0
    deadline: float = 90.0
    short_deadline: float = 20.0
    waiting: int = 12
    own_waiting: int = 8
    waiting_seconds: float = 60.0
    own_waiting_seconds: float = 40.0
    connections: int = 500
    own_connections: int = 400
    sessions: int = 200
    upload_bytes: int = 200_000_000
    memory_bytes: int = 6 << 30


LIMITS = Limits()


class _Rate(NamedTuple):
    """Seconds of one core per token, and per cost cell to the power of 1.1, as measured on hostile texts."""

    token: float
    cells: float
    contextual: bool = True


_CONTEXTUAL = _Rate(1e-3, 4e-7)
_STATIC = _Rate(2e-5, 1.5e-7, contextual=False)
_RATES = {
    "wms": _STATIC,
    "sms": _STATIC,
    "swms": _STATIC,
    "reference_free_summary_quality": _CONTEXTUAL._replace(cells=5e-8),  # sentences are compared, nothing is moved
}
_BASELINE = 0.6  # seconds to score our unrelated texts with an encoder, once for every choice of options


def estimate_seconds(name: str, rows: Iterable[Row], options: Mapping[str, object]) -> float:
    """How long a metric takes for these rows on one core, from above.

    >>> estimate_seconds("wms", [("Snow melts.", ["Ice thaws."])], {}) < 0.01
    True
    >>> words = " ".join(str(number) for number in range(3000))
    >>> estimate_seconds("wms", [(words, [words])], {}) > 5
    True
    """
    rate = _RATES.get(name, _CONTEXTUAL)
    if options.get("model") or options.get("sentence_encoder"):  # what a form offers beside the default is contextual
        rate = _CONTEXTUAL
    window = options.get("window")
    short = 8 / max(window, 1) if isinstance(window, int) else 0.0  # short windows overlap in most of their tokens
    seconds = _BASELINE if rate.contextual and options.get("rescale") else 0.0
    for prediction, others in rows:
        tokens, units = _size(name, prediction, rate.contextual)
        seconds += rate.token * (1 + short) * tokens
        for more, other_units in (_size(name, text, rate.contextual) for text in others):
            seconds += rate.token * (1 + short) * more + rate.cells * (units * other_units) ** 1.1
    return seconds


def _size(name: str, text: str, contextual: bool) -> tuple[int, int]:
    """Tokens of a text, and at most how many units of it are moved."""
    if contextual:
        count = len(_tokenizer().encode(text).ids)
        return count, count
    tokens = [token for token, _, _ in token_spans(text)]
    words = len({token.lower() for token in tokens})
    sentences = sum(not token[0].isalnum() for token in tokens) + len(text.splitlines())  # no text has more
    return len(tokens), {"wms": words, "sms": sentences}.get(name, words + sentences) + 1


@lru_cache(maxsize=1)
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    from movers.encoders.embedded import minilm_folder

    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check_seconds(name: str, seconds: float) -> float:
    """Refuse a request that would take too long."""
    if seconds > LIMITS.seconds:
        raise InputError(
            f"{name}: expected work for at most {LIMITS.seconds:.0f} seconds, but this would take about {seconds:,.0f}"
            "; shorten the texts, score fewer rows, or use the package"
        )
    return seconds


def check_length(where: str, text: str) -> None:
    """Refuse a text that is too long, or that UTF-8 cannot carry."""
    if len(text) > LIMITS.characters:
        raise InputError(
            f"{where}: expected at most {LIMITS.characters:,} characters, but got {len(text):,}; "
            "for longer texts use the package"
        )
