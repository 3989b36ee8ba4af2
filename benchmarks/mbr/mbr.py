"""MBR decoding of summaries: sixteen samples per document, against greedy, beam and random decoding.

    MOVERS_DATA=… python benchmarks/mbr/mbr.py generate MODEL_FOLDER samples.jsonl
    MOVERS_DATA=… python benchmarks/mbr/mbr.py measure samples.jsonl

`generate` takes the last documents of a corpus in MOVERS_DATA, ten at a time, and writes one line each; if it is
stopped, the same command continues. `measure` chooses a sample by every metric, scores the choices against the
references and writes results.csv and RESULTS.md; with `--quick` it prints instead. Intervals are a bootstrap over
documents.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import movers
from movers.agreement.coefficients import with_interval
from movers.agreement.lexical import chrf, rouge
from movers.agreement.systems import resampled_means
from movers.io import progress_bar, read_records

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data_folder, machine, markdown, save_results

SUITE = Path(__file__).parent
METRICS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd")
PREFILTERED = ("moverscore", "bertscore_emd")
BATCH = 10  # documents that are generated for at once
PROMPT = "Summarize the following article in one sentence.\n\n{}"


# --- generation ---


def generate(arguments: argparse.Namespace) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

    rows = list(read_records(data_folder() / "corpora" / f"{arguments.corpus}.jsonl.gz"))[-arguments.documents :]
    tokenizer = AutoTokenizer.from_pretrained(arguments.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(arguments.model).eval()
    output = Path(arguments.output)
    done = len(output.read_text(encoding="utf-8").splitlines()) if output.is_file() else 0

    def prompt(document: str) -> str:
        article = tokenizer.decode(tokenizer(document)["input_ids"][: arguments.window])
        chat = [{"role": "user", "content": PROMPT.format(article)}]
        return tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)

    def write(inputs: Any, count: int, **options: Any) -> torch.Tensor:
        """Several continuations of each prompt, which is read once."""
        cache = DynamicCache(config=model.config)
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        places = (mask.cumsum(1) - 1).clamp(min=0)
        with torch.inference_mode():
            model(ids[:, :-1], attention_mask=mask[:, :-1], position_ids=places[:, :-1], past_key_values=cache)
        cache.batch_repeat_interleave(count)
        several = {name: value.repeat_interleave(count, 0) for name, value in inputs.items()}
        return model.generate(**several, past_key_values=cache, **options)

    limit = {"max_new_tokens": arguments.tokens}
    ways: dict[str, Callable[[Any], torch.Tensor]] = {
        "greedy": lambda inputs: write(inputs, 1, do_sample=False, **limit),
        "beam": lambda inputs: model.generate(**inputs, do_sample=False, num_beams=4, **limit),
        "samples": lambda inputs: write(inputs, arguments.samples, do_sample=True, top_k=0, **limit),
    }
    with output.open("a", encoding="utf-8") as file:
        for first in progress_bar(desc="batches", unit="", iterable=range(done, len(rows), BATCH)):
            batch = rows[first : first + BATCH]
            torch.manual_seed(first)
            inputs = tokenizer(
                [prompt(str(row["source"])) for row in batch],
                return_tensors="pt",
                padding=True,
                add_special_tokens=False,
            )
            lines: list[dict[str, Any]] = [{"reference": str(row["summary"]), "seconds": {}} for row in batch]
            for way, call in ways.items():
                begin = time.perf_counter()
                written = call(inputs)[:, inputs["input_ids"].shape[1] :]
                seconds = (time.perf_counter() - begin) / len(batch)
                texts = [text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)]
                count = len(texts) // len(batch)
                for place, line in enumerate(lines):
                    line["seconds"][way] = seconds
                    line[way] = texts[place * count : (place + 1) * count]
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            file.flush()


# --- measures ---


def measure(arguments: argparse.Namespace) -> None:
    rows: list[Any] = list(read_records(arguments.samples))
    references, samples = [row["reference"] for row in rows], [row["samples"] for row in rows]
    systems = {way: [row[way][0] for row in rows] for way in ("greedy", "beam")}
    seconds = {way: [row["seconds"][way] for row in rows] for way in ("greedy", "beam", "samples")}
    cost = {f"generation, {way}": _milliseconds(sum(taken) / len(rows)) for way, taken in seconds.items()}
    utilities: dict[str, dict[str, object]] = {}
    for metric in METRICS:
        movers.mbr(metric, [["a", "b"]])  # loads the model
        choices, cost[f"MBR, {metric}"] = _timed(metric, samples)
        systems[f"MBR, {metric}"] = [choice.text for choice in choices]
        if metric in PREFILTERED:
            name = f"MBR, {metric} after wms"
            some, cost[name] = _timed(metric, samples, prefilter="wms")
            systems[name] = [choice.text for choice in some]
            best = [
                max(choice.utilities) - choice.utilities[few.index] for choice, few in zip(choices, some, strict=True)
            ]
            same = [choice.text == few.text for choice, few in zip(choices, some, strict=True)]
            utilities[metric] = {
                "same choice": round(float(np.mean(same)), 3),
                "loss of utility": f"{np.mean(best):.5f}",
            }
    table: dict[str, dict[str, object]] = {}
    scores = {name: _scores(texts, references) for name, texts in systems.items()}
    # The expected score of a random sample is the mean over all of them.
    flat = _scores(
        [text for row in samples for text in row],
        [ref for ref, row in zip(references, samples, strict=True) for _ in row],
    )
    ends = np.cumsum([len(row) for row in samples])[:-1]
    scores["random sample"] = {
        name: [part.mean() for part in np.split(np.array(each), ends)] for name, each in flat.items()
    }
    for name, columns in scores.items():
        table[name] = {}
        for column, values in columns.items():
            mean, low, high = _interval(np.array(values))
            _, least, most = _interval(np.array(values) - np.array(scores["greedy"][column]))
            table[name][column] = f"{mean:.3f} [{low:.3f}, {high:.3f}]" + " *" * (least > 0 or most < 0)
    tables: dict[str, dict[str, dict[str, object]]] = {
        "scores": table,
        "cost": cost,
        "prefilter": utilities,
        "environment": {"machine": {"value": machine()}, "documents": {"value": len(rows)}},
    }
    for title, content in tables.items():
        if arguments.quick:
            print(title, *markdown(content), sep="\n")
        else:
            save_results(SUITE, title, content)


def _timed(metric: str, samples: list[list[str]], **options: Any) -> tuple[list[Any], dict[str, object]]:
    movers.Scorer(metric).forget()  # nothing in the cache
    begin = time.perf_counter()
    choices = movers.mbr(metric, samples, progress=False, **options)
    return choices, _milliseconds((time.perf_counter() - begin) / len(samples))


def _milliseconds(seconds: float) -> dict[str, object]:
    return {"milliseconds per document": round(1000 * seconds, 1)}


def _scores(texts: list[str], references: list[str]) -> dict[str, list[float]]:
    ours = movers.score_many(METRICS, texts, references)
    others: Any = {"chrF": chrf(texts, references), "ROUGE-L": rouge(texts, references, stemmer=True)}
    return {name: result["scores"] for name, result in {**others, **ours}.items()}


def _interval(values: np.ndarray) -> tuple[float, ...]:
    resampled = resampled_means(values[None], 2000, np.random.default_rng(0))[0]
    return tuple(with_interval("mean", float(values.mean()), resampled, 0.95).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("generate")
    command.add_argument("model")
    command.add_argument("output")
    command.add_argument("--corpus", default="train_xsum")
    for name, default in (("documents", 100), ("samples", 16), ("tokens", 40), ("window", 200)):
        command.add_argument(f"--{name}", type=int, default=default)
    command.set_defaults(run=generate)
    command = commands.add_parser("measure")
    command.add_argument("samples")
    command.add_argument("--quick", action="store_true")
    command.set_defaults(run=measure)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
