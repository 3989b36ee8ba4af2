"""Write RESULTS.md and the validation curves from results.csv.

python benchmarks/rewards/report.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from scipy.stats import ttest_1samp

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import read_rows, version_note
from rewards.measures import SUITE, load

HERE = Path(__file__).parent
SYSTEMS = {
    "start": "cross-entropy (start)",
    "xent": "+ cross-entropy",
    "bleu": "+ BLEU reward",
    "greedy": "+ F_BERT (greedy)",
    "f_cont": "+ F_cont",
    "f_disc": "+ F_disc",
}
TRAINED = {"bleu": "BLEU", "greedy": "F_BERT", "f_cont": "F_cont", "f_disc": "F_disc"}
COMPARED = {
    "f_disc": ("xent", "greedy", "bleu"),
    "f_cont": ("xent", "greedy", "bleu"),
    "greedy": ("xent",),
    "bleu": ("xent",),
}
AMR_MEASURES = ("BLEU", "chrF", "METEOR", "F_BERT", "F_cont", "F_disc", "repeated 2-grams", "repeated 3-grams")
PAPER_MEASURES = ("BLEU", "METEOR", "chrF", "repeated 2-grams")
OURS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd")
SETTING = (
    "each other row goes on from it for {epochs} × {sentences} sentences, λ = 0.3, "
    "batch 16, rate {rate} falling linearly. Greedy decoding."
)
AMR = {
    "amr_to_text": (
        "AMR-to-text (Jin & Gildea 2022, Tables 1 and 2, Fig. 1)",
        "SmolLM2-135M-Instruct on The Little Prince: 1021 of 1262 training pairs are short enough, 162 of 200 test "
        "pairs. The start has 2 epochs of cross-entropy; " + SETTING.format(epochs=1, sentences=512, rate=0.0001),
        "amr_validation.png",
    ),
    "amr_scratch": (
        "AMR-to-text with a small Transformer from scratch",
        "A Transformer of two layers on WordLlama's vectors, which are trained with it, on The Little Prince: 1003 of "
        "1262 training pairs are short enough, 162 of 200 test pairs. The start has 16 epochs of cross-entropy; "
        + SETTING.format(epochs=2, sentences=1003, rate=0.0003),
        "amr_scratch_validation.png",
    ),
}
SUMMARIES = {
    "mle": "MLE",
    "rouge": "MLE + ROUGE-L",
    "wms": "MLE + WMS",
    "sms": "MLE + SMS",
    "swms": "MLE + S+WMS",
    "sms-1e-5": "MLE + SMS, rate 1e-5",
}
COSTS = {
    "greedy": "embedding_reward, greedy",
    "hungarian": "embedding_reward, hungarian (F_disc)",
    "emd": "embedding_reward, emd (F_cont)",
    "sms": "reward('sms') on texts",
    "bleu": "sentence BLEU on texts",
}
CHANGE = (
    "{} in points: mean ± standard deviation over seeds, the seeds one by one, and a paired t-test over seeds. For "
    "p = .05, the mean must be 2.5 times the standard deviation with three seeds, .84 times with eight."
)


class Results:
    """The rows of one table."""

    def __init__(self, rows: pd.DataFrame, table: str) -> None:
        self.rows = rows[rows["table"] == table]
        self.settings = set(self.rows["setting"])

    def texts(self, setting: str, measure: str) -> list[str]:
        chosen = self.rows[(self.rows["setting"] == setting) & (self.rows["measure"] == measure)]
        return list(chosen.sort_values("seed")["value"])

    def values(self, setting: str, measure: str) -> list[float]:
        return [float(value) for value in self.texts(setting, measure)]

    def spread(self, setting: str, measure: str) -> str:
        """Mean, and the standard deviation over seeds where there are several."""
        values = self.values(setting, measure)
        if not values:
            return "not finished"
        return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")

    def change(self, setting: str, measure: str, start: str, seeds: bool = True) -> str:
        """Paired differences of the seeds that have both, and the p-value of a t-test over them."""
        by_seed = self.rows[self.rows["measure"] == measure].pivot(index="seed", columns="setting", values="value")
        pairs = by_seed.reindex(columns=[setting, start]).dropna().astype(float)
        changes = pairs[setting] - pairs[start]
        if len(changes) < 2:
            return "not finished"
        listed = ": " + ", ".join(f"{change:+.2f}" for change in changes) if seeds else ""
        p = ttest_1samp(changes, 0.0).pvalue
        return f"{changes.mean():+.2f} ± {changes.std():.2f}{listed} (p = {p:.3f})"

    def outputs(self, titles: Mapping[str, str], number: int) -> list[str]:
        texts = {title: self.texts(setting, f"output {number}") for setting, title in titles.items()}
        return [f"  - {title}: {quoted[0]}" for title, quoted in texts.items() if quoted]


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]], right: bool = True) -> list[str]:
    """Lines of a table; all columns but the first are aligned to the right."""
    marks = ["---", *(["--:" if right else "---"] * (len(heading) - 1))]
    return [f"| {' | '.join(cells)} |" for cells in (heading, marks, *rows)] + [""]


def amr_to_text(rows: pd.DataFrame, table: str) -> list[str]:
    results = Results(rows, table)
    heading, description, picture = AMR[table]
    seeds = sorted(set(results.rows.loc[results.rows["measure"] == "BLEU", "seed"]))
    lines = [f"## {heading}", "", f"{description} Seeds finished or begun: {', '.join(seeds)}.", ""]
    names = [name.removeprefix("repeated ") if "3" in name else name for name in AMR_MEASURES]
    lines += markdown(
        ["system", *names],
        [[title, *(results.spread(name, measure) for measure in AMR_MEASURES)] for name, title in SYSTEMS.items()],
    )
    lines += [
        "All in percent; F on the model's token embeddings before training, which are the same for all. METEOR is "
        "NLTK's with exact and stem matches (WordNet's synonyms would need a download). BLEURT is missing: its weights "
        "cannot be had without a download. "
        "`+ cross-entropy` has as many more steps without a reward on the same sentences.",
        "",
        "On texts, with the metrics' defaults:",
        "",
    ]
    lines += markdown(
        ["system", *OURS],
        [[title, *(results.spread(name, measure) for measure in OURS)] for name, title in SYSTEMS.items()],
    )
    lines += [CHANGE.format("Change of the trained metric on test pairs"), ""]
    lines += markdown(
        ["reward", "reward against start", "cross-entropy against start", "reward against cross-entropy"],
        [
            [SYSTEMS[name], *(results.change(system, measure, start) for system, start in
                              ((name, "start"), ("xent", "start"), (name, "xent")))]
            for name, measure in TRAINED.items()
        ],
        right=False,
    )  # fmt: skip
    if cosines := results.values("f_disc", "embedding cosine"):
        cosine = statistics.mean(cosines)
        lines += [f"Mean cosine of a token's embeddings before training and after that with F_disc: {cosine:.3f}.", ""]
    lines += ["The paper's measures, and the repetitions that it ascribes to greedy alignment:", ""]
    lines += markdown(
        ["system", "against", *PAPER_MEASURES],
        [
            [
                SYSTEMS[name],
                SYSTEMS[other],
                *(results.change(name, measure, other, False) for measure in PAPER_MEASURES),
            ]
            for name, others in COMPARED.items()
            for other in others
        ],
        right=False,
    )
    lines += ["Time of a reward (32 outputs of a step) against BLEU, and its share of a step:", "", *costs(results)]
    draw_curves(results, HERE / picture)
    lines += [f"![validation curves]({picture})", "", "Outputs of the first seed:", ""]
    for number in (0, 7, 21, 40):
        lines += [
            f"- reference: {results.texts('reference', f'output {number}')[0]}",
            *results.outputs(SYSTEMS, number),
        ]
    return [*lines, ""]


def costs(results: Results) -> list[str]:
    means = {
        name: [statistics.mean(results.values(name, f"{measure} seconds")) for measure in ("reward", "step")]
        for name in TRAINED
        if name in results.settings
    }
    body = [
        [
            SYSTEMS[name],
            f"{1000 * reward:.1f} ms",
            f"{reward / means['bleu'][0]:.1f}" if "bleu" in means else "",
            f"{100 * reward / step:.2f} %",
        ]
        for name, (reward, step) in means.items()
    ]
    return markdown(["reward", "processor time", "× BLEU", "share of a step"], body)


def draw_curves(results: Results, path: Path) -> None:
    """BLEU (Fig. 1), F_cont and F_disc on validation pairs by step, means over seeds that all systems have."""
    from matplotlib.figure import Figure

    curves = results.rows[results.rows["measure"].str.contains("@")]
    seeds = set.intersection(*(set(group["seed"]) for _, group in curves.groupby("setting")))
    curves = curves[curves["seed"].isin(seeds)].astype({"value": float})
    curves[["name", "step"]] = curves["measure"].str.removeprefix("validation ").str.split("@", expand=True)
    means = curves.astype({"step": int}).groupby(["setting", "name", "step"])["value"].mean()
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, measure in zip(panels, ("BLEU", "F_cont", "F_disc"), strict=True):
        for system, title in SYSTEMS.items():
            if (system, measure) in means:
                style = "--" if system == "xent" else "-"
                means[system, measure].plot(ax=axes, style=style, marker="o", markersize=3, label=title)
        axes.set_xlabel("step")
        axes.set_ylabel(f"{measure} on validation pairs")
    panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=80)


def summarization(rows: pd.DataFrame) -> list[str]:
    results = Results(rows, "summarization")
    lines = ["## Summarisation (Clark et al. 2019, Tables 4, 5 and 8)", ""]
    sizes = []
    for part in ("test", "validation", "train"):
        pairs = results.rows.loc[results.rows["setting"] == part, "n"].iloc[0]
        tokens = [f"{results.values(part, f'{side} tokens')[0]:.0f}" for side in ("document", "summary")]
        sizes.append([part, pairs, *tokens])
    lines += ["Sizes (Table 8), in tokens after cutting:", ""]
    lines += markdown(["part", "pairs", "document", "summary"], sizes)
    rates = [setting for setting in dict.fromkeys(results.rows["setting"]) if setting.startswith("rate ")]
    shown = ", ".join(f"{rate[5:]}: {results.values(rate, 'validation SMS')[0]:.4f}" for rate in rates)
    lines += [f"Best SMS reward on validation data by learning rate (seed 0): {shown}.", ""]
    measures = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "WMS", "SMS", "S+WMS")
    seeds = sorted(set(results.rows.loc[results.rows["measure"] == "ROUGE-1", "seed"]))
    lines += [f"Test pairs, beam 5, seeds {', '.join(seeds)} (Table 4):", ""]
    lines += markdown(
        ["model", *measures],
        [[title, *(results.spread(name, measure) for measure in measures)] for name, title in SUMMARIES.items()],
    )
    lines += ["In percent; WMS, SMS and S+WMS on the scale of the rewards, exp(−distance / τ).", ""]
    lines += [CHANGE.format("Change of the trained metric against MLE"), ""]
    trained = {"rouge": "ROUGE-L", "wms": "WMS", "sms": "SMS", "swms": "S+WMS", "sms-1e-5": "SMS"}
    lines += markdown(
        ["model", "its own reward against MLE"],
        [[SUMMARIES[name], results.change(name, measure, "mle")] for name, measure in trained.items()],
        right=False,
    )
    lines += ["Outputs of the first seed (Table 5):", ""]
    for number in (3, 11, 42):
        lines += [f"- article {number}", *results.outputs(SUMMARIES, number)]
    return [*lines, "", "Table 6 needs people who judge; nobody has.", ""]


def grpo(rows: pd.DataFrame) -> list[str]:
    results = Results(rows, "grpo")
    (setting,) = results.settings

    def value(measure: str) -> float:
        return results.values(setting, measure)[0]

    lines = [
        "## GRPO on SmolLM2 with an `sms` reward",
        "",
        f"{setting.split(', ')[1]} of 8 completions. Mean reward on {results.rows['n'].iloc[0]} held-out prompts: "
        f"{value('before'):.4f} before, {value('after'):.4f} after; difference {value('difference'):+.4f}, 95 % "
        f"interval from {value('difference, low'):+.4f} to {value('difference, high'):+.4f} (bootstrap over prompts).",
        "",
        f"The reward takes {value('reward share of a step'):.2f} % of a step.",
        "",
    ]
    for number in range(4):
        sides = ("prompt", "reference", "before", "after")
        prompt, reference, before, after = (results.texts(setting, f"{side} {number}")[0] for side in sides)
        lines += [f"- {prompt} (reference: {reference})", f"  - before: {before}", f"  - after: {after}"]
    return [*lines, ""]


def cost(rows: pd.DataFrame) -> list[str]:
    results = Results(rows, "cost")
    milliseconds = {name: results.values(name, "milliseconds")[0] for name in COSTS}
    body = [
        [COSTS[name], f"{value:.1f}", f"{value / milliseconds['greedy']:.2f}"] for name, value in milliseconds.items()
    ]
    lines = ["## What a reward costs", "", "64 completions of 40 tokens, one thread, median processor time:", ""]
    lines += markdown(["reward", "ms", "× greedy"], body)
    return [*lines, results.texts("machine", "machine")[0]]


def main() -> None:
    rows = load()
    lines = ["# Metrics as rewards: results", "", "Written by `report.py` from `results.csv`.", ""]
    sections = {table: amr_to_text(rows, table) for table in AMR}
    sections |= {"summarization": summarization(rows), "grpo": grpo(rows), "cost": cost(rows)}
    for table, section in sections.items():
        lines += [section[0], *version_note("rewards", table, read_rows(SUITE)), *section[1:]]
    (HERE / "RESULTS.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
