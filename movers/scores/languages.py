"""Warnings about texts in a language that the encoder was not trained on.

Such an encoder still gives vectors, and scores that look like any others: with the default encoders a German paraphrase
and German nonsense score alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from movers.encoders.load import Encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError, warn_once
from movers.texts import language_stop_words, main_language, token_spans

__all__ = ["language_warning"]

_MOST_PIECES = 2.5  # English texts have 1.0 to 1.4 pieces per word; Finnish, Turkish, Russian ones 3 and more
_TEXTS, _WORDS = 32, 500  # of a call that are examined
_ENGLISH = re.compile(r"(?:wordllama-\d+|all-MiniLM-L6-v2|all-mpnet-base-v2)@")
_SPACY = re.compile(r"(?!xx_)([a-z]{2,3})_\w+-[\d.]+\w*-\d+@")
# Widely used languages that can be told apart by their stop words.
_GUESSED = "cs da de el es fi fr hu id it nb nl pl pt ro ru sv tr uk vi".split()


def language_warning(metric: str, encoder: Encoder, texts: Sequence[str], lang: str = "en") -> None:
    """Warn once if the encoder does not suit the texts: by `lang`, by their stop words, or by subwords per word."""
    tokens = (word for text in texts[:_TEXTS] for word, _, _ in token_spans(text[:8000]))
    words = list(islice((word for word in tokens if any(map(str.isalpha, word))), _WORDS))
    languages, lang_code, name = _declared_languages(encoder), main_language(lang), encoder.identity.partition("@")[0]
    listed = f"is outside the languages of {name} ({', '.join(sorted(languages))})"
    count_pieces = getattr(encoder, "count_pieces", None)  # missing if an encoder knows whole words only
    if languages and lang_code not in languages:
        problem = f"lang={lang!r} {listed}"
    elif languages and (guessed := _guess_language(words, lang_code)) and guessed not in languages:
        problem = f"the texts look like {guessed!r}, which {listed}"
    elif words and count_pieces is not None and count_pieces(words) > _MOST_PIECES * len(words):
        problem = f"{name} splits a word of these texts into more than {_MOST_PIECES} pieces on average"
    else:
        return
    if isinstance(encoder, StaticEncoder):
        remedy = "word vectors of that language (a fastText file such as cc.de.300.vec) or a multilingual transformer"
    else:
        remedy = "a multilingual encoder, as model='sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2'"
    warn_once(f"{metric}: {problem}, so its scores say little about meaning; use {remedy}")


def _declared_languages(encoder: Encoder) -> frozenset[str]:
    """Languages of the default encoders, of spaCy pipelines, and those in the card of a model folder; else empty."""
    if _ENGLISH.match(encoder.identity):
        return frozenset({"en"})
    if isinstance(encoder, StaticEncoder):
        pipeline = _SPACY.match(encoder.identity)
        return frozenset({pipeline[1]} if pipeline else ())
    source = str(getattr(encoder.model.config, "_name_or_path", "") or "")
    card = Path(source) / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if source and card.is_file() else ""
    header = re.match(r"---\s*\n(.*?)\n---", text, flags=re.DOTALL)
    entry = re.search(r"^language:(.*(?:\n\s*-.*)*)", header[1], flags=re.MULTILINE) if header else None
    codes = re.findall(r"[A-Za-z]+(?:[-_][A-Za-z]+)*", entry[1]) if entry else []
    languages = frozenset(map(main_language, codes))
    return frozenset() if languages & {"multilingual", "multi"} else languages


def _guess_language(words: Sequence[str], lang: str) -> str | None:
    """A language other than `lang` whose stop words are a quarter of the words or more, and twice those of `lang`."""
    try:
        lists = {code: language_stop_words(code) or frozenset() for code in {*_GUESSED, lang}}
    except InputError:  # the package with the lists is not installed
        return None
    lowered = [word.lower() for word in words]
    counts = {code: sum(word in known for word in lowered) for code, known in lists.items()}
    best = max(_GUESSED, key=counts.__getitem__)
    # Stop words identify prose, not titles or names.
    is_clear = len(words) >= 8 and counts[best] >= max(len(words) / 4, 2 * counts[lang])
    return best if best != lang and is_clear else None
