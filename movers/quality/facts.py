"""Names, numbers and negations of a summary that its document does not have.

A word is compared by its stem, a number by its digits, a negation by the words beside it. The rules are for English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from movers.texts import stop_words

# Han, kana and Thai are written without spaces: every character counts as a word.
WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]|\d+(?:\s?[.,]\s?\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_SUFFIXES = ("ations", "ation", "ments", "ment", "ingly", "edly", "ings", "ions", "ing", "ies", "ied", "ers", "est",
             "ion", "er", "ed", "es", "ly", "s", "e", "y")  # fmt: skip
_DOUBLED = ("ing", "ed", "er", "ers", "est")  # a consonant is doubled before these: stopped
_NEGATIONS = frozenset("not no never none nobody nothing neither nor cannot deny denied denies refuse refused refuses "
                       "fail failed fails".split())  # fmt: skip
_COUNTS = ("two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
           "eighteen nineteen").split()  # fmt: skip
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS = {word: str(value) for value, word in enumerate(_COUNTS, 2)}  # "one of them" is no number
_NUMBERS |= {word: str(10 * value) for value, word in enumerate(_TENS, 2)}
_BESIDE = 2  # content words on either side of a negation that it may belong to


class Word(NamedTuple):
    """A word that carries meaning: as written, its key, and what kind of word it is."""

    text: str
    key: str
    kind: str  # "word", "name", "number" or "negation"


def _runs(word: Word) -> list[str]:
    return [run.lstrip("0") for run in re.findall(r"\d+", word.text)]


def stem(word: str) -> str:
    """A word without its ending: passengers → passeng, stopping → stop."""
    word = word.lower().replace("’", "'").removesuffix("'s").strip("'")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            base = word[: -len(suffix)]
            return base[:-1] if suffix in _DOUBLED and len(base) > 3 and base[-1] == base[-2] else base
    return word


def read_words(sentence: str) -> list[Word]:
    """The words of a sentence that carry meaning. A capital marks a name, but for the first word."""
    words: list[Word] = []
    stops = stop_words("english")
    for place, text in enumerate(WORD.findall(sentence.replace(" n't", "n't"))):
        lower = text.lower().replace("’", "'")
        if text[0].isdigit():
            words.append(Word(text, re.sub(r"\D", "", text).lstrip("0"), "number"))
        elif lower in _NUMBERS:
            words.append(Word(text, _NUMBERS[lower], "number"))
        elif lower in _NEGATIONS or lower.endswith("n't"):
            words.append(Word(text, "!", "negation"))
        elif lower not in stops and (len(text) > 1 or not text.isascii()):
            words.append(Word(text, stem(text), "name" if place and text[0].isupper() else "word"))
    return words


@dataclass(frozen=True)
class WordTable:
    """The words of a text, sentence by sentence."""

    sentences: tuple[tuple[Word, ...], ...]

    @classmethod
    def of(cls, sentences: Sequence[str]) -> WordTable:
        return cls(tuple(tuple(read_words(sentence)) for sentence in sentences))

    def __iter__(self) -> Iterator[Word]:
        return (word for sentence in self.sentences for word in sentence)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each key occurs, negations left out."""
        return Counter(word.key for word in self if word.kind != "negation")

    @cached_property
    def digit_runs(self) -> frozenset[str]:
        """Runs of digits: a text may have "2 . 9" or "20 , 000" for a number."""
        return frozenset(run for word in self if word.kind == "number" for run in _runs(word))

    @cached_property
    def letters(self) -> str:
        """All words in one string, to find "sea wall" for "seawall"."""
        return "".join(word.text.lower() for word in self)

    @cached_property
    def negated(self) -> frozenset[str]:
        """Keys that stand beside a negation."""
        lines = ([word.key for word in sentence] for sentence in self.sentences)
        near = ((keys, range(max(0, place - _BESIDE), place + _BESIDE + 1))
                for keys in lines for place, key in enumerate(keys) if key == "!")  # fmt: skip
        return frozenset(keys[place] for keys, places in near for place in places if place < len(keys))

    def has(self, word: Word) -> bool:
        if word.kind == "number":
            return word.key in self.counts or (bool(runs := _runs(word)) and self.digit_runs.issuperset(runs))
        return word.key in self.counts or (len(word.text) >= 6 and word.text.lower() in self.letters)

    def covered_by(self, other: WordTable) -> float:
        """Share of the text's words, each as often as it occurs, that the other text has too."""
        total = sum(self.counts.values())
        return sum(self.counts[key] for key in other.counts if key in self.counts) / total if total else 0.0


def unknown_facts(sentence: Sequence[Word], document: WordTable) -> list[str]:
    """Names and numbers of a sentence that occur nowhere in the document, and negations that it does not have.

    A negation is known if the document negates the first word after it that the document has at all (or, at the end
    of a sentence, the last word before it).
    """
    facts = []
    for place, word in enumerate(sentence):
        known = word.kind == "word" or document.has(word)
        if word.kind == "negation":
            near = [*sentence[place + 1 : place + 4], *sentence[:place][::-1]]
            key = next((other.key for other in near if other.kind != "negation" and document.has(other)), None)
            known = key in document.negated
        facts += [] if known else [word.text]
    return facts
