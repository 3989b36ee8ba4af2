"""Fine-tune an encoder on pairs of texts and write it as a folder that every metric takes as `model`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict

from movers import io, training
from movers.encoders.load import quiet
from movers.errors import InputError
from movers.finetuning.data import COMMAND, PairData, Task, split_off
from movers.scores.languages import declared_languages
from movers.scores.options import option

if TYPE_CHECKING:
    from movers.finetuning.learners import PairLearner

__all__ = ["TuningOptions", "TuningRecord", "tune"]


@dataclass(frozen=True, kw_only=True)
class TuningOptions(training.LoopOptions):
    """Hyperparameters; saved with the encoder."""

    task: Task = option("nli", "what a pair has: a label (`nli`) or a score (`similarity`)")
    encoder: str = option("all-MiniLM-L6-v2", "transformer to start from; a name, folder or Hub id")
    optimiser: Literal["rmsprop", "adamw"] = option("adamw", "optimiser")
    schedule: Literal["constant", "linear"] = option(
        "linear", "learning rate over the epochs: constant, or falling linearly to zero"
    )
    batch: int = option(16, "pairs per step")
    epochs: int = option(3, "maximum number of epochs")
    steps: int | None = option(
        None, "steps per epoch, after each of which a checkpoint is written; a pass over all pairs by default"
    )
    window: int | None = option(None, "tokens that are read of a text; what the encoder was trained with by default")
    held_out: float = option(
        0.1, "share of the pairs that validation takes if it has no files of its own", values="number from 0 to 0.5"
    )

    def settle(self, metric: str) -> Self:
        super().settle(metric)
        if not isinstance(self.held_out, int | float) or not 0 < self.held_out <= 0.5:
            raise InputError(f"{metric}: held_out: expected a number above 0 and up to 0.5, but got {self.held_out!r}")
        return self


class TuningRecord(TypedDict):
    """What is known of a run; `record.json`."""

    data: dict[str, object]
    labels: list[str]
    scores: tuple[float, float] | None
    options: dict[str, object]
    base: str
    curve: training.Curve
    environment: dict[str, str]


def tune(
    data: PairData,
    output: str | Path,
    options: TuningOptions | None = None,
    *,
    validation: PairData | None = None,
    sources: Sequence[Mapping[str, object]] = (),
    device: str | None = "auto",
    progress: bool | None = None,
) -> TuningRecord:
    """Fine-tune the encoder that the options name and write its folder.

    Parameters
    ----------
    data
        Pairs with labels or scores, as `movers.finetuning.data.read_pairs` reads them.
    output
        Folder of the encoder. If a run with the same data and options was interrupted there, it continues; any other
        run there is an error.
    validation
        Pairs that decide which epoch is best; by default a share of the data that is not trained on.
    sources
        Origin of the data for the record: name, licence, ….

    Returns
    -------
    dict
        The record of the run, as it was saved.
    """
    from movers.finetuning.learners import PairLearner

    options = options or TuningOptions()
    options = TuningOptions.parse(COMMAND, asdict(options))
    if (options.task == "nli") != bool(data.labels):
        raise InputError(f"{COMMAND}: data: expected pairs with {'labels' if options.task == 'nli' else 'scores'}")
    if validation is not None and (validation.labels, validation.bounds) != (data.labels, data.bounds):
        raise InputError(f"{COMMAND}: validation: expected the labels, or the range of scores, of the training data")
    digest = data.digest if validation is None else f"{data.digest}+{validation.digest}"
    with training.claimed_folder(COMMAND, Path(output), asdict(options), digest) as work:
        if validation is None:
            train, held = split_off(data.pairs, options.held_out, options.seed)
        else:
            train, held = list(data.pairs), list(validation.pairs)
        with training.seeded(options.seed):
            learner = PairLearner(options, train, held, len(data.labels), device)
            checkpoint, rate = work / "checkpoint.safetensors", learner.default_rate
            curve = training.fit(COMMAND, learner, options, checkpoint, default_rate=rate, progress=progress)
    record: TuningRecord = {
        "data": {"digest": digest, "train": len(train), "validation": len(held), "unlabelled": data.unlabelled,
                 "cut": learner.cut, "sources": [dict(source) for source in sources]},
        "labels": list(data.labels),
        "scores": data.bounds,
        "options": asdict(options),
        "base": learner.encoder.identity,
        "curve": curve,
        "environment": training.environment(),
    }  # fmt: skip
    with training.written_folder(COMMAND, Path(output), last="model.safetensors") as folder:
        with quiet():
            learner.model.eval().save_pretrained(folder)
            learner.encoder.objects[1].save_pretrained(folder)
        io.write_file(folder / "record.json", json.dumps(record, indent=1))
        io.write_file(folder / "README.md", _card(options, data, record, learner))
    return record


def _card(options: TuningOptions, data: PairData, record: TuningRecord, learner: PairLearner) -> str:
    """The README of the folder."""
    languages = sorted(declared_languages(learner.encoder) or ())
    header = "\n".join(["---", "language:", *(f"- {code}" for code in languages), "---", "", ""]) if languages else ""
    learnt = (
        f"labels {', '.join(data.labels)}: a linear classifier on [u, v, |u − v|], cross-entropy; the classifier is "
        "not part of this folder"
        if data.labels
        else f"scores from {data.bounds[0]:g} to {data.bounds[1]:g}: the cosine of u and v, square error"
        if data.bounds
        else ""
    )
    curve = record["curve"]
    best = training.best_entry(curve)
    measured = ", ".join(
        f"{name.replace('_', ' ')} {value:.4f}" for name, value in best.items() if "validation" in name
    )
    return f"""{header}# `{options.encoder}`, fine-tuned on pairs of texts

Fine-tuned by `movers train encoder --task {options.task}` from `{record["base"]}` in the form of Sentence-BERT \
(Reimers & Gurevych 2019): u and v are the means of the two texts' last hidden states. Learnt were {learnt}.

{len(data.pairs):,} pairs; best epoch {best["epoch"]} of {len(curve)}: {measured}. The whole curve, all \
hyperparameters, the digest of the data and the versions used are in `record.json`.

```python
import movers

movers.moverscore(["prediction"], ["reference"], model="path/of/this/folder")
```
"""
