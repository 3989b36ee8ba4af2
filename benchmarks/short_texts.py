"""How `moverscore` does on texts of one to five words, and what dropping the special tokens costs on longer ones.

    python benchmarks/short_texts.py        # writes benchmarks/results/short_texts.md

[CLS] and [SEP] carry mass of their own. In a text of one word they are two thirds of it, and two unrelated words score
high. The pairs of one to five words are ours: phrases that mean the same, and the same phrases against the next one in
the list. AUC is the share of (related, unrelated) pairs in which the related one scores higher. The judged sets are
read as published, all rows, Pearson with people (WMT17: mean over the seven language pairs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from common import judged, machine, write
from scipy.stats import pearsonr

import movers

SETTINGS: dict[str, dict[str, object]] = {
    "default": {},
    "special_tokens=False": {"special_tokens": False},
    "special_tokens=False, drop_subwords=False": {"special_tokens": False, "drop_subwords": False},
}
RELATED = [
    ("car", "automobile"),
    ("happy", "glad"),
    ("yes", "of course"),
    ("no", "not at all"),
    ("doctor", "physician"),
    ("big house", "large home"),
    ("shut the door", "close the door"),
    ("he died", "he passed away"),
    ("start", "begin"),
    ("kids", "children"),
    ("very cold", "freezing"),
    ("the film was boring", "a dull movie"),
    ("thank you", "thanks a lot"),
    ("buy bread", "purchase a loaf"),
    ("heavy rain", "a downpour"),
    ("the train is late", "the train was delayed"),
    ("silent", "quiet"),
    ("police officer", "policeman"),
    ("prices rose", "costs went up"),
    ("near the sea", "by the ocean"),
    ("ill", "sick"),
    ("cheap hotel", "inexpensive lodging"),
    ("she sings well", "her singing is good"),
    ("error", "mistake"),
    ("lawyer", "attorney"),
    ("fast", "quick"),
    ("open at noon", "opens at twelve"),
    ("soccer match", "football game"),
    ("a small dog", "a little puppy"),
    ("stop talking", "be quiet"),
]
SETS: Mapping[str, tuple[str, str]] = {
    "WMT17": ("wmt17_seg_da_to_en", "da_z"),
    "WebNLG": ("webnlg2020_en", "correctness"),
    "BAGEL": ("bagel", "informativeness"),
    "SummEval": ("summeval", "relevance"),
}


def agreement(rows: Sequence[dict[str, object]], scores: Sequence[float], human: str) -> float:
    """Pearson with people, the mean over language pairs where there are any."""
    groups = [str(row.get("lp")) for row in rows]
    values = []
    for group in dict.fromkeys(groups):
        members = [place for place, own in enumerate(groups) if own == group]
        people = [rows[place]["scores"][human] for place in members]  # type: ignore[index]
        known = [place for place, value in enumerate(people) if value is not None]
        values.append(pearsonr([scores[members[place]] for place in known], [people[place] for place in known])[0])
    return float(np.mean(values))


def main() -> None:
    first, second = [pair[0] for pair in RELATED], [pair[1] for pair in RELATED]
    other = second[1:] + second[:1]
    columns = ["AUC", "related", "unrelated", *SETS]
    lines = ["# Special tokens and short texts", "", "| setting | " + " | ".join(columns) + " |"]
    lines.append("|---|" + "---|" * len(columns))
    for label, options in SETTINGS.items():
        related = movers.moverscore(first, second, **options)["scores"]
        unrelated = movers.moverscore(first, other, **options)["scores"]
        auc = float(np.mean([a > b for a in related for b in unrelated]))
        cells = [f"{auc:.3f}", f"{np.mean(related):.2f}", f"{np.mean(unrelated):.2f}"]
        for name, human in SETS.values():
            rows = [row for row in judged(name) if row["references"]]
            scores = movers.moverscore(
                [row["candidate"] for row in rows], [row["references"] for row in rows], **options
            )
            cells.append(f"{abs(agreement(rows, scores['scores'], human)):.3f}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    lines += ["", f"{len(RELATED)} pairs of one to five words; all-MiniLM-L6-v2. {machine()}"]
    write("short_texts", lines)


if __name__ == "__main__":
    main()
