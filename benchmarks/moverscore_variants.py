"""The authors' two scripts, the paper as printed, and the translation preset on WMT17 as published.

    python benchmarks/moverscore_variants.py [--model all-mpnet-base-v2]

Absolute Pearson with direct assessments for each language pair into English (560 segments each; HTML entities as
published). IDF tables are counted per language pair. Among the settings of `moverscore_settings.py`, cs, de, fi and lv
choose the layers of the translation preset; the mean over ru, tr and zh is on other pairs (which settings to try was
decided with all seven in view), the mean over all seven includes the choice. Writes
`results/moverscore_variants_<model>.md`.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import judged, machine, write
from scipy.stats import pearsonr

import movers

SETTINGS: dict[str, dict[str, object]] = {
    "variant='v1' (the authors' first script; default)": {},
    "variant='v2' (their second script)": {"variant": "v2"},
    "preset='paper' (Eq. 1 to 3 as printed)": {"preset": "paper"},
    "preset='translation'": {"preset": "translation"},
}
HELD_OUT = ("ru", "tr", "zh")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    model = parser.parse_args().model
    rows = judged("wmt17_seg_da_to_en")
    languages = sorted({str(row["lp"]) for row in rows})
    found: dict[str, dict[str, float]] = {label: {} for label in SETTINGS}
    for language in languages:
        own = [row for row in rows if row["lp"] == language]
        texts = [row["candidate"] for row in own], [row["references"] for row in own]
        people = [row["scores"]["da_z"] for row in own]
        shared = movers.SharedPass()
        for label, options in SETTINGS.items():
            scores = movers.moverscore(texts[0], texts[1], model=model, shared_pass=shared, **options)["scores"]
            found[label][language] = abs(float(pearsonr(scores, people)[0]))
        print(language, {label: round(values[language], 3) for label, values in found.items()}, flush=True)
    short = [language.split("-")[0] for language in languages]
    lines = [f"# MoverScore's definitions on WMT17, {model}", ""]
    lines.append("| setting | " + " | ".join(short) + " | ru, tr, zh | all |")
    lines.append("|---|" + "---|" * (len(short) + 2))
    for label, values in found.items():
        held_out = float(np.mean([values[language] for language in languages if language.split("-")[0] in HELD_OUT]))
        cells = [f"{values[language]:.3f}" for language in languages]
        lines.append(
            f"| {label} | " + " | ".join(cells) + f" | {held_out:.3f} | {np.mean(list(values.values())):.3f} |"
        )
    lines += [
        "",
        "Among the settings tried, cs, de, fi and lv choose the layers of the translation preset; which settings to "
        "try was decided with all seven pairs in view, so “ru, tr, zh” is a little optimistic, too, and “all” includes "
        "the choice.",
        "",
    ]
    lines.append(machine())
    write(f"moverscore_variants_{model}", lines)


if __name__ == "__main__":
    main()
