"""Unusual texts, and every public entry to put them into: for fuzz.py and for tests/test_fuzz.py.

What an entry returns must be finite and within the documented range, or it must refuse with an `InputError`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import random
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tiny import TINY_WORDS, tiny_model, tiny_tokenizer  # type: ignore[import-not-found]

import movers
from movers.cli import main
from movers.encoders.contextual import ContextualEncoder
from movers.errors import InputError
from movers.registry import METRICS, parse_metric
from movers.scores.options import option_rows

Draw = random.Random
Rows = Sequence[tuple[str, str]]

# ---------------------------------------------------------------------------------------------------------------------
# Texts

_STOP = "the a of and to in is it that was for on are as with his they be at this or had by not but what all".split()
_MARKS = [
    chr(code) for code in (*range(0x300, 0x370), *range(0x591, 0x5BE), *range(0x64B, 0x653), 0xE31, 0x94D, 0x20DD)
]
_DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u034f\u115f\u3164\ufe0f\U000e0001\U000e0020"
_CONTROLS = "".join(map(chr, (*range(32), *range(127, 160), 0x2028, 0x2029, 0xFFF9, 0xFFFE, 0xFFFF)))
_EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩", "👍🏽", "❤️", "\u20e3", "1️⃣"]
_CODE = ["<script>alert(1)</script>", "=1+1", "{{7*7}}", "${x}", "' OR 1=1 --", "../..", "%00", "\\N", "NULL", "nan",
         "[CLS]", "[SEP]", "[UNK]", "[PAD]", "<s>", "</s>", "##ing", "&amp;", "&#0;", "\\ud800", '"']  # fmt: skip


@lru_cache(maxsize=1)
def scripts() -> dict[str, str]:
    """Letters of every script, by the first word of their names."""
    scripts: dict[str, list[str]] = {}
    for code in range(0x80, 0x32000):
        letter = chr(code)
        if unicodedata.category(letter).startswith("L"):
            scripts.setdefault(unicodedata.name(letter, "?").split()[0].split("-")[0], []).append(letter)
    return {name: "".join(letters[:400]) for name, letters in scripts.items() if len(letters) > 4}


def _join(draw: Draw, pieces: Sequence[str], most: int = 12, between: str = " ") -> str:
    return between.join(draw.choices(pieces, k=draw.randint(0, most)))


def _plane(draw: Draw) -> str:
    start = draw.randrange(17) << 16
    codes = (start + draw.randrange(1 << 16) for _ in range(draw.randint(1, 12)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _script(draw: Draw) -> str:
    letters = scripts()[draw.choice(list(scripts()))]
    return " ".join("".join(draw.choices(letters, k=draw.randint(1, 6))) for _ in range(draw.randint(1, 5)))


def _mixed(draw: Draw) -> str:
    plain = [text for name, text in KINDS.items() if name not in ("mixed", "lone surrogates")]
    return draw.choice(["", " ", "\n", ". "]).join(draw.choice(plain)(draw) for _ in range(draw.randint(2, 4)))


#: Kinds of texts, each a function of a seeded generator.
KINDS: dict[str, Callable[[Draw], str]] = {
    "words": lambda draw: _join(draw, TINY_WORDS),
    "sentences": lambda draw: _join(draw, [f"The {word} sat on {word}s." for word in TINY_WORDS], 5),
    "all planes": _plane,
    "every script": _script,
    "combining marks": lambda draw: "".join(
        draw.choice("aeoנعกक ") + _join(draw, _MARKS, 9, "") for _ in range(draw.randint(1, 6))
    ),
    "right to left": lambda draw: _join(draw, [*"שלום עולם مرحبا بالعالم", *_DIRECTIONS], 24, ""),
    "zero width": lambda draw: _join(draw, [*_INVISIBLE, "snow", "s", " "], 16, ""),
    "control characters": lambda draw: _join(draw, [*_CONTROLS, "snow", " "], 16, ""),
    "lone surrogates": lambda draw: f"snow {chr(draw.randrange(0xD800, 0xE000))}{_join(draw, TINY_WORDS, 3)}",
    "stop words only": lambda draw: _join(draw, _STOP),
    "punctuation only": lambda draw: _join(draw, [*".,;:!?…—–-()[]{}“”„«»'’\"/\\|*#@&%$€^~`<>=+_。、？！؟।"], 24, ""),
    "numbers": lambda draw: _join(draw, ["1e309", "3.14", "-0", "٣", "Ⅻ", "½", "1,000", "0x1F", "∞", "NaN", "²"]),
    "emoji": lambda draw: _join(draw, _EMOJI, 8, draw.choice(["", " "])),
    "code and markup": lambda draw: _join(draw, _CODE),
    "blank": lambda draw: _join(draw, [*" \t\n\r\u00a0\u2003\u3000\x0b\x0c\x1c\x85"], 8, ""),
    "tiny": lambda draw: draw.choice([*"aZ1.é你ก", "", "I", "ok"]),
    "long word": lambda draw: "".join(draw.choices("abcxyzäß", k=draw.randint(50, 300))),
    "repetition": lambda draw: draw.choice(["a ", "no. ", "“", "ha", "\n", "snow! "]) * draw.randint(1, 80),
    "mixed": _mixed,
}


def text(draw: Draw) -> tuple[str, str]:
    """A kind, and a text of it; lone surrogates are rare, because they refuse the rows beside them too."""
    name = draw.choice([name for name in KINDS if name != "lone surrogates"])
    return name, KINDS[name](draw)


# ---------------------------------------------------------------------------------------------------------------------
# What must come out

_LOW = {"wms": 0.0, "sms": 0.0, "swms": 0.0, "moverscore": -3.0, "reference_free_summary_quality": 0.0}


def check_numbers(metric: str, values: Sequence[object], count: int, low: float | None = None) -> None:
    """As many finite numbers as rows, within the range that the metric's card states."""
    low = _LOW.get(metric, 0.0) if low is None else low
    assert len(values) == count, f"{metric}: {len(values)} scores for {count} rows"
    for value in values:
        assert isinstance(value, float) and math.isfinite(value), f"{metric}: {value!r}"
        assert low - 1e-6 <= value <= 1 + 1e-6, f"{metric}: {value!r} is out of range"


def check_result(metric: str, result: Mapping[str, Any], count: int) -> None:
    """A result as functions and modules return it."""
    check_numbers(metric, result["scores"], count)
    check_numbers(metric, [result["score"]] if isinstance(result["score"], float) else result["score"], 1)
    for part, low in (("precision", -1.0), ("recall", -1.0), ("f1", 0.0), ("faithfulness", 0.0), ("coverage", 0.0)):
        if part in result:
            check_numbers(metric, result[part], count, low)
    for distance in result.get("distances", ()):
        assert distance is None or (math.isfinite(distance) and distance >= -1e-9), f"{metric}: distance {distance}"


# ---------------------------------------------------------------------------------------------------------------------
# Entries: each takes rows and a generator for what else there is to choose


@lru_cache(maxsize=1)
def tiny_encoder() -> ContextualEncoder:
    """A transformer of 16 dimensions whose tokenizer knows letters and twenty words."""
    return ContextualEncoder(tiny_model("bert"), tiny_tokenizer("bert"), "tiny", "0" * 64)


_CHOICES: dict[str, list[dict[str, object]]] = {
    "clark": [{}, {"stopwords": None}, {"distance": "cosine"}, {"oov": "match"}, {"normalize": True}, {"oov": "zero"},
              {"lowercase": False}, {"lang": "ja"}, {"weights": "uniform"}, {"weights": "norm"},
              {"temperature": 1.0}, {"multi_ref": "mean"}, {"preset": "paper"}, {"idf": "corpus"}],
    "moverscore": [{}, {"alignment": "hard"}, {"n_gram": 2}, {"stopwords": "english"}, {"special_tokens": False},
                   {"punctuation": False}, {"truncation": "cut"}, {"idf": "corpus", "weights": "idf"}],
    "bertscore": [{}, {"alignment": "greedy"}, {"weights": "norm"}, {"truncation": "cut"}, {"multi_ref": "mean"}],
}  # fmt: skip


def options_for(metric: str, draw: Draw) -> dict[str, object]:
    """Options that leave the documented range as it is, with the model that makes a metric fast."""
    if metric == "reference_free_summary_quality":
        return {"progress": False}
    family = "clark" if metric in ("wms", "sms", "swms") else metric.partition("_")[0]
    chosen = {"progress": False, **draw.choice(_CHOICES[family])}
    if metric == "sms":
        chosen.pop("weights", None)
    return chosen if family == "clark" else {**chosen, "model": tiny_encoder()}


def call_function(metric: str, rows: Rows, draw: Draw) -> None:
    """`movers.wms(…)` and the others, with one or several references."""
    groups = [[other, prediction] for prediction, other in rows] if draw.random() < 0.2 else [b for _, b in rows]
    options = options_for(metric, draw)
    check_result(metric, METRICS[metric].function([a for a, _ in rows], groups, **options), len(rows))


@lru_cache(maxsize=16)
def _module(metric: str) -> Any:
    import evaluate

    return evaluate.load(movers.module_path(metric))


def call_module(metric: str, rows: Rows, draw: Draw) -> None:
    """`evaluate.load(…).compute(…)`."""
    texts = {"predictions": [a for a, _ in rows], METRICS[metric].compared_with: [b for _, b in rows]}
    module = _module(metric)
    if metric not in ("wms", "sms", "swms", "reference_free_summary_quality"):
        result = module.compute(**texts, model=tiny_encoder())
    else:
        result = module.compute(**texts)
    check_result(metric, result, len(rows))


def call_command(metric: str, rows: Rows, draw: Draw, folder: Path) -> None:
    """`movers score`, on files of every format; anything that is not a file of texts must be an error."""
    records = [{"prediction": a, "reference": b} for a, b in rows]
    kind = draw.choice(["jsonl", "json", "csv", "tsv", "bytes"])
    path, output = folder / f"rows.{'jsonl' if kind == 'bytes' else kind}", folder / "scores.jsonl"
    written = io.StringIO()
    if kind in ("csv", "tsv"):
        writer = csv.DictWriter(written, ["prediction", "reference"], delimiter="," if kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(records)
    else:
        written.write(json.dumps(records) if kind == "json" else "".join(json.dumps(row) + "\n" for row in records))
    data = bytearray(written.getvalue().encode("utf-8", "surrogatepass"))
    if kind == "bytes":
        for _ in range(draw.randint(1, 5)):
            data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)
    output.unlink(missing_ok=True)
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
        code = main(["score", metric, "-p", str(path), "-r", str(path), "-o", str(output)])
    if code:
        assert code == 2 and stderr.getvalue().splitlines()[-1].startswith("movers: error: "), (code, stderr.getvalue())
        raise InputError(stderr.getvalue())
    scores = [json.loads(line)["score"] for line in output.read_text().splitlines()]
    check_numbers(metric, scores, len(scores) if kind == "bytes" else len(rows))


@lru_cache(maxsize=16)
def _hook(metric: str) -> Any:
    from movers.hooks import compute_metrics

    options = {} if metric in ("wms", "sms", "swms") else {"model": tiny_encoder()}
    return compute_metrics(tiny_tokenizer("bert"), [(metric, {"progress": False, **options})])


def call_hook(metric: str, rows: Rows, draw: Draw) -> None:
    """`compute_metrics` with the ids of the texts, and ids that no tokenizer made (as labels they are refused)."""
    tokenizer = tiny_tokenizer_once()
    limits = len(tokenizer) + 5, len(tokenizer)
    ids = [
        [
            tokenizer(text)["input_ids"][:40] + [draw.choice([-100, -1, 0, draw.randrange(limit)])]
            for text, limit in zip(pair, limits, strict=True)
        ]
        for pair in rows
    ]
    width = max(len(side) for pair in ids for side in pair)
    arrays = [np.array([pair[side] + [-100] * (width - len(pair[side])) for pair in ids]) for side in (0, 1)]
    scores = _hook(metric)(SimpleNamespace(predictions=arrays[0], label_ids=arrays[1], inputs=None))
    check_numbers(metric, [scores[metric]], 1)


@lru_cache(maxsize=1)
def tiny_tokenizer_once() -> Any:
    return tiny_tokenizer("bert")


@lru_cache(maxsize=16)
def _reward(metric: str) -> Any:
    from movers.rewards import reward

    return reward(metric) if metric in ("wms", "sms", "swms") else reward(metric, model=tiny_encoder())


def call_reward(metric: str, rows: Rows, draw: Draw) -> None:
    """A reward function, with texts or conversations; None where there is nothing to compare with."""
    chat = draw.random() < 0.3
    completions = [[{"role": "assistant", "content": a}] if chat else a for a, _ in rows]
    references = [draw.choice([b, [b], [b, "snow"], None, []]) if draw.random() < 0.2 else b for _, b in rows]
    rewards = _reward(metric)(completions=completions, reference=references, prompts=[""] * len(rows))
    assert len(rewards) == len(rows)
    values = [value for value in rewards if value is not None]
    check_numbers(metric, values, len(values), low=0.0 if metric in ("wms", "sms", "swms") else -1.0)


def call_page(metric: str, rows: Rows, draw: Draw) -> None:
    """What the endpoint of a page does, with options that visitors think of."""
    from movers.serve import form_rows, score_pair

    for prediction, other in rows:
        fields = {row.name: row for row in form_rows(metric)}
        options: dict[str, object] = {}
        if draw.random() < 0.5 and metric in ("wms", "sms", "swms"):
            row = fields[draw.choice([*fields])]
            options[row.name] = draw.choice([*row.choices, row.default, value(draw)])
        explanation = score_pair(metric, prediction, [other], options)
        low = -math.inf if options.get("rescale") else None  # unrelated texts are rescaled to 0
        check_numbers(metric, [explanation.score], 1, low)


# ---------------------------------------------------------------------------------------------------------------------
# Options


def value(draw: Draw) -> object:
    """Anything that may stand where an option's value is expected."""
    name, words = text(draw)
    choices: list[object] = [
        None, True, False, 0, 1, -1, 2**70, 0.5, -0.0, math.nan, math.inf, "", "none", "auto", words, [], [words],
        [1, 2], [None], {}, {"a": 1}, (), b"a", object(), 1j, np.float32(1), np.array([1, 2]), "\ud800", "/etc/passwd",
        [[words]],
    ]  # fmt: skip
    return draw.choice(choices)


def call_options(metric: str, draw: Draw) -> None:
    """An option with any value, and a metric as people write it."""
    name = draw.choice([row.name for row in option_rows(METRICS[metric].options_class)])
    METRICS[metric].parse({name: value(draw)})
    parse_metric(f"{metric}[{name}={value(draw)}]")
