"""Warnings about texts in a language that the encoder was not trained on.

Such an encoder still gives vectors, and scores that look like any others: with the default encoders a German paraphrase
and German nonsense score alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import regex

from movers.encoders.load import Encoder
from movers.encoders.static import StaticEncoder
from movers.errors import warn_once
from movers.scores.metric import Metric
from movers.texts import language_stop_words, main_language, name_stop_words, token_spans

_MOST_PIECES = 2.5  # English texts have 1.0 to 1.4 pieces per word; Finnish, Turkish, Russian ones 3 and more
_LEAST_LETTERS = 6  # fewer do not tell a language
_TEXTS, _WORDS = 32, 500  # of a call that are examined
_ENGLISH = re.compile(r"(?:wordllama-\d+|all-MiniLM-L6-v2|all-mpnet-base-v2)@")
_SPACY = re.compile(r"(?!xx_)([a-z]{2,3})_\w+-[\d.]+\w*-\d+@")
# Widely used languages that can be told apart by their stop words.
_GUESSED = "ar bg cs da de el es fa fi fr he hi hu id it ko nb nl pl pt ro ru sv tr uk vi".split()
# Languages that a script suggests; kana first, because Japanese is written with Han characters too.
_SCRIPTS = {"Hiragana": "ja", "Katakana": "ja", "Han": "zh", "Hangul": "ko", "Thai": "th"}
_MULTILINGUAL = "a multilingual encoder, such as model='sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2'"


def language_warning(metric: Metric, texts: Sequence[str]) -> bool:
    """Warn once of a `language_problem`, and return whether there is one."""
    if problem := language_problem(metric, texts):
        warn_once(problem)
    return bool(problem)


def language_problem(metric: Metric, texts: Sequence[str]) -> str:
    """What is wrong if texts are in a language that the encoder or the option `lang` does not suit; empty if nothing.

    The language is that of `lang`, or guessed by stop words and script; an encoder that splits words into many
    subwords does not know it.
    """
    encoder, options = getattr(metric, "encoder", None), metric.options
    if encoder is None:
        return ""
    tokens = (word for text in texts[:_TEXTS] for word, _, _ in token_spans(text[:8000]))
    words = list(islice((word for word in tokens if any(map(str.isalpha, word))), _WORDS))
    option = getattr(options, "lang", None)
    lang = main_language(option or "en")
    languages, name = _declared_languages(encoder), encoder.identity.partition("@")[0]
    enough = sum(map(len, words)) >= _LEAST_LETTERS
    guessed = _guess_language(words, lang) if enough else None
    listed = f"is outside the languages of {name} ({', '.join(sorted(languages))}): its scores say little about meaning"
    count_pieces = getattr(encoder, "count_pieces", None)  # missing if an encoder knows whole words only
    code = guessed or lang
    remedy = f"{f'lang={guessed!r} and ' if guessed and hasattr(options, 'lang') else ''}{_MULTILINGUAL}"
    if guessed in languages:
        remedy = f"lang={guessed!r}"
    elif metric.compared_with == "sources":
        remedy = "a model trained on texts of that language (`movers train quality`)"
    elif isinstance(encoder, StaticEncoder) and code not in ("en", *_SCRIPTS.values()):
        remedy += f", or word vectors of that language, such as fastText's cc.{code}.300.vec"
    if languages and option and lang not in languages:
        problem = f"lang={option!r} {listed}"
    elif languages and guessed and guessed not in languages:
        problem = f"the texts look like {guessed!r}, which {listed}"
    elif guessed and option and name_stop_words(getattr(options, "stopwords", None), lang) == "english":
        problem, remedy = f"the texts look like {guessed!r}, but the stop words are English", f"lang={guessed!r}"
    elif enough and count_pieces is not None and count_pieces(words) > _MOST_PIECES * len(words):
        problem = f"{name} splits a word of these texts into more than {_MOST_PIECES} pieces: its scores say little"
    else:
        return ""
    return f"{metric.name}: {problem}; use {remedy}"


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
    """A language other than `lang` whose stop words are a quarter of the words or more, and twice those of `lang`.

    Where `lang` is English, also the language of the script in which most words are written.
    """
    for script, code in _SCRIPTS.items() if lang == "en" else ():
        share = sum(bool(regex.match(rf"\p{{Script={script}}}", word)) for word in words) / len(words)
        if share > (0.1 if code == "ja" else 0.5):
            return code
    lists = {code: language_stop_words(code) or frozenset() for code in {*_GUESSED, lang}}
    lowered = [word.lower() for word in words]
    counts = {code: sum(word in known for word in lowered) for code, known in lists.items()}
    best = max(_GUESSED, key=counts.__getitem__)
    # Stop words identify prose, not titles or names.
    is_prose = len(words) >= 8 and len(lists[best].intersection(lowered)) >= 4
    is_clear = is_prose and counts[best] >= max(len(words) / 4, 2 * counts[lang])
    return best if best != lang and is_clear else None
