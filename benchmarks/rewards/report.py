"""Write RESULTS.md and the validation curves from the files in `results/`.

python benchmarks/rewards/report.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from movers.io import align_table, write_file

sys.path.insert(0, str(Path(__file__).parents[1]))
from rewards.amr_report import Section, amr_to_text
from rewards.measures import against, quote, read, spread

HERE = Path(__file__).parent
AMR = (
    Section(
        "AMR-to-text (Jin & Gildea 2022, Tables 1 and 2, Fig. 1)",
        "amr_to_text",
        "amr_validation.png",
        "SmolLM2-135M-Instruct",
    ),
    Section(
        "AMR-to-text with a small Transformer from scratch",
        "amr_scratch",
        "amr_scratch_validation.png",
        "A Transformer of two layers between WordLlama's fixed vectors",
        ("f_cont-0.9", "f_disc-0.9"),
    ),
)
SUMMARY_TITLES = {
    "mle": "MLE",
    "rouge": "MLE + ROUGE-L",
    "wms": "MLE + WMS",
    "sms": "MLE + SMS",
    "swms": "MLE + S+WMS",
    "sms-1e-5": "MLE + SMS, rate 1e-5",
}


def summarization() -> list[str]:
    results = read(HERE / "results" / "summarization")
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
        "Change of the trained metric against MLE in points: mean ± standard deviation over seeds, the seeds one by "
        "one, and a paired permutation test over test pairs:",
        "",
    ]
    trained = {"rouge": "rougeL", "wms": "wms", "sms": "sms", "swms": "swms", "sms-1e-5": "sms"}
    changes = [
        [SUMMARY_TITLES[row], against(results, "mle", row, metric)]
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
    for section in AMR:
        lines += amr_to_text(HERE, section)
    write_file(HERE / "RESULTS.md", "\n".join(lines + summarization() + grpo() + cost()).rstrip() + "\n")


if __name__ == "__main__":
    main()
