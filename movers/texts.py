"""Text → sentences → words; no vectors.

A *token* is a visible segment between two Unicode word boundaries (UAX #29): a word, a number, a punctuation mark.
A *word* is a token with a letter, a digit, or a symbol that carries meaning (emoji, currency, %), in any script. By the
default rules of UAX #29, Han, hiragana and Thai are split into characters and katakana into runs. English clitics are
words of their own (`don't` → `do`, `not`), but for `'s`, which is dropped.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

import regex
import sentencex

from movers.errors import InputError, warn_once
from movers.signature import short_digest

_BOUNDARY = regex.compile(r"\b", flags=regex.WORD | regex.VERSION1)
_VISIBLE = regex.compile(r"[^\s\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}]")
_LETTER = regex.compile(r"\p{L}")
_DIGIT = regex.compile(r"\p{N}")
_MARKS = regex.compile(r"[\p{P}\p{S}\p{M}\p{Cc}\p{Cf}\s]+")
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
_EMOJI = regex.compile(r"[\p{Extended_Pictographic}\p{Regional_Indicator}]")
# Currencies, mathematical signs, % and °; "|" and "~" separate more often than they mean something.
_SIGN = regex.compile(r"[\p{Sc}%‰°]|[\p{Sm}--|~]", flags=regex.V1)
_THOUSANDS = regex.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CLITIC = regex.compile(r"(?i)(?<=\p{L})(?:n['’]t|['’](?:s|re|ve|ll|d|m))$")
_CLITICS = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
# Negations whose stem is not simply what precedes n't.
_IRREGULAR = {"can't": "can", "won't": "will", "shan't": "shall"}
#: Mass of a stop word where another word has 1; chosen by agreement with people (benchmarks/settings/RESULTS.md).
STOP_MASS = 0.05


def split_sentences(text: str, lang: str = "en") -> list[str]:
    """Split a text into sentences. A line break always ends one: titles and list items have lines of their own.

    >>> split_sentences("Dr. Smith paid $3.50. He left at 5 p.m. with J. R. Jones!")
    ['Dr. Smith paid $3.50.', 'He left at 5 p.m. with J. R. Jones!']
    """
    lines = (line for line in text.splitlines() if line.strip())
    return [sentence for line in lines for part in _segment(line, lang) if (sentence := part.strip())]


_SEGMENT = 4096  # characters; the segmenter takes quadratic time
_OVERLAP = 200  # characters that are segmented again where no boundary was found: one may lie at the cut


def _segment(line: str, lang: str) -> list[str]:
    """Sentences of a line. A long line is segmented in parts, each starting at the last boundary found."""
    if len(line) <= _SEGMENT:
        return list(sentencex.segment(lang, line))
    sentences: list[str] = []
    begun = ""  # of a sentence whose end has not been found yet
    position = unbroken = 0  # where to continue, and up to where there is no boundary
    while position < len(line):
        end = position + _SEGMENT
        space = line.rfind(" ", position, end)
        if end < len(line) and space > position:
            end = space + 1  # not inside a word
        parts = list(sentencex.segment(lang, line[position:end]))
        while len(parts) > 1 and position + len(parts[0]) < unbroken:  # seen in part, a quotation has others inside
            parts[:2] = [parts[0] + parts[1]]
        if end >= len(line):
            return [*sentences, begun + parts[0], *parts[1:]]
        if len(parts) > 1:  # the last one may continue
            sentences += [begun + parts[0], *parts[1:-1]]
            begun, position = "", end - len(parts[-1])
        else:
            again = max(line.rfind(" ", position + 1, end - _OVERLAP) + 1, end - 2 * _OVERLAP)
            again = again if again > position else end
            begun, position, unbroken = begun + line[position:again], again, end
    return [*sentences, begun]


def sentence_spans(text: str, lang: str = "en") -> list[tuple[int, int]]:
    """Start and end of every sentence."""
    spans, position = [], 0
    for sentence in split_sentences(text, lang):
        start = text.index(sentence, position)
        position = start + len(sentence)
        spans.append((start, position))
    return spans


# The default rules of UAX #29 for ASCII, curly quotes and a few common symbols, where a simple pattern is several times
# faster than the general one.
_PLAIN_TEXT = re.compile(r"[\x00-\x7f‘’“”–—…•£€°▃]*")
_PLAIN_PIECE = re.compile(
    r"[A-Za-z0-9_]+(?:(?:(?<=[A-Za-z])[.':‘’](?=[A-Za-z])|(?<=[0-9])[.',;‘’](?=[0-9]))[A-Za-z0-9_]+)*|\s+|."
)
# `regex` joins an apostrophe to a following vowel ('apple); UAX #29 has a boundary there.
_JOINED_APOSTROPHE = regex.compile(r"\b(['’])(?=\p{L})", flags=regex.WORD | regex.VERSION1)
_AFTER_APOSTROPHE = regex.compile(r"(?<=\A['’])(?=\P{M})", flags=regex.VERSION1)


def split_pieces(text: str) -> list[str]:
    """Split a text at Unicode word boundaries, into tokens and what is between them.

    >>> split_pieces("We paid $3.50.")
    ['We', ' ', 'paid', ' ', '$', '3.50', '.']
    """
    if _PLAIN_TEXT.fullmatch(text):
        return _PLAIN_PIECE.findall(text)
    pieces = list(filter(None, _BOUNDARY.split(text)))
    if _JOINED_APOSTROPHE.search(text):
        pieces = [part for piece in pieces for part in _AFTER_APOSTROPHE.split(piece)]
    return pieces


# Cases in which the split depends on the neighbours: a combining mark at the beginning joins preceding white space,
# regional indicators join what follows, and an apostrophe with a mark is split off if another one in the text is.
_NOT_ALONE = regex.compile(
    r"(?:\A|['’])[\p{Word_Break=Extend}\p{Word_Break=Format}\p{Word_Break=ZWJ}]"
    r"|[\p{Regional_Indicator}\p{Emoji_Modifier}]"
)


def cut_alike_alone(token: str) -> bool:
    """Whether a whitespace-separated token is split into the same pieces in every text."""
    return token.isascii() or _NOT_ALONE.search(token) is None


class Span(NamedTuple):
    """A token: its text after normalisation, its offsets, its mass, and why it is dropped (empty if it is kept)."""

    text: str
    start: int
    end: int
    mass: float
    reason: str


def is_visible(piece: str) -> bool:
    """Whether a piece has a visible character, not only spaces, control and format characters."""
    return _VISIBLE.search(piece) is not None


def token_spans(text: str) -> list[tuple[str, int, int]]:
    """All visible tokens with their character offsets."""
    spans, start = [], 0
    for piece in split_pieces(text):
        end = start + len(piece)
        if is_visible(piece):
            spans.append((piece, start, end))
        start = end
    return spans


def repeated_share(words: Iterable[str]) -> float:
    """Share of the pairs of neighbouring words that occurred before."""
    pairs = list(pairwise(words))
    return 1 - len(set(pairs)) / len(pairs) if pairs else 0.0


@lru_cache(maxsize=64)
def language_stop_words(lang: str) -> frozenset[str] | None:
    """Stop words of a language: for English the bundled list, for others that of the package stop-words; else None."""
    language = main_language(lang)
    if language == "en":
        lines = resources.files("movers").joinpath("data", "stopwords_english.txt").read_text(encoding="utf-8")
        return frozenset(line for line in lines.splitlines() if line and not line.startswith("#"))
    from stop_words import LANGUAGE_MAPPING, get_stop_words

    language = "nb" if language in ("no", "nn") else language  # one list serves all three
    return frozenset(map(str.lower, get_stop_words(language))) if language in LANGUAGE_MAPPING else None


def stop_words(stopwords: object, metric: str = "", lang: str = "en") -> frozenset[str]:
    """The set of stop words that an option stands for; errors and the warning name the metric.

    `"auto"` and `"drop"` are the list for `lang` (none, with a warning, if there is no list), `"english"` the bundled
    list.
    """
    if stopwords is None:
        return frozenset()
    if isinstance(stopwords, str) and stopwords in ("auto", "drop", "english"):
        words = language_stop_words("en" if stopwords == "english" else lang)
        if words is None and metric:  # without a metric, the option has been checked before
            warn_once(
                f"{metric}: stopwords: there is no list for lang={lang!r}, so all words count alike; "
                "pass stopwords=None, or a list of your own"
            )
        return words or frozenset()
    if isinstance(stopwords, str | bytes) or not isinstance(stopwords, Collection):  # an iterator can be read only once
        value = repr(stopwords) if isinstance(stopwords, str) else type(stopwords).__name__
        raise InputError(
            f"{metric}: stopwords: expected 'auto', 'drop', 'english', None or a list of words, but got {value}"
        )
    for index, word in enumerate(stopwords):
        if not isinstance(word, str):
            raise InputError(f"{metric}: stopwords: expected words (str), but item {index} is {type(word).__name__}")
    return frozenset(word.lower() for word in stopwords)


def name_stop_words(stopwords: object, lang: str = "en") -> str | None:
    """Name of the stop words in a signature: a language and the digest of its list, or that of another list."""
    if stopwords is None:
        return None
    if not isinstance(stopwords, str):
        return f"list-{_digest(stop_words(stopwords))}"
    language = "en" if stopwords == "english" else main_language(lang)
    words = language_stop_words(language)
    return "english" if language == "en" else None if words is None else f"{language}-{_digest(words)}"


def _digest(words: frozenset[str]) -> str:
    return short_digest(json.dumps(sorted(words)))


def main_language(lang: str) -> str:
    """Language code without region, in lower case."""
    return re.split("[-_]", lang.lower())[0]


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(?:[-_][a-z0-9]+)*", flags=re.IGNORECASE)


def check_language(metric: str, lang: str) -> None:
    """Check that `lang` is a language code, with or without region (`pt`, `pt-BR`)."""
    if not _LANGUAGE_CODE.fullmatch(lang):
        raise InputError(f"{metric}: lang: expected a language code such as 'en' or 'pt-BR', but got {lang!r}")


@dataclass(frozen=True)
class WordRules:
    """Which tokens of a text are words, how they are normalised, and what mass they have."""

    stopwords: frozenset[str] = frozenset()  # lowercased
    stop_mass: float = STOP_MASS  # of a stop word, where another word has 1; 0 drops stop words
    lowercase: bool = True
    alphabetic: bool = False  # keep words of letters only, as Clark et al. do
    lang: str = "en"  # of the sentence splitter; for `en`, clitics are split off

    def spans(self, text: str) -> list[Span]:
        """All tokens of `text`, also those that the rules drop."""
        return [
            Span(word, start + begin, start + end, mass, reason)
            for piece, start, _ in token_spans(text)
            for word, begin, end, mass, reason in self.judge(piece)
        ]

    def judge(self, piece: str) -> list[Span]:
        """The words of a visible token, with offsets inside it."""
        if self.lang == "en" and not piece.isalpha() and (clitic := _CLITIC.search(piece)):
            stem, ending = piece[: clitic.start()], clitic[0].lower().replace("’", "'")
            if irregular := _IRREGULAR.get(stem.lower() + ending):
                stem = irregular.capitalize() if stem[0].isupper() else irregular
            # Where stop words are dropped, so is the stem of a negation: "couldn't" and "can't" are treated alike.
            dropped = not self.stop_mass and ending == "n't" and "not" in self.stopwords
            word = self._span(stem, 0, clitic.start())
            return [
                word._replace(mass=0.0, reason="stop word") if dropped else word,
                self._span(_CLITICS[ending], clitic.start(), len(piece))
                if ending in _CLITICS and not self.alphabetic
                else Span(ending, clitic.start(), len(piece), 0.0, "clitic"),
            ]
        return [self._span(piece, 0, len(piece))]

    def _span(self, piece: str, start: int, end: int) -> Span:
        word, reason = unicodedata.normalize("NFC", piece.lower() if self.lowercase else piece), ""
        if piece.isalpha():  # the common case first
            pass
        elif self.alphabetic and not _LETTERS.fullmatch(piece):
            reason = "not alphabetic" if _LETTER.search(piece) or _DIGIT.search(piece) else "punctuation"
        elif _DIGIT.search(piece):
            word = _THOUSANDS.sub("", word) if self.lang == "en" else word
        elif is_punctuation(piece):
            reason = "punctuation"
        mass = 0.0 if reason else 1.0
        if mass and self.stopwords and (word.lower() in self.stopwords or is_sign(word)):
            mass, reason = self.stop_mass, "" if self.stop_mass else "stop word"
        return Span(word, start, end, mass, reason)

    def words(self, text: str) -> list[str]:
        """The kept words of a text.

        >>> WordRules().words("The bank's staff can't pay $3.50!")
        ['the', 'bank', 'staff', 'can', 'not', 'pay', '$', '3.50']
        """
        return [span.text for span in self.spans(text) if not span.reason]


def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation and of symbols without a meaning of their own.

    >>> [is_punctuation(token) for token in ("--", "a.", "%", "😍", "▃")]
    [True, False, False, False, True]
    """
    return _MARKS.fullmatch(token) is not None and not _EMOJI.search(token) and not _SIGN.search(token)


def is_sign(token: str) -> bool:
    """Whether a token is a sign such as $ or %, which counts as stop words do."""
    return _SIGN.search(token) is not None and _MARKS.fullmatch(token) is not None and not _EMOJI.search(token)


def needs_surface(word: str) -> bool:
    """Whether a word has a digit or no letter: then its meaning is not the sum of its characters.

    >>> [needs_surface(word) for word in ("1,000", "a320", "😍", "don't")]
    [True, True, True, False]
    """
    return not word.isalpha() and (_DIGIT.search(word) is not None or _LETTER.search(word) is None)
