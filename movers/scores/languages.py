"""Warnings about texts in a language that the encoder was not trained on.

Such an encoder still gives vectors, and scores that look like any others: with the default encoders a German paraphrase
and German nonsense score alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from movers.encoders.load import Encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError, warn_once
from movers.texts import language_stop_words, token_spans

__all__ = ["declared_languages", "language_of", "language_warning", "pieces_per_word"]

MOST_PIECES = 2.5  # English texts have 1.0 to 1.4 pieces per word; Finnish, Turkish, Russian ones 3 and more
_TEXTS, _WORDS = 32, 500  # of a call that are examined
_ENGLISH = re.compile(r"(?:wordllama-\d+|all-MiniLM-L6-v2|all-mpnet-base-v2)@")
_SPACY = re.compile(r"([a-z]{2,3})_\w+-[\d.]+\w*-\d+@")
# Widely used languages that can be told apart by their stop words.
_GUESSED = "cs da de el es fi fr hu id it nb nl pl pt ro ru sv tr uk vi".split()


def declared_languages(encoder: Encoder) -> frozenset[str] | None:
    """Codes of the languages that an encoder declares; None if it declares none.

    Known for the default encoders and for spaCy pipelines; for a model folder, read from its card (`README.md`).
    """
    if _ENGLISH.match(encoder.identity):
        return frozenset({"en"})
    if isinstance(encoder, StaticEncoder):
        pipeline = _SPACY.match(encoder.identity)
        return frozenset({pipeline[1]}) if pipeline and pipeline[1] != "xx" else None
    source = str(getattr(encoder.model.config, "_name_or_path", "") or "")
    card = Path(source) / "README.md"
    return _card_languages(card.read_text(encoding="utf-8", errors="replace")) if source and card.is_file() else None


def _card_languages(card: str) -> frozenset[str] | None:
    """`language` in the header of a model card, a code or a list of codes; None if it is missing or multilingual.

    >>> sorted(_card_languages("---\\nlanguage:\\n- en\\n- de\\ntags: x\\n---\\n")), _card_languages("# Title")
    (['de', 'en'], None)
    """
    header = re.match(r"---\s*\n(.*?)\n---", card, flags=re.DOTALL)
    found = re.search(r"^language:(.*(?:\n\s*-.*)*)", header[1], flags=re.MULTILINE) if header else None
    codes = re.findall(r"[A-Za-z]+(?:[-_][A-Za-z]+)*", found[1]) if found else []
    languages = frozenset(re.split("[-_]", code.lower())[0] for code in codes)
    return None if languages & {"multilingual", "multi"} else languages or None


def _words(texts: Sequence[str]) -> list[str]:
    """The first words that contain a letter."""
    words: list[str] = []
    for text in texts[:_TEXTS]:
        words += [word for word, _, _ in token_spans(text[:8000]) if any(map(str.isalpha, word))]
        if len(words) >= _WORDS:
            break
    return words[:_WORDS]


def pieces_per_word(encoder: Encoder, texts: Sequence[str]) -> float | None:
    """Mean number of subwords per word; None without words, or if the encoder knows whole words only."""
    words, count = _words(texts), getattr(encoder, "count_pieces", None)
    return count(words) / len(words) if words and count is not None else None


def language_of(texts: Sequence[str], lang: str = "en") -> str | None:
    """A language other than `lang` whose stop words are a quarter of the words or more, and twice those of `lang`.

    None if there is no such language, or fewer than eight words. For warnings only: stop words identify prose, not
    titles or names.

    >>> language_of(["Die Katze schläft auf dem Sofa, und der Hund ist im Garten."])
    'de'
    >>> language_of(["The cat sleeps on the sofa, and the dog is in the garden."])
    """
    words = [word.lower() for word in _words(texts)]
    if len(words) < 8:
        return None
    try:
        shares = {code: _share(words, code) for code in _GUESSED}
    except InputError:  # the package with the lists is not installed
        return None
    best = max(shares, key=lambda code: shares[code])
    own = _share(words, lang)
    return best if best != lang and shares[best] >= max(0.25, 2 * own) else None


def _share(words: Sequence[str], code: str) -> float:
    known = language_stop_words(code) or frozenset()
    return sum(map(known.__contains__, words)) / len(words)


def language_warning(metric: str, encoder: Encoder, texts: Sequence[str], lang: str = "en") -> None:
    """Warn once if the encoder does not suit the texts: by `lang`, by their stop words, or by subwords per word."""
    languages = declared_languages(encoder)
    own = re.split("[-_]", lang.lower())[0]
    name = encoder.identity.partition("@")[0]
    if isinstance(encoder, StaticEncoder):
        remedy = "word vectors of that language (a fastText file such as cc.de.300.vec) or a multilingual transformer"
    else:
        remedy = "a multilingual encoder, as model='sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2'"
    known = ", ".join(sorted(languages or ()))
    guessed = None if languages is None else language_of(texts, own)
    pieces = pieces_per_word(encoder, texts)
    if languages is not None and own not in languages:
        problem = f"lang={lang!r} is outside the languages of {name} ({known})"
    elif languages is not None and guessed is not None and guessed not in languages:
        problem = f"the texts look like {guessed!r}, which is outside the languages of {name} ({known})"
    elif pieces is not None and pieces > MOST_PIECES:
        problem = f"{name} splits a word of these texts into more than {MOST_PIECES} pieces on average"
    else:
        return
    warn_once(f"{metric}: {problem}, so its scores say little about meaning; use {remedy}")
