"""What rewards cost: `embedding_reward` of 64 completions of 40 tokens, by alignment and against sentence BLEU.

    python benchmarks/rewards/cost.py MODEL_FOLDER

Ids are drawn so that completions share half of their tokens with their references. Seconds are medians of runs that
take turns; `results.csv` gets them.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from movers.agreement.lexical import bleu
from movers.rewards import embedding_reward, reward

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import machine
from rewards.measures import save

ROWS, TOKENS, RUNS = 64, 40, 15


def main() -> None:
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
    draw = random.Random(0)
    # words that stay single tokens, so that texts and ids have the same length
    words = [number for number in range(1000, 20_000) if tokenizer.decode([number]).strip().isalpha()]
    references = [draw.choices(words, k=TOKENS) for _ in range(ROWS)]
    completions = [draw.sample(reference, TOKENS // 2) + draw.choices(words, k=TOKENS // 2) for reference in references]
    texts, others = tokenizer.batch_decode(completions), tokenizer.batch_decode(references)
    scorers = {name: embedding_reward(model, name, threads=1) for name in ("greedy", "hungarian", "emd")}
    mover = reward("sms", threads=1)
    seconds: dict[str, list[float]] = {}
    for run in range(RUNS + 1):
        for name in (*scorers, "bleu", "sms"):
            begin = time.process_time()
            if name in scorers:
                scorers[name].score_ids(completions, references)
            elif name == "bleu":
                bleu(texts, others)
            else:
                mover.score(texts, others)
            if run:  # the first warms up
                seconds.setdefault(name, []).append(time.process_time() - begin)
    for name, values in seconds.items():
        save("cost", name, "", {"milliseconds": 1000 * statistics.median(values)}, ROWS)
    save("cost", "machine", "", {"machine": machine()})


if __name__ == "__main__":
    main()
