"""Our metrics beside what a user would pick instead, and beside the floor; how time and memory grow. `make bench`.

    MOVERS_DATA=… python benchmarks/bench.py [wms contextual growth startup] [--quick] [--pairs N] [--again]

Without a part all are run. A part goes on where it stopped: what has been measured is kept in
`results/bench_<part>.json` and not measured again unless `--again` is given. `results/bench.md` and
`results/bench_growth.png` are written from these files. `--quick` measures little, into `build/bench`.

All contenders of a part run one after the other in every repeat; ratios are taken within a repeat. Beside wall-clock
time stand processor seconds of the process and its children, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import contenders
from common import RESULTS, machine, made_up

from movers.io import write_file
from movers.threads import default_threads

PACKAGES = ("numpy", "scipy", "POT", "torch", "transformers", "gensim", "bert-score", "torchmetrics")
METRICS = ("moverscore", "bertscore_hungarian", "bertscore_emd")
GROWTH = {"wms": (1_000, 10_000, 100_000, 1_000_000), "moverscore": (1_000, 10_000, 100_000)}
WORDS = {"wms": 12, "moverscore": 6}  # in a text of the growth part
Measurement = dict[str, float]


class Store:
    """What has been measured of a part, written after every step."""

    def __init__(self, part: str, folder: Path, settings: dict[str, object], again: bool) -> None:
        self.path = folder / f"bench_{part}.json"
        known = json.loads(self.path.read_text()) if self.path.exists() and not again else {}
        same = known.get("settings") == settings
        self.content: dict[str, Any] = known if same else {"settings": settings, "repeats": [], "points": {}}
        self.content["machine"] = machine(PACKAGES)

    def save(self) -> None:
        self.content["load"] = os.getloadavg()
        write_file(self.path, json.dumps(self.content, indent=1) + "\n")


def processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(call: Callable[[], object], pairs: int) -> Measurement:
    """Microseconds per pair."""
    wall, busy = time.perf_counter(), processor_seconds()
    call()
    wall, busy = time.perf_counter() - wall, processor_seconds() - busy
    return {"wall": 1e6 * wall / pairs, "cpu": 1e6 * busy / pairs}


def repeat(store: Store, calls: dict[str, tuple[Callable[[], object], int]], repeats: int) -> None:
    """Every contender once per repeat, until there are enough repeats; each is kept as soon as it is complete."""
    while len(store.content["repeats"]) < repeats:
        found = {}
        for name, (call, pairs) in calls.items():
            found[name] = measure(call, pairs)
            print(f"  {name}: {found[name]['wall']:,.1f} µs per pair, {found[name]['cpu']:,.1f} of a processor")
        store.content["repeats"].append(found)
        store.save()


def bench_wms(store: Store, pairs: int, repeats: int) -> None:
    """From text, against the bare kernel, gensim and POT; those on the first pairs, for they are slow or large."""
    texts = contenders.summaries(pairs)
    few, slow = texts.first(min(pairs, 10_000)), texts.first(min(pairs, 2_000))
    problems = contenders.transport_problems(few)
    sizes = [problem[2].shape for problem in problems]
    start = texts.first(128)  # as few as are given to two workers
    store.content["units"] = [statistics.mean(side) for side in zip(*sizes, strict=True)]
    store.content["difference"] = contenders.largest_difference(slow)
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "wms, 1 process, 1 thread": (contenders.wms(texts, threads=1), pairs),
        "wms, 1 process, 2 threads": (contenders.wms(texts, threads=2), pairs),
        "wms, 2 workers": (contenders.wms(texts, workers=2), pairs),
        "128 pairs, 1 thread": (contenders.wms(start, threads=1), 1),
        "128 pairs, 2 workers": (contenders.wms(start, workers=2), 1),
        "kernel, 1 thread": (contenders.kernel(problems, 1), len(problems)),
        "kernel, 2 threads": (contenders.kernel(problems, 2), len(problems)),
        "gensim wmdistance": (contenders.gensim(slow), len(slow.predictions)),
        "ot.emd2, ready costs": (contenders.pot(problems[: len(slow.predictions)]), len(slow.predictions)),
    }
    repeat(store, calls, repeats)


def bench_contextual(store: Store, pairs: int, repeats: int) -> None:
    """All contextual metrics with nothing in the cache, exact transport included."""
    texts = contenders.translations(pairs)
    count = len(texts.predictions)
    both = [*texts.predictions, *texts.references]
    if "batch" not in store.content:
        store.content["batch"] = contenders.best_batch(both)
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "encoder alone": (contenders.encoder(both, store.content["batch"]), count),
        **{name: (contenders.contextual(name, texts), count) for name in METRICS},
        "bert-score": (contenders.bert_score(texts), count),
        "torchmetrics BERTScore": (contenders.torchmetrics(texts), count),
    }
    repeat(store, calls, repeats)


# --- growth ----------------------------------------------------------------------------------------------------------


def run_command(arguments: Iterable[str]) -> dict[str, float]:
    """Seconds and peak memory, summed over the process tree, of a `movers` command."""
    import psutil  # type: ignore[import-untyped]

    busy = processor_seconds()
    begin = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "movers", *arguments], stdout=subprocess.DEVNULL)
    peak = 0.0
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        tree = psutil.Process(child.pid)
        while not ended.wait(0.2):
            total = 0
            for process in [tree, *_children(tree)]:
                try:
                    info = process.memory_full_info()
                    total += getattr(info, "pss", info.rss)  # shared pages once, not in every process
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
    return {"seconds": took, "cpu": processor_seconds() - busy, "mib": peak}


def _children(tree: Any) -> list[Any]:
    import psutil

    try:
        return list(tree.children(recursive=True))
    except psutil.Error:
        return []


def bench_growth(store: Store, sizes: dict[str, tuple[int, ...]]) -> None:
    """`movers score` on files of growing size, with two workers or threads; start-up is what two pairs take."""
    with tempfile.TemporaryDirectory() as name:
        for metric, counts in sizes.items():
            for count in (2, *counts):
                label = f"{metric} {count}"
                if label in store.content["points"]:
                    continue
                files = [Path(name) / side for side in ("predictions.txt", "references.txt", "scores.txt")]
                for seed, path in enumerate(files[:2]):
                    with path.open("w") as file:
                        file.writelines(f"{text}\n" for text in made_up(count, WORDS[metric], seed + 1))
                texts = ["-p", str(files[0]), "-r", str(files[1]), "-o", str(files[2]), "-q"]
                found = run_command(["score", metric, *texts, *(["--workers", "2"] if metric == "wms" else [])])
                with files[2].open() as file:
                    assert sum(1 for _ in file) == count
                store.content["points"][label] = found
                store.save()
                print(f"  {label}: {found['seconds']:.1f} s, {found['mib']:.0f} MiB")


def main() -> None:
    parts = ("wms", "contextual", "growth", "startup")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    parser.add_argument("--pairs", type=int, help="of wms (default: 200,000) or contextual (default: 3,920)")
    parser.add_argument("--repeats", type=int, help="default: 5 for wms, 3 for contextual")
    parser.add_argument("--again", action="store_true", help="forget what has been measured")
    arguments = parser.parse_args()
    quick = arguments.quick
    folder = Path("build/bench") if quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    cores = default_threads()
    for part in arguments.parts or parts:
        print(part, flush=True)
        if part == "wms":
            settings: dict[str, object] = {"pairs": arguments.pairs or (2_000 if quick else 200_000), "cores": cores}
            store = Store(part, folder, settings, arguments.again)
            bench_wms(store, int(str(settings["pairs"])), arguments.repeats or (1 if quick else 5))
        elif part == "contextual":
            settings = {"pairs": arguments.pairs or (48 if quick else 3_920), "cores": cores}
            store = Store(part, folder, settings, arguments.again)
            bench_contextual(store, int(str(settings["pairs"])), arguments.repeats or (1 if quick else 3))
        elif part == "growth":
            sizes = (
                {name: counts[:2] if name == "wms" else (200,) for name, counts in GROWTH.items()} if quick else GROWTH
            )
            bench_growth(Store(part, folder, {"cores": cores, "words": WORDS}, arguments.again), sizes)
        elif not quick:
            import startup

            startup.main()
        import bench_report

        bench_report.write_report(folder)


if __name__ == "__main__":
    main()
