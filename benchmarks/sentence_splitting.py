"""Sentence splitters that need no download: correctness on hard cases, and speed.

    python benchmarks/sentence_splitting.py

Cases are written for this project: (text, number of sentences). Speed is per text of five sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from common import machine, seconds, write

from movers.texts import split_sentences

CASES = {
    "abbreviations": [
        ("Dr. Smith met Mrs. Jones at 5 p.m. in Washington, D.C. They talked for two hours.", 2),
        ("The U.S. economy grew. Analysts, e.g. at Gold Inc., were surprised.", 2),
        ("See Fig. 3 and Sec. 2.1 for details. J. R. R. Tolkien wrote it.", 2),
        ("The case, No. 12, was closed. Prof. Lee won.", 2),
        ("Nov. 5 was cold. On Jan. 3 it snowed.", 2),
    ],
    "quotes and brackets": [
        ('"Are you coming?" she asked. He said nothing.', 2),
        ('He said "I do not know." Then he left.', 2),
        ("(He left early.) The party went on.", 2),
    ],
    "decimals": [
        ("The price is $4.50. It was $3.99 yesterday!", 2),
        ("Version 2.1.3 came out. It fixes 0.5 % of the bugs.", 2),
    ],
    "ellipses": [
        ("Wait... what happened? I do not know.", 2),
        ("He paused… then spoke. Nobody listened.", 2),
    ],
    "lower case and spaced marks": [
        ("It rained. no one called. the phone was dead.", 3),
        ("a man is selling snow online . for $ 89 , he will ship it .", 2),
    ],
    "line breaks": [("First line without end\nSecond line here", 2)],
    "other scripts": [
        ("这是第一句。这是第二句！第三句？", 3),
        ("यह पहला वाक्य है। यह दूसरा है।", 2),
        ("Привет. Как дела? Хорошо.", 3),
    ],
}


def splitters() -> dict[str, Callable[[str], list[str]]]:
    import nupunkt
    import pysbd
    import sentencex
    import syntok.segmenter

    segmenter = pysbd.Segmenter(language="en", clean=False)
    return {
        "movers (sentencex, line by line)": split_sentences,
        "sentencex": lambda text: list(sentencex.segment("en", text)),
        "pysbd": segmenter.segment,
        "nupunkt": nupunkt.sent_tokenize,
        "syntok": lambda text: [s for paragraph in syntok.segmenter.process(text) for s in paragraph],
    }


def main() -> None:
    text = " ".join(case for case, _ in CASES["abbreviations"])
    rows = []
    for name, split in splitters().items():
        cells = []
        for cases in CASES.values():
            right = sum(len([s for s in split(case) if not isinstance(s, str) or s.strip()]) == n for case, n in cases)
            cells.append(f"{right}/{len(cases)}")
        split(text)
        best = min(seconds(partial(split, text)) for _ in range(20))
        rows.append(f"| {name} | {' | '.join(cells)} | {best * 1e6:,.0f} |")
    write(
        "sentence_splitting",
        [
            "# Sentence splitters",
            "",
            machine(("sentencex", "pysbd", "nupunkt", "syntok")),
            "",
            f"| splitter | {' | '.join(CASES)} | µs a text |",
            "|---|" + "---|" * (len(CASES) + 1),
            *rows,
        ],
    )


if __name__ == "__main__":
    main()
