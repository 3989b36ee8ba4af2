"""Training of the networks of Bao et al. 2020 on documents with summaries, by `transformers.Trainer`.

Progress, checkpoints and early stopping are Trainer's own: an interrupted run continues when it is started again.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from movers.encoders import load_encoder, load_static
from movers.errors import InputError
from movers.quality.data import SPLITS, Pair, split_rows
from movers.quality.faults import Negatives, Sample, SampleMaker, build_vocabulary
from movers.quality.model import HeadName, ModelConfig, QualityModel, build_network, save_model
from movers.quality.scorer import score_pairs
from movers.quality.units import Unit, encode_texts
from movers.scores.options import Options, option
from movers.version import VERSION

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder
    from movers.quality.heads import Head, Network

_COMMAND = "train quality"
_WORK = "work"  # folder of checkpoints, removed in the end
_FEWEST = 20  # documents, so that each side has two for a cross pair
_INTERVAL, _VALIDATED = 0.1, 256  # share of a run's steps between validations, and samples that each of them reads


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """Hyperparameters; saved with the model."""

    encoder: str = option("all-MiniLM-L6-v2", "encoder of words or sentences; any name that metrics accept as `model`")
    unit: Unit | None = option(
        None,
        "what a vector stands for (of a static encoder's sentence, the mean of its words); `cross` fine-tunes the "
        "transformer on document and summary together; by default `cross`, or `words` with a static encoder",
    )
    head: HeadName | None = option(None, "network over the vectors; by default `fc`, the only one of `cross`")
    negatives: Negatives = option("mix", "kinds of negative samples")
    fakes: int = option(1, "negative samples per document; drawn anew in every epoch for a cross-encoder")
    candidates: int = option(
        1, "for half of the cross pairs, take that of this many random rows whose summary is nearest to the document"
    )
    lang: str = option("en", "language of the rules that split sentences")
    window: int = option(128, "tokens that the cross-encoder reads at once")
    rate: float | None = option(None, "learning rate; by default one that suits the model", values="number or None")
    batch: int = option(32, "samples per step")
    epochs: int = option(5, "maximum number of epochs")
    patience: int = option(5, "stop after this many validations, of ten per run, without a lower loss")
    seed: int = option(0, "seed of everything random", least=0)

    def settle(self, metric: str) -> Self:
        if self.rate is not None and not (isinstance(self.rate, int | float) and 0 < self.rate < math.inf):
            raise InputError(f"{metric}: rate: expected a number above zero, but got {self.rate!r}")
        static = load_static(self.encoder) is not None
        unit: Unit = self.unit or ("words" if static else "cross")
        head: HeadName = self.head or "fc"
        if unit == "cross" and head != "fc":
            raise InputError(f"{metric}: head: unit='cross' always has 'fc', but got {head!r}")
        if static == (unit == "cross") and unit != "sentences":
            needs = "static word vectors, as 'wordllama'" if unit == "words" else "a transformer"
            raise InputError(f"{metric}: encoder: unit={unit!r} needs {needs}, but got {self.encoder!r}")
        return replace(self, unit=unit, head=head, rate=self.rate or (1e-4 if unit == "cross" else 1e-3))


def make_sides(pairs: Sequence[Pair], options: TrainingOptions) -> dict[str, SampleMaker]:
    """Samples of each side, made of that side's rows alone; random words come from the training side's summaries."""
    sides = {name: [pairs[row] for row in rows] for name, rows in split_rows(pairs, options.seed).items()}
    vocabulary = build_vocabulary([pair.summary for pair in sides["train"]])
    return {
        name: SampleMaker(
            sides[name], options.negatives, vocabulary, fakes=options.fakes,
            candidates=options.candidates if name == "train" else 1, seed=options.seed * len(SPLITS) + number,
        )
        for number, name in enumerate(SPLITS)
    }  # fmt: skip


@dataclass
class Samples:
    """The samples of a side as a network reads them; `epoch` numbers the draw of the negative ones."""

    maker: SampleMaker
    features: Callable[[str, str, int], dict[str, Any]]
    epoch: int = 0

    def __len__(self) -> int:
        return len(self.maker)

    def __getitem__(self, place: int) -> dict[str, Any]:
        sample = self.maker.sample(place, self.epoch)
        document = self.maker.pairs[sample.row].document
        return {**self.features(document, sample.summary, place + self.epoch), "labels": sample.label}


def train(
    pairs: Sequence[Pair], output: Path | str, options: TrainingOptions | None = None, *, sources: Sequence[str] = (),
    progress: bool | None = None,
) -> QualityModel:  # fmt: skip
    """Train a model on documents with good summaries, split 80/10/10 by document, and write its folder.

    If a run with the same data and options was interrupted in `output`, it continues; any other run there is an error.
    `sources` names the data, with their licences, for the card. Progress bars are shown on terminals only, unless
    `progress` says otherwise. Returns the model of the best validation, as it was saved.
    """
    import torch

    options = TrainingOptions.parse(_COMMAND, vars(options or TrainingOptions()))
    if len(pairs) < _FEWEST:
        raise InputError(f"{_COMMAND}: data: expected at least {_FEWEST} documents, but got {len(pairs)}")
    output, digest = Path(output), hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
    sides = make_sides(pairs, options)
    work = _claim(output, {**asdict(options), "data": digest, "version": VERSION})
    torch.manual_seed(options.seed)
    encoder = load_encoder(options.encoder)
    assert options.unit is not None  # settled
    config: ModelConfig = {name: getattr(options, name) for name in ("unit", "encoder", "head", "lang")}
    config["encoder_identity"] = encoder.identity
    if options.unit == "cross":
        config["window"] = options.window
        cross = cast("CrossEncoder", module := build_network(config))
        document_ids = cache(lambda text: cross.sentence_ids(text, options.lang))

        def features(document: str, summary: str, turn: int) -> dict[str, Any]:
            parts = cross.parts(cross.sentence_ids(summary, options.lang))
            return cross.features(document_ids(document), parts[turn % len(parts)])  # samples take parts in turn

    else:
        texts = [*(pair.document for pair in pairs), *(one.summary for maker in sides.values() for one in maker)]
        encoded = encode_texts(distinct := list(dict.fromkeys(texts)), encoder, options.unit, lang=options.lang)
        vectors = {distinct[index]: text.vectors.astype(np.float16) for index, text in encoded}
        documents, summaries = zip(*sides["train"].pairs, strict=True)
        config["dimension"] = len(vectors[documents[0]][0])
        for name, side in {"document_length": documents, "summary_length": summaries}.items():  # cover 80 %
            config[name] = max(1, int(np.quantile([len(vectors[text]) for text in side], 0.8, method="higher")))
        head = cast("Head", module := build_network(config))

        def features(document: str, summary: str, turn: int) -> dict[str, Any]:
            return {"sequence": head.sequence(vectors[document], vectors[summary])}

    curve = _fit(module, {name: Samples(maker, features) for name, maker in sides.items()}, options, work, progress)
    for value in module.parameters():
        if value.requires_grad:
            value.data = value.data.half().float()  # as it is saved
    test, tested = list(sides["test"]), sides["test"].pairs
    model = QualityModel(module.eval(), config, "", output.name)
    scores = score_pairs(model, [(tested[one.row].document, one.summary) for one in test])
    versions = {name: version(name) for name in ("torch", "transformers", "numpy")}
    record = {
        "data": {"digest": digest, "documents": len(pairs), "sources": list(sources)},
        "sides": {name: len(maker.pairs) for name, maker in sides.items()},
        "options": asdict(options), "curve": curve, "test": evaluate_samples(scores, test),
        "environment": {"movers": VERSION, "python": platform.python_version(), **versions},
    }  # fmt: skip
    saved = save_model(output, module, config, record)
    shutil.rmtree(output / _WORK)
    return saved


def _claim(output: Path, run: Mapping[str, object]) -> Path:
    """The folder for Trainer's checkpoints of this run; an error if `output` has other files than such a folder."""
    work = output / _WORK / hashlib.sha256(json.dumps(run).encode()).hexdigest()[:12]
    if output.exists() and not work.is_dir() and (not output.is_dir() or any(map(Path.is_file, output.rglob("*")))):
        expected = "a new or empty folder, or an interrupted run of the same data, options and version"
        raise InputError(f"{_COMMAND}: output: expected {expected}, but got {str(output)!r}")
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{_COMMAND}: output: {output}: cannot make this folder: {error.strerror}") from None
    return work


def _fit(
    module: Network, datasets: Mapping[str, Any], options: TrainingOptions, work: Path, progress: bool | None
) -> list[dict[str, float]]:
    """Train until the validation loss stops falling; leave the best weights in the module and return Trainer's log."""
    from torch.utils.data import Subset
    from transformers import Trainer, TrainingArguments, default_data_collator
    from transformers.trainer_callback import EarlyStoppingCallback, PrinterCallback, TrainerCallback
    from transformers.utils import is_accelerate_available

    class FreshNegatives(TrainerCallback):  # of vectors, which are computed once, the first draw stays
        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            datasets["train"].epoch = round(state.epoch) if options.unit == "cross" else 0

    if not is_accelerate_available():
        raise InputError(f"{_COMMAND}: training requires the package accelerate: pip install 'accelerate>=1.1'")
    arguments = TrainingArguments(
        output_dir=str(work), num_train_epochs=options.epochs, learning_rate=options.rate or 0.0,
        per_device_train_batch_size=options.batch, per_device_eval_batch_size=options.batch,
        warmup_steps=0.1, weight_decay=0.01, lr_scheduler_type="linear", seed=options.seed,
        eval_strategy="steps", eval_steps=_INTERVAL, save_strategy="steps", save_steps=_INTERVAL, save_total_limit=1,
        load_best_model_at_end=True, metric_for_best_model="eval_loss", greater_is_better=False, logging_steps=50,
        report_to="none", remove_unused_columns=False, dataloader_pin_memory=False,
        disable_tqdm=not (sys.stderr.isatty() if progress is None else progress),
    )  # fmt: skip
    validation = datasets["validation"]
    trainer = Trainer(
        module, arguments, data_collator=getattr(module, "collate", default_data_collator),
        train_dataset=datasets["train"], eval_dataset=Subset(validation, range(min(_VALIDATED, len(validation)))),
        callbacks=[FreshNegatives(), EarlyStoppingCallback(early_stopping_patience=options.patience)],
    )  # fmt: skip
    whole = sorted(work.glob("checkpoint-*/trainer_state.json"), key=lambda path: path.stat().st_mtime)  # written last
    trainer.remove_callback(PrinterCallback)  # it prints losses where there is no terminal
    trainer.train(resume_from_checkpoint=str(whole[-1].parent) if whole else None)
    return [{name: value for name, value in entry.items() if "loss" in name or name in ("epoch", "step")}
            for entry in trainer.state.log_history]  # fmt: skip


def evaluate_samples(predicted: Sequence[float], samples: Sequence[Sample]) -> dict[str, float]:
    """Share of own summaries above cross pairs, accuracy (threshold one half), Pearson correlation by mutation."""
    rows, _, labels, kinds = map(np.array, zip(*samples, strict=True))
    scores, out = np.asarray(predicted), dict[str, float]()
    crossed, original = kinds == "cross", kinds == "original"
    if crossed.any():
        of_row = dict(zip(rows[original].tolist(), scores[original].tolist(), strict=True))
        gaps = np.array([of_row[row] for row in rows[crossed].tolist()]) - scores[crossed]
        out["own_above_other"] = float(np.mean(gaps > 0) + np.mean(gaps == 0) / 2)
        out["accuracy"] = float(np.mean([np.mean(scores[crossed] < 0.5), np.mean(scores[original] >= 0.5)]))
    for kind in ("add", "delete", "replace"):
        chosen = kinds == kind
        if chosen.sum() > 2 and np.ptp(scores[chosen]) > 0:
            out[f"{kind}_pearson"] = float(np.corrcoef(scores[chosen], labels[chosen])[0, 1])
    return out
