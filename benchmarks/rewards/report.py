"""Write RESULTS.md and the validation curves from the files in `results/`.

python benchmarks/rewards/report.py
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sacrebleu import corpus_bleu, corpus_chrf

from movers import score_many
from movers.io import align_table, write_file

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data_folder
from rewards.amr_to_text.data import split

HERE = Path(__file__).parent
Result = dict[str, object]
AMR_TITLES = {
    "start": "cross-entropy (start)",
    "xent": "+ cross-entropy",
    "bleu": "+ BLEU reward",
    "greedy": "+ F_BERT (greedy)",
    "f_cont": "+ F_cont",
    "f_disc": "+ F_disc",
}
SUMMARY_TITLES = {
    "mle": "MLE",
    "rouge": "MLE + ROUGE-L",
    "wms": "MLE + WMS",
    "sms": "MLE + SMS",
    "swms": "MLE + S+WMS",
    "sms-1e-5": "MLE + SMS, rate 1e-5",
}
OURS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd")


def read(folder: str) -> dict[tuple[str, int], dict]:
    """Finished results by system and seed."""
    found = {}
    for path in sorted((HERE / "results" / folder).glob("*-[0-9]*.json")):
        system, _, seed = path.stem.rpartition("-")
        found[system, int(seed)] = json.loads(path.read_text(encoding="utf-8"))
    return found


def spread(values: Sequence[float], digits: int) -> str:
    """Mean, and the standard deviation over seeds where there are several."""
    mean = statistics.mean(values)
    return f"{mean:.{digits}f}" + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")


def permutation_p(differences: np.ndarray, draws: int = 10_000) -> float:
    """Two-sided paired permutation test: signs of the differences drawn at random.

    >>> permutation_p(np.ones(20)) < 0.001 and permutation_p(np.array([1.0, -1.0] * 10)) > 0.9
    True
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (draws, len(differences)))
    drawn = np.abs((signs * differences).mean(axis=1))
    return float((1 + (drawn >= abs(differences.mean()) - 1e-12).sum()) / (draws + 1))


def repeated(texts: Sequence[str], n: int) -> float:
    """Share of n-grams that occur earlier in the same text.

    >>> repeated(["a b a b"], 2)
    0.3333333333333333
    """
    total = again = 0
    for text in texts:
        words = text.lower().split()
        grams = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
        total, again = total + len(grams), again + len(grams) - len(set(grams))
    return again / total if total else 0.0


def meteor(texts: Sequence[str], references: Sequence[str]) -> float:
    """METEOR of NLTK with exact and stem matches; WordNet's synonyms, which need a download, are left out."""
    from importlib import import_module

    score = import_module("nltk.translate.meteor_score").single_meteor_score
    nothing = SimpleNamespace(synsets=lambda word: [])
    scores = [
        score(reference.split(), text.split(), wordnet=nothing)
        for text, reference in zip(texts, references, strict=True)
    ]
    return statistics.mean(scores)


def against_start(results: Mapping[tuple[str, int], dict], start: str, system: str, metric: str) -> str:
    """Change against the start, per seed in percent, and the paired test over examples (means over seeds)."""
    seeds = [seed for name, seed in results if name == system and (start, seed) in results]
    pairs = [
        (np.array(results[system, seed]["each"][metric]), np.array(results[start, seed]["each"][metric]))
        for seed in seeds
    ]
    changes = ", ".join(f"{100 * float((new - old).mean()):+.2f}" for new, old in pairs)
    return f"{changes} (p = {permutation_p(np.mean([new - old for new, old in pairs], axis=0)):.4f})"


def quote(text: str, width: int = 220) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:width]


# ---------------------------------------------------------------------------------------------------------------------


def amr_sentences() -> dict[str, str]:
    everything = split(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz")
    return {pair.id: pair.sentence for pair in everything["test"]}


def amr_to_text() -> list[str]:
    results = read("amr_to_text")
    lines = ["## AMR-to-text (Jin & Gildea 2022, Tables 1 and 2, Fig. 1)", ""]
    if not results:
        return [*lines, "No system has finished yet.", ""]
    some = next(iter(results.values()))
    seeds = sorted({seed for _, seed in results})
    missing = [
        f"{AMR_TITLES[name]} of seed {seed}" for seed in seeds for name in AMR_TITLES if (name, seed) not in results
    ]
    sizes, setting = some["sizes"], some["setting"]
    lines += [
        f"SmolLM2-135M-Instruct on The Little Prince: {sizes['train'][0]} of {sizes['train'][1]} training pairs are "
        f"short enough, {sizes['test'][0]} of {sizes['test'][1]} test pairs. The start has {setting['start_epochs']} "
        f"epochs of cross-entropy; each other row goes on from it for {setting['reward_sentences']} sentences, "
        f"λ = {setting['weight']}, batch {setting['batch']}, rate {setting['rate']} falling linearly. Greedy decoding. "
        f"Seeds finished or begun: {', '.join(map(str, seeds))}.",
        "",
    ]
    if missing:
        lines += [f"**Not finished:** {', '.join(missing)}.", ""]
    sentences = amr_sentences()
    body, ours = [], []
    for system, title in AMR_TITLES.items():
        found = [result for (name, _), result in results.items() if name == system]
        if not found:
            body.append([title, *["not finished"] * 8])
            continue
        columns: dict[str, list[float]] = {}
        for result in found:
            references = [sentences[number] for number in result["ids"]]
            texts = [text or "." for text in result["outputs"]]
            measured = {
                "BLEU": corpus_bleu(texts, [references]).score,
                "chrF": corpus_chrf(texts, [references]).score,
                "METEOR": 100 * meteor(texts, references),
                **{name: 100 * result["test"][name] for name in ("greedy", "f_cont", "f_disc")},
                "2": 100 * repeated(texts, 2),
                "3": 100 * repeated(texts, 3),
            }
            for name, value in measured.items():
                columns.setdefault(name, []).append(value)
            for name, scores in score_many(OURS, texts, references).items():
                columns.setdefault(name, []).append(100 * float(str(scores["score"])))
        shown = ("BLEU", "chrF", "METEOR", "greedy", "f_cont", "f_disc", "2", "3")
        body.append([title, *(spread(columns[name], 2) for name in shown)])
        ours.append([title, *(spread(columns[name], 2) for name in OURS)])
    heading = ["system", "BLEU", "chrF", "METEOR", "F_BERT", "F_cont", "F_disc", "repeated 2-grams", "3-grams"]
    lines += align_table(heading, body, right=range(1, 9), markdown=True)
    lines += [
        "",
        "All in percent; F on the model's own token embeddings. METEOR is NLTK's with exact and stem matches "
        "(WordNet's synonyms would need a download). BLEURT is missing: its weights cannot be had without a download. "
        "`+ cross-entropy` is one more epoch without a reward on the same sentences.",
        "",
        "On texts, with the metrics' defaults:",
        "",
        *align_table(["system", *OURS], ours, right=range(1, 7), markdown=True),
        "",
        "Change of the trained metric against the start on test pairs, one number per seed in points, with a paired "
        "permutation test over pairs; and the same metric after cross-entropy alone:",
        "",
    ]
    changes = []
    for system in ("bleu", "greedy", "f_cont", "f_disc"):
        if any(name == system for name, _ in results):
            control = any(name == "xent" for name, _ in results)
            changes.append(
                [
                    AMR_TITLES[system],
                    against_start(results, "start", system, system),
                    against_start(results, "start", "xent", system) if control else "not finished",
                    against_start(results, "xent", system, system) if control else "not finished",
                ]
            )
    lines += align_table(
        ["reward", "reward against start", "cross-entropy against start", "reward against cross-entropy"],
        changes,
        markdown=True,
    )
    lines += ["", "Time of a reward (32 outputs of a step) against BLEU, and its share of a step:", ""]
    costs = {}
    for system in ("bleu", "greedy", "f_cont", "f_disc"):
        entries = [entry for (name, _), result in results.items() if name == system for entry in result["curve"][1:]]
        whole = [
            result["curve"][-1]["processor_seconds"] / result["curve"][-1]["step"]
            for (name, _), result in results.items()
            if name == system
        ]
        if entries:
            costs[system] = (statistics.mean(entry["step_reward_seconds"] for entry in entries), statistics.mean(whole))
    rows = [
        [
            AMR_TITLES[system],
            f"{1000 * own:.1f} ms",
            f"{own / costs['bleu'][0]:.1f}" if "bleu" in costs else "",
            f"{100 * own / whole:.2f} %",
        ]
        for system, (own, whole) in costs.items()
    ]
    lines += align_table(
        ["reward", "processor time", "× BLEU", "share of a step"], rows, right=range(1, 4), markdown=True
    )
    draw_curves(results, HERE / "amr_validation.png")
    lines += ["", "![validation BLEU](amr_validation.png)", "", "Outputs of the first seed:", ""]
    first = seeds[0]
    for number in (0, 7, 21, 40):
        lines += [f"- reference: {quote(sentences[some['ids'][number]])}"]
        for system, title in AMR_TITLES.items():
            if (system, first) in results:
                lines.append(f"  - {title}: {quote(results[system, first]['outputs'][number])}")
    return [*lines, ""]


def draw_curves(results: Mapping[tuple[str, int], dict], path: Path) -> None:
    """Validation BLEU by step, the mean over seeds (Fig. 1)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for system, title in AMR_TITLES.items():
        curves = [result["curve"] for (name, _), result in results.items() if name == system and system != "start"]
        if curves:
            steps = [entry["step"] for entry in curves[0]]
            axes.plot(
                steps,
                np.mean([[entry["corpus_bleu"] for entry in curve] for curve in curves], axis=0),
                marker="o",
                label=title,
            )
    axes.set_xlabel("step")
    axes.set_ylabel("validation BLEU")
    if axes.lines:
        axes.legend()
    figure.savefig(path)


def summarization() -> list[str]:
    results = read("summarization")
    results = {key: value for key, value in results.items() if key[0] in SUMMARY_TITLES}
    lines = ["## Summarisation (Clark et al. 2019, Tables 4, 5, 6 and 8)", ""]
    if not results:
        return [*lines, "No row has finished yet.", ""]
    some = next(iter(results.values()))
    seeds = sorted({seed for _, seed in results})
    missing = [
        f"{SUMMARY_TITLES[row]} of seed {seed}"
        for seed in seeds
        for row in SUMMARY_TITLES
        if (row, seed) not in results
    ]
    if missing:
        lines += [f"**Not finished:** {', '.join(missing)}.", ""]
    sizes = [
        [name, str(size["pairs"]), f"{size['document']:.0f}", f"{size['summary']:.0f}"]
        for name, size in some["sizes"].items()
    ]
    lines += ["Sizes (Table 8), in tokens after cutting:", ""]
    lines += align_table(["part", "pairs", "document", "summary"], sizes, right=range(1, 4), markdown=True)
    rates = HERE / "results" / "summarization" / "rates.json"
    if rates.is_file():
        found = json.loads(rates.read_text())
        shown = ", ".join(f"{rate}: {value:.4f}" for rate, value in found.items())
        lines += ["", f"Best SMS reward on validation data by learning rate (seed 0): {shown}."]
    columns = ("rouge1", "rouge2", "rougeL", "wms", "sms", "swms")
    body = []
    for row, title in SUMMARY_TITLES.items():
        found = [result for (name, _), result in results.items() if name == row]
        cells = [spread([100 * result["test"][name] for result in found], 2) for name in columns] if found else []
        body.append([title, *(cells or ["not finished"] * 6)])
    lines += ["", f"Test pairs, beam 5, seeds {', '.join(map(str, seeds))} (Table 4):", ""]
    lines += align_table(
        ["model", "ROUGE-1", "ROUGE-2", "ROUGE-L", "WMS", "SMS", "S+WMS"], body, right=range(1, 7), markdown=True
    )
    lines += [
        "",
        "In percent; WMS, SMS and S+WMS on the scale of the rewards, exp(−distance / τ).",
        "",
        "Change of the trained metric against MLE, one number per seed in points, with a paired permutation test over "
        "test pairs:",
        "",
    ]
    trained = {"rouge": "rougeL", "wms": "wms", "sms": "sms", "swms": "swms", "sms-1e-5": "sms"}
    changes = [
        [SUMMARY_TITLES[row], against_start(results, "mle", row, metric)]
        for row, metric in trained.items()
        if any(name == row and ("mle", seed) in results for name, seed in results)
    ]
    lines += align_table(["model", "its own reward against MLE"], changes, markdown=True)
    lines += ["", "Outputs of the first seed (Table 5):", ""]
    first = [row for row in SUMMARY_TITLES if (row, seeds[0]) in results]
    for number in some["samples"]:
        lines += [f"- article {number}"]
        lines += [f"  - {SUMMARY_TITLES[row]}: {quote(results[row, seeds[0]]['samples'][number])}" for row in first]
    lines += [
        "",
        "Table 6 needs people: `summarization/sheets.py` makes the sheets and analyses them. Nobody has judged yet.",
        "",
    ]
    return lines


def grpo() -> list[str]:
    path = HERE / "results" / "grpo.json"
    lines = ["## GRPO on SmolLM2 with an `sms` reward", ""]
    if not path.is_file():
        return [*lines, "Not finished.", ""]
    result = json.loads(path.read_text(encoding="utf-8"))
    low, high = result["interval"]
    lines += [
        f"{result['steps']} steps of 8 completions. Mean reward on {result['held_out']} held-out prompts: "
        f"{result['before']:.4f} before, {result['after']:.4f} after; difference {result['difference']:+.4f}, "
        f"95 % interval from {low:+.4f} to {high:+.4f} (bootstrap over prompts).",
        "",
    ]
    if result["reward_share_of_step"] is not None:
        lines += [f"The reward takes {100 * result['reward_share_of_step']:.2f} % of a step.", ""]
    for sample in result["samples"][:4]:
        lines += [f"- {quote(sample['prompt'])} (reference: {quote(sample['reference'])})"]
        lines += [f"  - before: {quote(sample['before'])}", f"  - after: {quote(sample['after'])}"]
    return [*lines, ""]


def cost() -> list[str]:
    path = HERE / "results" / "cost.json"
    lines = ["## What a reward costs", ""]
    if not path.is_file():
        return [*lines, "Not measured.", ""]
    result = json.loads(path.read_text(encoding="utf-8"))
    titles = {
        "greedy": "embedding_reward, greedy",
        "hungarian": "embedding_reward, hungarian (F_disc)",
        "emd": "embedding_reward, emd (F_cont)",
        "sms": "reward('sms') on texts",
        "bleu": "sentence BLEU on texts",
    }
    body = [
        [title, f"{result['milliseconds'][name]:.1f}", f"{result['times_greedy'][name]:.2f}"]
        for name, title in titles.items()
    ]
    lines += [f"{result['rows']} completions of {result['tokens']} tokens, one thread, median processor time:", ""]
    lines += align_table(["reward", "ms", "× greedy"], body, right={1, 2}, markdown=True)
    return [*lines, "", result["machine"], ""]


def main() -> None:
    lines = ["# Metrics as rewards: results", "", "Written by `report.py` from the files in `results/`.", ""]
    write_file(
        HERE / "RESULTS.md", "\n".join(lines + amr_to_text() + summarization() + grpo() + cost()).rstrip() + "\n"
    )


if __name__ == "__main__":
    main()
