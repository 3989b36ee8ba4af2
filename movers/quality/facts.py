"""Names, numbers and negations of a summary that its document does not have.

A word is compared by its stem, a number by its digits, a negation by the words it stands beside. The rules are made for
English; in other languages numbers and names are still found, negations are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from movers.texts import stop_words

__all__ = ["Word", "WordTable", "read_words", "repeated_share", "stem", "unknown_facts"]

# Han, kana and Thai are written without spaces: every character counts as a word.
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]|\d+(?:\s?[.,]\s?\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_SUFFIXES = ("ations", "ation", "ments", "ment", "ingly", "edly", "ings", "ions", "ing", "ies", "ied", "ers", "est",
             "ion", "er", "ed", "es", "ly", "s", "e", "y")  # fmt: skip
_DOUBLED = ("ing", "ed", "er", "ers", "est")  # a consonant is doubled before these: stopped
_NEGATIONS = frozenset(
    "not no never none nobody nothing neither nor cannot deny denied denies refuse refused "
    "refuses fail failed fails".split()
)
_COUNTS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen").split()  # fmt: skip
_NUMBERS = {word: str(value) for value, word in enumerate(_COUNTS)} | {
    word: str(10 * value)
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_VAGUE = frozenset({"zero", "one"})  # "one of them" is no number that a document must have
_BESIDE = 2  # content words on either side of a negation that it may belong to


class Word(NamedTuple):
    """A word that carries meaning: as written, its key, and what kind of word it is."""

    text: str
    key: str
    kind: str  # "word", "name", "number" or "negation"


def _runs(word: Word) -> list[str]:
    return [run.lstrip("0") for run in re.findall(r"\d+", word.text)]


def stem(word: str) -> str:
    """A word without its ending.

    >>> [stem(word) for word in ("Passengers", "passenger", "stopped", "stopping", "cities")]
    ['passeng', 'passeng', 'stop', 'stop', 'cit']
    """
    word = word.lower().replace("’", "'").removesuffix("'s").strip("'")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            base = word[: -len(suffix)]
            doubled = suffix in _DOUBLED and len(base) > 3 and base[-1] == base[-2]
            return base[:-1] if doubled else base
    return word


def read_words(sentence: str) -> list[Word]:
    """The words of a sentence that carry meaning. A capital marks a name, but for the first word.

    >>> [(word.text, word.kind) for word in read_words("In May Anna didn't sell thirty cows for 1,200.")]
    [('May', 'name'), ('Anna', 'name'), ("didn't", 'negation'), ('sell', 'word'), ('thirty', 'number'), \
('cows', 'word'), ('1,200', 'number')]
    """
    found: list[Word] = []
    stops = stop_words("english")
    for place, text in enumerate(_WORD.findall(sentence.replace(" n't", "n't"))):
        lower = text.lower().replace("’", "'")
        if text[0].isdigit():
            found.append(Word(text, re.sub(r"\D", "", text).lstrip("0"), "number"))
        elif lower in _NUMBERS and lower not in _VAGUE:
            found.append(Word(text, _NUMBERS[lower], "number"))
        elif lower in _NEGATIONS or lower.endswith("n't"):
            found.append(Word(text, "!", "negation"))
        elif lower not in stops and (len(text) > 1 or not text.isascii()):
            found.append(Word(text, stem(text), "name" if place and text[0].isupper() else "word"))
    return found


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
        found: set[str] = set()
        for sentence in self.sentences:
            keys = [word.key for word in sentence]
            for place, key in enumerate(keys):
                if key == "!":
                    found.update(keys[max(0, place - _BESIDE) : place + _BESIDE + 1])
        return frozenset(found)

    def has(self, word: Word) -> bool:
        """Whether the text has a word or number."""
        if word.key in self.counts:
            return True
        if word.kind == "number":
            return bool(runs := _runs(word)) and all(run in self.digit_runs for run in runs)
        return len(word.text) >= 6 and word.text.lower() in self.letters

    def covered_by(self, other: WordTable) -> float:
        """Share of the text's words, each as often as it occurs, that the other text has too."""
        total = sum(self.counts.values())
        return sum(self.counts[key] for key in other.counts if key in self.counts) / total if total else 0.0


def unknown_facts(sentence: Sequence[Word], document: WordTable) -> list[str]:
    """Names and numbers of a sentence that occur nowhere in the document, and negations that it does not have.

    A negation is known if the document negates the first word after it that the document has at all (or, at the end
    of a sentence, the last word before it).

    >>> document = WordTable.of(["Anna Keller led thirty passengers to Porton.", "They did not stop."])
    >>> told = "Keller did not lead forty passengers to Hamberg."
    >>> unknown_facts(read_words(told), document)
    ['not', 'forty', 'Hamberg']
    """
    found = []
    for place, word in enumerate(sentence):
        if word.kind == "negation":
            near = [*sentence[place + 1 : place + 4], *sentence[:place][::-1]]
            key = next((other.key for other in near if other.kind != "negation" and document.has(other)), None)
            known = key in document.negated
        else:
            known = word.kind == "word" or document.has(word)
        if not known:
            found.append(word.text)
    return found


def repeated_share(text: str) -> float:
    """Share of the pairs of neighbouring words that the text had before.

    >>> repeated_share("the sea wall broke and the sea wall fell")
    0.25
    """
    words = [word.lower() for word in _WORD.findall(text)]
    pairs = list(pairwise(words))
    return 1 - len(set(pairs)) / len(pairs) if pairs else 0.0
