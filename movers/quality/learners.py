"""What the training loop asks of a model of summary quality. One kind reads stored vectors, the other reads texts.

This module imports torch; import it late.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from movers import io
from movers.encoders import load_encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.quality.cross import CrossEncoder, load_cross_encoder
from movers.quality.data import Pair
from movers.quality.faults import Sample
from movers.quality.heads import Head, Loss, PairInput, build_head, sample_losses
from movers.quality.joins import JoinLearner
from movers.quality.store import StoreKind, VectorStore
from movers.quality.units import TextVectors, UnitVectors, reading_window, split_units
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.model import ModelConfig
    from movers.quality.training import TrainingOptions

__all__ = ["CrossLearner", "SampleLearner", "VectorLearner", "build_learner", "evaluate_samples"]

Samples = dict[str, list[Sample]]  # of each side


def evaluate_samples(predicted: Sequence[float], samples: Sequence[Sample]) -> dict[str, float]:
    """Accuracy on own and cross pairs (threshold one half), Pearson correlation with the labels of mutated ones.

    `mutation` is over added, deleted and replaced samples together; a measure is left out where there is no such
    sample.
    """
    scores = np.asarray(predicted)
    labels = np.array([sample.label for sample in samples])
    kinds = np.array([sample.kind for sample in samples])
    out: dict[str, float] = {}
    crossed, own = kinds == "cross", kinds == "original"
    if crossed.any():  # own and cross pairs count alike, whatever other kinds there are
        out["cross_accuracy"] = float(np.mean([np.mean(scores[crossed] < 0.5), np.mean(scores[own] >= 0.5)]))
    chosen = {"mutation_pearson": np.isin(kinds, ("add", "delete", "replace"))}
    for kind in dict.fromkeys(kinds.tolist()):
        if kind not in ("cross", "original", "extract"):
            chosen[f"{kind}_pearson"] = kinds == kind
    chosen["pearson"] = np.ones(len(samples), dtype=bool)
    for name, places in chosen.items():
        enough = places.sum() > 2 or name == "pearson"
        if enough and np.ptp(labels[places]) > 0 and np.ptp(scores[places]) > 0:
            out[name] = float(np.corrcoef(scores[places], labels[places])[0, 1])
    return out


def covering_length(counts: Sequence[int], share: float = 0.8) -> int:
    """The least length that covers the given share of the texts (the paper's 80 % rule).

    >>> covering_length([1, 2, 3, 4, 50])
    4
    """
    return max(1, int(np.sort(np.asarray(counts))[max(0, int(np.ceil(share * len(counts))) - 1)]))


class SampleLearner(abc.ABC):
    """A `movers.quality.loop.Learner` of samples: batches, loss and validation are the same for all models."""

    module: Head | CrossEncoder
    default_rate: float
    config: ModelConfig
    predict_batch: int = 64

    def __init__(self, options: TrainingOptions, samples: Samples) -> None:
        self._options = options
        self.samples = samples
        # the paper: cross-entropy for pairing (and for mixtures, with soft labels), square error for one mutation
        self._loss: Loss = "squared_error" if options.negatives in ("add", "delete", "replace") else "cross_entropy"

    @abc.abstractmethod
    def length(self, sample: Sample) -> int:
        """What to sort by so that batches need little padding."""

    @abc.abstractmethod
    def logits(self, samples: Sequence[Sample]) -> Tensor:
        """(B,) logits."""

    def loss(self, batch: Sequence[Sample]) -> Tensor:
        labels = torch.tensor([sample.label for sample in batch])
        return sample_losses(self.logits(batch), labels, self._loss).mean()

    def batches(self, epoch: int) -> list[list[Sample]]:
        """Shuffled batches of samples of similar length (sorted inside pools of 16 batches)."""
        samples, size = self.samples["train"], self._options.batch
        rng = np.random.default_rng([self._options.seed, epoch, 1])
        order = [samples[place] for place in rng.permutation(len(samples))]
        batches = []
        for begin in range(0, len(order), 16 * size):
            pool = sorted(order[begin : begin + 16 * size], key=self.length)
            batches += [pool[place : place + size] for place in range(0, len(pool), size)]
        return [batches[place] for place in rng.permutation(len(batches))]

    def predict(self, samples: Sequence[Sample]) -> list[float]:
        """Scores in [0, 1], without gradient, in evaluation mode; a blank summary scores 0."""
        self.module.eval()
        order = np.argsort([self.length(sample) for sample in samples], kind="stable")
        scores = np.zeros(len(samples))
        with torch.inference_mode():
            for begin in range(0, len(order), self.predict_batch):
                chosen = order[begin : begin + self.predict_batch]
                scores[chosen] = self.logits([samples[place] for place in chosen]).double().sigmoid().numpy()
        return [
            float(score) if is_visible(sample.summary) else 0.0 for score, sample in zip(scores, samples, strict=True)
        ]

    def test(self) -> dict[str, float]:
        """Measures on the test side."""
        return evaluate_samples(self.predict(self.samples["test"]), self.samples["test"])

    def validate(self) -> dict[str, float]:
        samples = self.samples["validation"]
        predicted = torch.tensor(self.predict(samples), dtype=torch.float64).clamp(1e-7, 1 - 1e-7)
        labels = torch.tensor([sample.label for sample in samples]).double()
        loss = float(sample_losses(predicted.logit(), labels, self._loss).mean())
        found = evaluate_samples(predicted.tolist(), samples)
        return {"validation_loss": loss, **{f"validation_{name}": value for name, value in found.items()}}


class VectorLearner(SampleLearner):
    """A head over vectors that were computed once and are stored on disk."""

    module: Head
    default_rate = 1e-3

    def __init__(
        self,
        options: TrainingOptions,
        pairs: Sequence[Pair],
        samples: Samples,
        vectors: Path,
        progress: bool | None = None,
    ) -> None:
        super().__init__(options, samples)
        encoder = load_encoder(options.encoder)
        unit, lang = options.unit, options.lang
        assert unit is not None and options.head is not None  # settled
        if unit == "words" and not isinstance(encoder, StaticEncoder):
            needs = "static word vectors, as 'wordllama'"
            raise InputError(f"train quality: unit: {unit!r} needs {needs}, but got the encoder {options.encoder!r}")
        self._documents = [split_units(pair.document, unit, lang) for pair in pairs]
        everything = [sample for side in samples.values() for sample in side]
        self._summaries = {sample.summary: split_units(sample.summary, unit, lang) for sample in everything}
        dimension = int(encoder.dimension if isinstance(encoder, StaticEncoder) else encoder.model.config.hidden_size)
        self.config = {
            "unit": unit,
            "encoder": options.encoder,
            "encoder_identity": encoder.identity,
            "head": options.head,
            "dimension": dimension,
            "lang": lang,
        }
        training = samples["train"]
        own = [self._summaries[sample.summary] for sample in training if sample.kind == "original"]
        documents = [self._documents[row] for row in {sample.row for sample in training}]
        self.config["document_length"] = covering_length(list(map(len, documents)))
        self.config["summary_length"] = covering_length(list(map(len, own)))
        self.module = build_head(self.config)
        kind = StoreKind(encoder.identity, dimension, unit, lang, False, reading_window(encoder))
        self._store = VectorStore(vectors / kind.folder_name, kind)
        units = [*self._documents, *self._summaries.values()]
        self._store.fill((part for parts in units for part in parts), encoder, progress=progress)
        self._document = lru_cache(4096)(self._read_document)  # several samples share a document

    def _read_document(self, row: int) -> TextVectors:
        return self._store.text(self._documents[row][: self.config.get("document_length")])

    def inputs(self, samples: Sequence[Sample]) -> list[PairInput]:
        """What the head reads of each sample."""
        return [
            PairInput(self._document(sample.row), self._store.text(self._summaries[sample.summary]))
            for sample in samples
        ]

    def length(self, sample: Sample) -> int:
        return len(sample.summary)

    def logits(self, samples: Sequence[Sample]) -> Tensor:
        return self.module(self.module.collate(self.inputs(samples)))


class CrossLearner(SampleLearner):
    """A transformer that reads document and summary together, fine-tuned from end to end or frozen.

    Of a frozen one the vectors of all samples are computed once and kept on disk.
    """

    module: CrossEncoder
    predict_batch = 16

    def __init__(
        self,
        options: TrainingOptions,
        pairs: Sequence[Pair],
        samples: Samples,
        vectors: Path,
        progress: bool | None = None,
    ) -> None:
        super().__init__(options, samples)
        self.module = load_cross_encoder(options.encoder, options.window)
        self.default_rate = 1e-3 if options.freeze else 3e-5
        self._pairs = pairs
        self.config = {
            "unit": "cross",
            "encoder": options.encoder,
            "head": "fc",
            "window": self.module.window,
            "lang": options.lang,
        }
        self._store: VectorStore | None = None
        if options.freeze:
            self.module.transformer.requires_grad_(False)
            identity, dimension = load_encoder(options.encoder).identity, self.module.hidden.in_features
            kind = StoreKind(identity, dimension, "cross", options.lang, False, self.module.window)
            self._store = VectorStore(vectors / kind.folder_name, kind)
            self._fill(self._store, progress)

    def _fill(self, store: VectorStore, progress: bool | None, part: int = 2048) -> None:
        """Compute the vectors that are missing, samples of similar length together."""
        texts = {self._text(sample): sample for side in self.samples.values() for sample in side}
        missing = sorted((text for text in texts if text not in store), key=lambda text: (-len(text), text))
        self.module.eval()
        with io.progress_bar(len(missing), desc="encode", unit=" pairs", progress=progress) as bar:
            for begin in range(0, len(missing), part):
                done = []
                for start in range(begin, min(begin + part, len(missing)), self.predict_batch):
                    chosen = missing[start : min(start + self.predict_batch, begin + part)]
                    with torch.inference_mode():
                        found = self.module.first(self.module.batch([self._row(texts[text]) for text in chosen]))
                    done += [
                        (text, UnitVectors(vector, _NO_TOKENS))
                        for text, vector in zip(chosen, found.numpy(), strict=True)
                    ]
                    bar.update(len(chosen))
                store.add(done)

    def _text(self, sample: Sample) -> str:
        return f"{self._pairs[sample.row].document}\0{sample.summary}"

    def _row(self, sample: Sample) -> tuple[list[int], list[int]]:
        return self.module.cut(self._pairs[sample.row].document, sample.summary)

    def length(self, sample: Sample) -> int:
        return len(self._pairs[sample.row].document) + len(sample.summary)

    def logits(self, samples: Sequence[Sample]) -> Tensor:
        if self._store is None:
            return self.module(self.module.batch([self._row(sample) for sample in samples]))
        vectors = np.stack([self._store.get(self._text(sample)).vector for sample in samples])
        return self.module.head(torch.from_numpy(vectors.astype(np.float32)))


_NO_TOKENS = np.zeros((0, 0), np.float32)


def build_learner(
    options: TrainingOptions,
    pairs: Sequence[Pair],
    sides: Mapping[str, list[int]],
    samples: Samples,
    vectors: Path,
    progress: bool | None,
) -> VectorLearner | CrossLearner | JoinLearner:
    """The learner for the unit and head that the options name."""
    if options.unit == "cross":
        return CrossLearner(options, pairs, samples, vectors, progress)
    if options.head == "aspects":
        return JoinLearner(options, pairs, sides, progress)
    return VectorLearner(options, pairs, samples, vectors, progress)
