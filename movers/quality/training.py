"""Training of the reference-free metric: samples once, vectors once, then cheap epochs with early stopping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal, Self

from movers.encoders import load_static
from movers.errors import InputError
from movers.quality import loop
from movers.quality.data import SPLITS, Pair, data_digest, split_rows
from movers.quality.faults import Negatives, Sample, build_vocabulary, make_samples
from movers.quality.model import HeadName, QualityModel, save_model
from movers.quality.units import Unit, split_units
from movers.scores.options import option

__all__ = ["TrainingOptions", "draw_samples", "split_pairs", "train"]

_COMMAND = "train quality"


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(loop.LoopOptions):
    """Hyperparameters; saved with the model."""

    recipe: Literal["paper"] | None = option(
        None,
        "`paper` trains as Bao et al. do: all four kinds of negative samples of every document, RMSProp, patience 3; "
        "head `fc` unless another is named",
    )
    encoder: str = option("all-MiniLM-L6-v2", "encoder of words or sentences; any name that metrics accept as `model`")
    unit: Unit | None = option(
        None,
        "what a vector stands for (of a static encoder's sentence, the mean of its words); `cross` fine-tunes the "
        "transformer on document and summary together; by default `sentences`, or `words` with a static encoder",
    )
    head: HeadName | None = option(
        None, "network over the vectors; by default `aspects`, `lstm` for words, and always `fc` for `cross`"
    )
    negatives: Negatives = option("mix", "kinds of negative samples")
    fakes: int = option(1, "negative samples per document")
    lang: str = option("en", "language of the rules that split sentences")
    window: int | None = option(None, "tokens that the cross-encoder reads at once; its limit by default")
    freeze: bool = option(
        False, "train the network over a cross-encoder's vectors alone: they are computed once, epochs take seconds"
    )

    def settle(self, metric: str) -> Self:
        super().settle(metric)
        if self.recipe == "paper":
            paper = replace(self, recipe=None, negatives="mix", fakes=4, optimiser="rmsprop", patience=3)
            if self.head == "aspects":
                raise InputError(f"{metric}: recipe: 'paper' has head 'fc', 'cnn' or 'lstm', but got 'aspects'")
            return replace(replace(paper, head=self.head or "fc").settle(metric), recipe="paper")
        static = load_static(self.encoder) is not None
        unit: Unit = self.unit or ("words" if static else "sentences")
        usual: dict[Unit, HeadName] = {"cross": "fc", "words": "lstm", "sentences": "fc" if static else "aspects"}
        head = self.head or usual[unit]
        if unit == "words" and head == "aspects":
            raise InputError(f"{metric}: head: 'aspects' needs sentences; with unit='words' use 'fc', 'cnn' or 'lstm'")
        if static and head == "aspects":
            raise InputError(f"{metric}: head: 'aspects' needs a transformer, but got the encoder {self.encoder!r}")
        if self.freeze and unit != "cross":
            raise InputError(f"{metric}: freeze: expected False with unit={unit!r}, whose encoder is always frozen")
        if unit == "cross" and head != "fc":
            raise InputError(f"{metric}: head: unit='cross' always has 'fc', but got {head!r}")
        return replace(self, unit=unit, head=head)


def split_pairs(pairs: Sequence[Pair], lang: str) -> list[Pair]:
    """Pairs with both texts also as sentences, from which negative samples are made."""
    split = []
    for pair in pairs:
        document, summary = (tuple(split_units(text, "sentences", lang)) for text in (pair.document, pair.summary))
        split.append(Pair(pair.document, pair.summary.strip(), document, summary))
    return split


def draw_samples(
    pairs: Sequence[Pair], sides: Mapping[str, list[int]], options: TrainingOptions
) -> dict[str, list[Sample]]:
    """Samples of each side, made of that side's rows alone; random words come from the training side's vocabulary."""
    vocabulary = build_vocabulary([pairs[row].summary for row in sides["train"]])
    samples = {}
    for number, name in enumerate(SPLITS):
        rows, seed = sides[name], options.seed * len(SPLITS) + number
        own = [pairs[row] for row in rows]
        made = make_samples(own, options.negatives, fakes=options.fakes, seed=seed, vocabulary=vocabulary)
        samples[name] = [replace(one, row=rows[one.row], summary_row=rows[one.summary_row]) for one in made]
    return samples


def train(
    pairs: Sequence[Pair],
    output: Path | str,
    options: TrainingOptions | None = None,
    *,
    sources: Sequence[Mapping[str, object]] = (),
    vectors: Path | str | None = None,
    progress: bool | None = None,
) -> QualityModel:
    """Train a model and write its folder.

    Parameters
    ----------
    pairs
        Documents with good summaries; split 80/10/10 by document.
    output
        Folder of the model. If a run with the same data and options was interrupted there, it continues; any other
        run there is an error.
    sources
        Origin of the data for the training record: name, licence, ….
    vectors
        Folder of stored vectors, which runs with the same encoder can share; `output/work/vectors` if None.
    progress
        Show progress bars; by default on terminals only.

    Returns
    -------
    QualityModel
        The model of the best epoch, as it was saved.
    """
    from movers.quality.learners import build_learner

    given = options or TrainingOptions()
    options = TrainingOptions.parse(_COMMAND, {item.name: getattr(given, item.name) for item in fields(given)})
    if len(pairs) < 10:
        raise InputError(f"{_COMMAND}: data: expected at least 10 documents, but got {len(pairs)}")
    output, digest = Path(output), data_digest(pairs)
    with loop.claimed_folder(_COMMAND, output, asdict(options), digest) as work:
        split = split_pairs(pairs, options.lang)
        sides = split_rows(pairs, options.seed)
        samples = draw_samples(split, sides, options) if options.head != "aspects" else {}
        with loop.seeded(options.seed):
            learner = build_learner(options, split, sides, samples, Path(vectors or work / "vectors"), progress)
            checkpoint, rate = work / "checkpoint.safetensors", learner.default_rate
            curve = loop.fit(  # type: ignore[misc]
                _COMMAND, learner, options, checkpoint, default_rate=rate, progress=progress
            )
    return save_model(
        output,
        learner.module,
        learner.config,
        {
            "data": {"digest": digest, "documents": len(pairs), "sources": [dict(source) for source in sources]},
            "sides": {name: len(rows) for name, rows in sides.items()},
            "samples": {name: len(made) for name, made in learner.samples.items()},
            "options": asdict(options),
            "parameters": sum(value.numel() for value in learner.module.parameters() if value.requires_grad),
            "curve": curve,
            "test": learner.test(),
            "environment": loop.environment(),
        },
    )
