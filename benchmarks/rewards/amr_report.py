"""The AMR-to-text tables and curves of RESULTS.md, alike for every generator."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sacrebleu import corpus_bleu, corpus_chrf

from movers import score_many
from movers.io import align_table

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data_folder
from rewards.amr_to_text.data import split
from rewards.measures import Results, against, meteor, quote, read, repeated, spread

TITLES = {
    "start": "cross-entropy (start)",
    "xent": "+ cross-entropy",
    "bleu": "+ BLEU reward",
    "greedy": "+ F_BERT (greedy)",
    "f_cont": "+ F_cont",
    "f_disc": "+ F_disc",
}
OURS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd")
METRICS = ("corpus_bleu", "f_cont", "f_disc")


@dataclass(frozen=True)
class Section:
    """One generator: where its results lie, and what they are called."""

    heading: str
    folder: str
    picture: str
    generator: str
    more: tuple[str, ...] = ()  # systems with another λ, as `f_disc-0.9`

    @property
    def titles(self) -> dict[str, str]:
        named = {system: system.partition("-") for system in self.more}
        return TITLES | {system: f"{TITLES[reward]}, λ = {weight}" for system, (reward, _, weight) in named.items()}

    @property
    def rewards(self) -> dict[str, str]:
        """Systems and the measure that each is trained on."""
        return {name: name.partition("-")[0] for name in self.titles if name not in ("start", "xent")}


def amr_to_text(here: Path, section: Section) -> list[str]:
    """The lines of a section; its curves are drawn beside RESULTS.md."""
    results = read(here / "results" / section.folder)
    lines = [f"## {section.heading}", ""]
    if not results:
        return [*lines, "No system has finished yet.", ""]
    some = next(iter(results.values()))
    seeds = sorted({seed for _, seed in results})
    sizes, setting = some["sizes"], some["setting"]
    epochs = setting.get("reward_epochs", 1)
    sentences = min(setting["reward_sentences"], sizes["train"][0])
    lines += [
        f"{section.generator} on The Little Prince: {sizes['train'][0]} of {sizes['train'][1]} training pairs are "
        f"short enough, {sizes['test'][0]} of {sizes['test'][1]} test pairs. The start has {setting['start_epochs']} "
        f"epochs of cross-entropy; each other row goes on from it for {epochs} × {sentences} sentences, "
        f"λ = {setting['weight']} where nothing else is said, batch {setting['batch']}, rate {setting['rate']} falling "
        f"linearly. Greedy decoding. Seeds finished or begun: {', '.join(map(str, seeds))}.",
        "",
        *_tuning(here / "results" / section.folder / "tuning.json", section),
    ]
    missing = [
        f"{title} of seed {seed}"
        for seed in seeds
        for name, title in section.titles.items()
        if (name, seed) not in results
    ]
    if missing:
        lines += [f"**Not finished:** {', '.join(missing)}.", ""]
    everything = split(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz")
    references = {pair.id: pair.sentence for pair in everything["test"]}
    lines += [*_systems(results, section, references), *_changes(results, section), *_costs(results, section)]
    draw_curves(results, section, here / section.picture)
    lines += ["", f"![validation curves]({section.picture})", "", "Outputs of the first seed:", ""]
    for number in (0, 7, 21, 40):
        lines += [f"- reference: {quote(references[some['ids'][number]])}"]
        for system, title in section.titles.items():
            if (system, seeds[0]) in results:
                lines.append(f"  - {title}: {quote(results[system, seeds[0]]['outputs'][number])}")
    return [*lines, ""]


def _tuning(path: Path, section: Section) -> list[str]:
    """What was compared on validation pairs before the settings were fixed."""
    if not path.is_file():
        return []
    body = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        changes = ", ".join(f"{name} {value}" for name, value in entry["changes"].items())
        first, *later = entry["validation"]
        cells = [" → ".join(f"{point[name]:.2f}" for point in (first, *later)) for name in ("corpus_bleu",)]
        cells += [" → ".join(f"{100 * point[name]:.2f}" for point in (first, *later)) for name in ("f_cont", "f_disc")]
        steps = " → ".join(str(point["step"]) for point in (first, *later))
        body.append([section.titles.get(entry["system"], entry["system"]), changes, steps, *cells])
    return [
        "Tried on validation pairs with seed 0 before any test pair was decoded:",
        "",
        *align_table(["system", "setting", "steps", "BLEU", "F_cont", "F_disc"], body, markdown=True),
        "",
    ]


def _systems(results: Results, section: Section, references: dict[str, str]) -> list[str]:
    """Every measure of every system: means and standard deviations over seeds."""
    body, ours = [], []
    for system, title in section.titles.items():
        found = [result for (name, _), result in results.items() if name == system]
        if not found:
            body.append([title, *["not finished"] * 8])
            continue
        columns: dict[str, list[float]] = {}
        for result in found:
            own = [references[number] for number in result["ids"]]
            texts = [text or "." for text in result["outputs"]]
            measured = {
                "BLEU": corpus_bleu(texts, [own]).score,
                "chrF": corpus_chrf(texts, [own]).score,
                "METEOR": 100 * meteor(texts, own),
                **{name: 100 * result["test"][name] for name in ("greedy", "f_cont", "f_disc")},
                "2": 100 * repeated(texts, 2),
                "3": 100 * repeated(texts, 3),
            }
            for name, scores in score_many(OURS, texts, own).items():
                measured[name] = 100 * float(str(scores["score"]))
            for name, value in measured.items():
                columns.setdefault(name, []).append(value)
        shown = ("BLEU", "chrF", "METEOR", "greedy", "f_cont", "f_disc", "2", "3")
        body.append([title, *(spread(columns[name], 2) for name in shown)])
        ours.append([title, *(spread(columns[name], 2) for name in OURS)])
    heading = ["system", "BLEU", "chrF", "METEOR", "F_BERT", "F_cont", "F_disc", "repeated 2-grams", "3-grams"]
    return [
        *align_table(heading, body, right=range(1, 9), markdown=True),
        "",
        "All in percent; F on the model's own token embeddings. METEOR is NLTK's with exact and stem matches "
        "(WordNet's synonyms would need a download). BLEURT is missing: its weights cannot be had without a download. "
        "`+ cross-entropy` has as many more steps without a reward on the same sentences.",
        "",
        "On texts, with the metrics' defaults:",
        "",
        *align_table(["system", *OURS], ours, right=range(1, 7), markdown=True),
        "",
    ]


def _changes(results: Results, section: Section) -> list[str]:
    """The trained metric against the start and against cross-entropy alone."""
    control = any(name == "xent" for name, _ in results)
    body = [
        [
            section.titles[system],
            against(results, "start", system, metric),
            against(results, "start", "xent", metric) if control else "not finished",
            against(results, "xent", system, metric) if control else "not finished",
        ]
        for system, metric in section.rewards.items()
        if any(name == system for name, _ in results)
    ]
    return [
        "Change of the trained metric on test pairs in points: mean ± standard deviation over seeds, the seeds one by "
        "one, and a paired permutation test over pairs:",
        "",
        *align_table(
            ["reward", "reward against start", "cross-entropy against start", "reward against cross-entropy"],
            body,
            markdown=True,
        ),
        "",
    ]


def _costs(results: Results, section: Section) -> list[str]:
    costs = {}
    for system in TITLES:
        found = [result["curve"] for (name, _), result in results.items() if name == system in section.rewards]
        if found:
            own = statistics.mean(entry["step_reward_seconds"] for curve in found for entry in curve[1:])
            costs[system] = (
                own,
                statistics.mean(curve[-1]["processor_seconds"] / curve[-1]["step"] for curve in found),
            )
    body = [
        [
            TITLES[system],
            f"{1000 * own:.1f} ms",
            f"{own / costs['bleu'][0]:.1f}" if "bleu" in costs else "",
            f"{100 * own / whole:.2f} %",
        ]
        for system, (own, whole) in costs.items()
    ]
    return [
        "Time of a reward (32 outputs of a step) against BLEU, and its share of a step:",
        "",
        *align_table(["reward", "processor time", "× BLEU", "share of a step"], body, right=range(1, 4), markdown=True),
    ]


def draw_curves(results: Results, section: Section, path: Path) -> None:
    """BLEU (Fig. 1), F_cont and F_disc on validation pairs by step, means over seeds that all systems have."""
    from matplotlib.figure import Figure

    drawn = {name for name, _ in results} - {"start"}
    seeds = {seed for _, seed in results if all((name, seed) in results for name in drawn)}
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    panels = figure.subplots(1, len(METRICS))
    for axes, metric, label in zip(panels, METRICS, ("BLEU", "F_cont", "F_disc"), strict=True):
        for system, title in section.titles.items():
            curves = [results[system, seed]["curve"] for seed in sorted(seeds)] if system in drawn else []
            if curves:
                values = np.mean([[entry[metric] for entry in curve] for curve in curves], axis=0)
                style = "--" if system in section.more or system == "xent" else "-"
                axes.plot([entry["step"] for entry in curves[0]], values, style, marker="o", markersize=3, label=title)
        axes.set_xlabel("step")
        axes.set_ylabel(f"{label} on validation pairs")
    if panels[0].lines:
        panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=80)
