"""What the training loop asks of a model: logits of samples. One kind reads stored vectors, the other reads texts.

This module imports torch; import it late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from movers.encoders import load_encoder
from movers.quality.cross import CrossEncoder, load_cross_encoder
from movers.quality.heads import AlignHead, Head, LossFunction, PairInput, align, build_head
from movers.quality.negatives import Pair, Sample
from movers.quality.vectors import EncodedText, Unit, VectorStore, split_units
from movers.texts import is_visible

if TYPE_CHECKING:
    from movers.quality.training import TrainingOptions

__all__ = ["CrossLearner", "Learner", "VectorLearner", "build_learner"]


class Learner(Protocol):
    """A module and how samples reach it."""

    rate: float
    config: dict[str, Any]

    @property
    def module(self) -> nn.Module:
        """What learns."""
        ...

    def lengths(self, samples: Sequence[Sample]) -> list[int]:
        """What to sort by so that a batch pads little."""
        ...

    def logits(self, samples: Sequence[Sample]) -> Tensor:
        """(B,) logits."""
        ...

    def loss(self, samples: Sequence[Sample], loss_of: LossFunction) -> Tensor:
        """What a step of training lowers."""
        ...

    def predict(self, samples: Sequence[Sample]) -> list[float]:
        """Scores in [0, 1], without gradient, in evaluation mode."""
        ...


def _predict(learner: Learner, samples: Sequence[Sample], size: int = 64) -> list[float]:
    learner.module.eval()
    order = np.argsort(learner.lengths(samples), kind="stable")
    scores = np.zeros(len(samples))
    with torch.inference_mode():
        for begin in range(0, len(order), size):
            chosen = order[begin : begin + size]
            scores[chosen] = learner.logits([samples[place] for place in chosen]).double().sigmoid().numpy()
    # a blank summary is 0 by definition; the network never judges one
    return [float(score) if is_visible(samples[place].summary) else 0.0 for place, score in enumerate(scores)]


def _labels(samples: Sequence[Sample]) -> Tensor:
    return torch.tensor([sample.label for sample in samples])


def covering_length(counts: Sequence[int], share: float = 0.8) -> int:
    """The least length that covers the given share of the texts (the paper's 80 % rule).

    >>> covering_length([1, 2, 3, 4, 50])
    4
    """
    return max(1, int(np.sort(np.asarray(counts))[max(0, int(np.ceil(share * len(counts))) - 1)]))


_NOTHING = np.zeros((0, 0), np.float32)
_UNREAD = EncodedText(("",), _NOTHING, _NOTHING, np.zeros(0, np.int64))  # stands for a document that need not be read


class VectorLearner:
    """A head over vectors that were computed once and lie in a store on disk."""

    def __init__(
        self,
        options: TrainingOptions,
        pairs: Sequence[Pair],
        samples: dict[str, list[Sample]],
        folder: Path,
        progress: bool | None,
    ) -> None:
        encoder = load_encoder(options.encoder, progress=progress)
        static = not hasattr(encoder, "tokenize")
        unit: Unit = options.unit or ("words" if static else "sentences")
        if unit == "words" and not static:
            raise ValueError("train quality: unit: 'words' needs an encoder of static word vectors, as 'wordllama'")
        if unit == "sentences" and static:
            raise ValueError("train quality: unit: 'sentences' needs a contextual encoder, as 'all-MiniLM-L6-v2'")
        self.rate = 1e-3
        self._lang = options.lang
        self._unit: Unit = unit
        self._documents = [split_units(pair.document, unit, options.lang) for pair in pairs]
        everything = [sample for side in samples.values() for sample in side]
        self._summaries = {sample.summary: split_units(sample.summary, unit, options.lang) for sample in everything}
        dimension = int(encoder.dimension if static else encoder.model.config.hidden_size)
        training = samples["train"]
        rows = sorted({sample.row for sample in training})
        lengths = (
            covering_length([len(self._documents[row]) for row in rows]),
            covering_length([len(self._summaries[sample.summary]) for sample in training if sample.kind == "original"]),
        )
        self.config: dict[str, Any] = {
            "unit": unit,
            "encoder": options.encoder,
            "encoder_identity": encoder.identity,
            "head": options.head,
            "dimension": dimension,
            "lang": options.lang,
        }
        if options.head != "align":
            self.config |= {"document_length": lengths[0], "summary_length": lengths[1]}
        self.module: Head = build_head(self.config)
        self._store = VectorStore(folder / encoder.identity.replace("/", "_"), dimension, self.module.reads_tokens)
        units = [*self._documents, *self._summaries.values()]
        self._store.fill((part for parts in units for part in parts), encoder, unit, progress=progress)
        self._features: dict[tuple[int, str], NDArray[np.float32]] = {}
        self._read: dict[int, EncodedText] = {}
        if isinstance(self.module, AlignHead):
            self._measure(everything, self.module, progress)

    def _measure(self, samples: Sequence[Sample], head: AlignHead, progress: bool | None) -> None:
        """Alignment features of every sample, once; they do not change while the head learns."""
        from tqdm import tqdm

        disable = None if progress is None else not progress
        row, document = -1, _UNREAD
        for sample in tqdm(samples, desc="align", unit=" pairs", disable=disable):
            summary = self._store.text(self._summaries[sample.summary])
            if summary.blank:
                continue
            if sample.row != row:  # samples of a document stand together: make its vectors floats once
                row, stored = sample.row, self._store.text(self._documents[sample.row])
                document = replace(stored, tokens=np.asarray(stored.tokens, np.float32))
            self._features[sample.row, sample.summary] = align(document, summary).features
        head.calibrate(np.stack(list(self._features.values())))

    def _input(self, sample: Sample) -> PairInput:
        document = self._documents[sample.row]
        # with the features at hand, `align` has no need of the document's vectors
        known = self._features.get((sample.row, sample.summary))
        if known is not None:
            stored = _UNREAD
        elif sample.row in self._read:
            stored = self._read[sample.row]
        else:  # a sequence head cuts the document anyway
            stored = self._read[sample.row] = self._store.text(document[: self.config.get("document_length")])
        return PairInput(stored, self._store.text(self._summaries[sample.summary]), known)

    def lengths(self, samples: Sequence[Sample]) -> list[int]:
        return [len(sample.summary) for sample in samples]

    def logits(self, samples: Sequence[Sample]) -> Tensor:
        return self.module(self.module.collate([self._input(sample) for sample in samples]))

    def loss(self, samples: Sequence[Sample], loss_of: LossFunction) -> Tensor:
        batch = self.module.collate([self._input(sample) for sample in samples])
        return self.module.loss(batch, _labels(samples), [sample.kind for sample in samples], loss_of)

    def predict(self, samples: Sequence[Sample]) -> list[float]:
        return _predict(self, samples)


class CrossLearner:
    """A transformer that reads document and summary together, fine-tuned from end to end."""

    def __init__(self, options: TrainingOptions, pairs: Sequence[Pair]) -> None:
        self.module: CrossEncoder = load_cross_encoder(options.encoder, options.window)
        self.rate = 3e-5
        self._pairs = pairs
        self.config: dict[str, Any] = {
            "unit": "cross",
            "encoder": options.encoder,
            "head": "fc",
            "window": self.module.window,
            "lang": options.lang,
        }

    def lengths(self, samples: Sequence[Sample]) -> list[int]:
        return [len(self._pairs[sample.row].document) + len(sample.summary) for sample in samples]

    def logits(self, samples: Sequence[Sample]) -> Tensor:
        texts = [(self._pairs[sample.row].document, sample.summary) for sample in samples]
        return self.module(self.module.collate_cut(texts))

    def loss(self, samples: Sequence[Sample], loss_of: LossFunction) -> Tensor:
        return loss_of(self.logits(samples), _labels(samples)).mean()

    def predict(self, samples: Sequence[Sample]) -> list[float]:
        return _predict(self, samples, size=16)


def build_learner(
    options: TrainingOptions,
    pairs: Sequence[Pair],
    samples: dict[str, list[Sample]],
    folder: Path,
    progress: bool | None,
) -> Learner:
    """The learner that the options ask for."""
    if options.unit == "cross":
        return CrossLearner(options, pairs)
    return VectorLearner(options, pairs, samples, folder, progress)
