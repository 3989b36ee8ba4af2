"""Metrics as rewards for TRL's trainers and plain PyTorch loops, and the losses of self-critical training.

`reward` turns one metric or several into a reward function, `embedding_reward` compares the token embeddings of the
model that is being trained. The losses are those of Clark et al. 2019 and Jin & Gildea 2022: a sample ŷ is compared
with the greedily decoded output ỹ, so that no critic has to be learned:

L_RL = (r(ỹ) − r(ŷ)) Σ_t log p(ŷ_t | ŷ_<t, x)    (Clark et al. 2019, Eq. 7 and 11; Jin & Gildea 2022, §4)
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from movers.errors import InputError
from movers.inputs import check_choice, check_text, is_group
from movers.registry import MetricSpec, parse_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.tensors import TensorAlignment, bertscore_tensors
from movers.texts import WordRules, repeated_share, stop_words, token_spans
from movers.weights import CORPUS_TABLES

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["EmbeddingReward", "Reward", "embedding_reward", "likelihood_loss", "mixed_loss", "reward",
           "self_critical_loss", "token_log_probs"]  # fmt: skip

Ids: TypeAlias = Sequence[Sequence[int]] | Tensor
Rewards: TypeAlias = Sequence[float | None] | Tensor
#: Minimum reward, given to completions without words, by the scale of the scores. −4 is the logarithm of the
#: similarity at four times the distance of unrelated texts.
LOWER_BOUNDS = {"similarity": 0.0, "log": -4.0, "rescaled": -1.0, "learned": 0.0}


def _text(reward: str, argument: str, row: int, value: object) -> str:
    """A text, or the last message of a conversation."""
    if is_group(value) and all(isinstance(message, Mapping) for message in value):
        value = value[-1] if len(value) else ""
    if isinstance(value, Mapping):
        value = value.get("content") or ""  # a message that only calls a tool has no text
        if is_group(value):
            return "".join(str(part.get("text", "")) for part in value if isinstance(part, Mapping))
    return check_text(reward, argument, str(row), value)


def _texts(reward: str, completions: Sequence[object]) -> list[str]:
    if isinstance(completions, str):
        raise InputError(f"{reward}: completions: expected a list of texts, but got a single str")
    return [_text(reward, "completions", row, value) for row, value in enumerate(completions)]


def _column(reward: str, column: str, columns: Mapping[str, object], count: int) -> list[list[str]]:
    """The references (or sources) of each row: none where the row has None, nothing or blank texts alone."""
    if column not in columns:
        known = ", ".join(name for name, values in columns.items() if isinstance(values, list)) or "none"
        raise InputError(f"{reward}: expected a column {column!r}, but got {known}")
    rows = columns[column]
    if not is_group(rows) or len(rows) != count:
        actual = len(rows) if is_group(rows) else type(rows).__name__
        raise InputError(f"{reward}: {column}: expected one entry per completion, {count}, but got {actual}")
    groups = []
    for number, row in enumerate(rows):
        several = is_group(row) and not any(isinstance(item, Mapping) for item in row)  # messages are one text
        items: Any = row if several else [row]
        texts = [_text(reward, column, number, item) for item in items if item is not None]
        groups.append([text for text in texts if text.strip()])
    return groups


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _words(text: str) -> list[tuple[str, int]]:
    """Case-folded words with their offsets."""
    return [(token.casefold(), start) for token, start, _ in token_spans(text) if _has_words(token)]


def _repetitions(text: str) -> tuple[int, str]:
    """How often a text repeats itself, and the text up to its first repetition.

    >>> _repetitions("Snow melts. Snow melts. Snow melts."), _repetitions("Snow melts.")
    ((3, 'Snow melts.'), (1, 'Snow melts.'))
    """
    tokens = _words(text)
    words, count = [word for word, _ in tokens], len(tokens)
    for period in range(1, count // 2 + 1):
        if count % period == 0 and words[period:] == words[:-period]:
            return count // period, text[: tokens[period][1]].rstrip()
    return 1, text


def _excess_repetition(row: Row) -> float:
    texts = [row.prediction, *row.references, *row.sources]
    share, *others = (repeated_share(word for word, _ in _words(text)) for text in texts)
    return max(share - max(others), 0.0)


class _Part(NamedTuple):
    """One metric of a reward: its text as the user wrote it, its column among the Scorer's examples, its scale."""

    label: str
    column: int
    compared_with: str
    aspect: object
    scale: str
    weight: float

    def reward(self, example: Example) -> float:
        check_choice(self.label, "aspect", self.aspect, [None, *example.parts])
        score, lower = example.parts.get(str(self.aspect), example.score), LOWER_BOUNDS[self.scale]
        if self.scale == "log":
            score = math.log(score) if score > 0 else lower
        return max(score, lower)


class Reward:
    """One metric or several as a reward function for `reward_funcs` of TRL's `GRPOTrainer` and `RLOOTrainer`.

    Completions without words get the lower bound: 0 for wms, sms, swms and reference_free_summary_quality, −1 for
    moverscore and bertscore_*. So do completions of stop words alone, unless a reference has nothing else either. A
    completion that is nothing but a repetition earns no more than what it repeats, unless a reference repeats itself as
    often. A phrase twice and one word more can still earn more than the phrase once; `repetition_penalty` prevents it.

    Parameters
    ----------
    metric : str, list of str, or dict of weights
        `name` or `name[key=value,…]`. Several are added up, those of a list with equal weights that sum to 1.
    reference_column, source_column : str
        Column of the dataset with one reference (or document) or several. Rows without any get None: not rewarded.
    transform : {None, "log"}
        "log" gives −distance instead of exp(−distance), for wms, sms and swms; the lower bound is then −4.
    aspect : str, optional
        Aspect of `reference_free_summary_quality` that is rewarded; in brackets after the name for one of several.
    repetition_penalty : float from 0 to 1, default 0
        Share of the reward, counted from the lower bound, that a completion would lose if all its word pairs stood in
        it before. What a reference repeats as well is not counted.
    name : str, optional
        Name under which trainers log the reward; the metrics' names by default.
    **options
        Options of the metrics. `rescale=True` is the default for moverscore and bertscore_*.

    >>> reward("sms")(completions=["Snow melts.", "...", "Snow."], reference=["Snow melts.", "Snow melts.", None])
    [1.0, 0.0, None]
    """

    def __init__(
        self,
        metric: str | Sequence[str] | Mapping[str, float],
        *,
        reference_column: str = "reference",
        source_column: str = "source",
        transform: Literal["log"] | None = None,
        aspect: str | None = None,
        repetition_penalty: float = 0.0,
        name: str | None = None,
        **options: object,
    ) -> None:
        if not 0 <= repetition_penalty <= 1:
            raise InputError(f"reward: repetition_penalty: expected 0 to 1, but got {repetition_penalty!r}")
        self._repetition_penalty = repetition_penalty
        self._parts: list[_Part] = []
        self._metrics: dict[str, tuple[str, Mapping[str, object]]] = {}
        self._columns: dict[str, str] = {}
        columns = {"references": reference_column, "sources": source_column}
        self._warned: set[str] = set()
        for label, weight in _weights(metric).items():
            spec, specific = parse_metric(label)
            part_aspect = specific.pop("aspect", aspect)
            merged = {"progress": False, **options, **specific}
            scale = _scale(spec, merged, transform)
            if scale == "rescaled":
                merged = {"rescale": True, **merged}
            if (idf := getattr(spec.parse(merged), "idf", None)) in CORPUS_TABLES:
                raise InputError(f"{spec.name}: idf: expected a table, because {idf!r} changes with every batch")
            if (spec.name, merged) not in self._metrics.values():  # metrics that differ in their aspect alone are one
                self._metrics[label] = spec.name, merged
            column = list(self._metrics.values()).index((spec.name, merged))
            self._parts.append(_Part(label, column, spec.compared_with, part_aspect, scale, weight))
            self._columns[spec.compared_with] = columns[spec.compared_with]
        self.__name__ = name or "+".join(part.label for part in self._parts)
        self.lower = math.fsum(part.weight * LOWER_BOUNDS[part.scale] for part in self._parts)

    @cached_property
    def _scorer(self) -> Scorer:  # encoders are loaded by the first call
        return Scorer(self._metrics)

    def __call__(self, *, completions: Sequence[object], **columns: object) -> list[float | None]:
        """One reward per completion (a text, or messages whose last one counts), with the columns of the dataset."""
        texts = _texts(self.__name__, completions)
        groups = {kind: _column(self.__name__, column, columns, len(texts)) for kind, column in self._columns.items()}
        rewards: list[float | None] = [None] * len(texts)
        rows: dict[int, Row] = {}
        for number, text in enumerate(texts):
            if all(group[number] for group in groups.values()):
                rewards[number] = self.lower
                others = [other for group in groups.values() for other in group[number]]
                if _has_content(text) or _has_words(text) and not any(map(_has_content, others)):
                    rows[number] = Row(text, **{kind: group[number] for kind, group in groups.items()})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = self._values(list(rows.values()))
        for warning in caught:  # once, not at every step with other counts
            kind = re.sub(r"\d+", "", str(warning.message))
            if kind not in self._warned:
                self._warned.add(kind)
                warnings.warn(warning.message, warning.category, stacklevel=2)
        for number, row in zip(rows, values, strict=True):
            total = math.fsum(part.weight * value for part, value in zip(self._parts, row, strict=True))
            value = max(total, self.lower)
            lost = self._repetition_penalty and self._repetition_penalty * _excess_repetition(rows[number])
            rewards[number] = value - lost * (value - self.lower)
        return rewards

    def score(self, completions: Any, references: object = None, *, sources: object = None) -> list[float | None]:
        """The same for your own loop: texts, with one or several references (or `sources`) each."""
        compared = {"references": references, "sources": sources}
        return self(completions=completions, **{column: compared[kind] for kind, column in self._columns.items()})

    def _values(self, rows: Sequence[Row]) -> list[list[float]]:
        """Rewards by row and metric; repetitions do not pay."""
        repetitions = [_repetitions(row.prediction) for row in rows]
        repeated = [number for number, (count, _) in enumerate(repetitions) if count > 1]
        scored = [*rows, *(rows[number]._replace(prediction=repetitions[number][1]) for number in repeated)]
        examples = list(self._scorer.stream(scored, total=len(scored)))
        values = [[part.reward(row[part.column]) for part in self._parts] for row in examples]
        for place, part in enumerate(self._parts):
            for number, once in zip(repeated, values[len(rows) :], strict=True):
                others = getattr(rows[number], part.compared_with)
                if all(_repetitions(text)[0] < repetitions[number][0] for text in others):
                    values[number][place] = min(values[number][place], once[place])
        return values[: len(rows)]


reward = Reward


def _has_content(text: str) -> bool:
    """Whether there is a word that is no stop word: stop words alone are near everything, and would pay."""
    return any(span.mass == 1 for span in WordRules(stop_words("english")).spans(text))


def _weights(metric: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(metric, str):
        return {metric: 1.0}
    weights = dict(metric) if isinstance(metric, Mapping) else {text: 1 / len(metric) for text in metric}
    valid = [isinstance(weight, int | float) and 0 < weight < math.inf for weight in weights.values()]
    if not weights or not all(valid) or len(weights) < len(metric):
        raise InputError(f"reward: metric: expected different metrics with weights above zero, but got {metric!r}")
    return weights


def _scale(spec: MetricSpec, options: Mapping[str, object], transform: object) -> str:
    """Scale of the scores: exp(−distance) for metrics with a temperature, rescaled by default where they can be."""
    check_choice(spec.name, "transform", transform, ["log", None])
    if hasattr(spec.options_class, "temperature") and not options.get("rescale"):
        return "log" if transform else "similarity"
    if transform:
        raise InputError(f"{spec.name}: transform: expected None, but got 'log', which needs exp(−distance) as score")
    return "rescaled" if hasattr(spec.options_class, "rescale") else "learned"


class EmbeddingReward:
    """F1 on the token embeddings (lowest layer) of the model that is being trained (Jin & Gildea 2022), in 0–1.

    Its input embeddings are read at every call, so that they may be trained too. `alignment` is that of F_disc
    ("hungarian"), F_cont ("emd") or F_BERT ("greedy"). Texts need a `tokenizer`, ids none. `reference_column` has one
    reference or several per row.

    >>> import transformers
    >>> config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=20, eos_token_id=0, bos_token_id=0)
    >>> model = transformers.GPT2LMHeadModel(config)
    >>> round(float(embedding_reward(model).score_ids([[3, 4, 5, 0]], [[5, 3, 4]])[0]), 4)
    1.0
    """

    lower = 0.0

    def __init__(
        self,
        model: PreTrainedModel,
        alignment: TensorAlignment = "hungarian",
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        reference_column: str = "reference",
        threads: int | None = None,
    ) -> None:
        check_choice("embedding_reward", "alignment", alignment, ("hungarian", "emd", "greedy"))
        self._model, self._tokenizer, self._alignment = model, tokenizer, alignment
        self._column, self._threads = reference_column, threads
        self._special = set(getattr(tokenizer, "all_special_ids", None) or ())
        for name in () if self._special else ("pad", "bos", "eos", "decoder_start"):
            ids = getattr(model.config, f"{name}_token_id", None)
            self._special.update(ids if isinstance(ids, list) else [ids])
        self.__name__ = f"embedding_{alignment}"

    def __call__(
        self, *, completions: Sequence[object], completion_ids: Sequence[Sequence[int]] | None = None, **columns: object
    ) -> list[float | None]:
        """One reward per completion; None where the row has no reference. `completion_ids` save tokenizing."""
        if self._tokenizer is None:
            raise InputError(f"{self.__name__}: tokenizer: expected one for texts, but got None")
        texts = _texts(self.__name__, completions)
        groups = _column(self.__name__, self._column, columns, len(texts))
        pairs = [(row, reference) for row, group in enumerate(groups) if _has_words(texts[row]) for reference in group]
        rewards: list[float | None] = [self.lower if group else None for group in groups]
        if not pairs:
            return rewards
        sides = [texts[row] for row, _ in pairs], [reference for _, reference in pairs]
        ids, others = (self._tokenizer(list(side), add_special_tokens=False)["input_ids"] for side in sides)
        if completion_ids is not None:
            ids = [completion_ids[row] for row, _ in pairs]
        scores = self.score_ids(ids, others).tolist()
        for (row, _), value in zip(pairs, scores, strict=True):
            rewards[row] = max(rewards[row] or self.lower, value)
        return rewards

    def score_ids(self, completions: Ids, references: Ids) -> Tensor:
        """Rewards (B,) of token ids, as lists or padded tensors; special tokens carry no mass."""
        with torch.no_grad():
            sides = *self._embed(completions), *self._embed(references)
            return bertscore_tensors(*sides, alignment=self._alignment, threads=self._threads)[2].clamp_min(self.lower)

    def _embed(self, ids: Ids) -> tuple[Tensor, Tensor]:
        """Embeddings (B, n, d) and mask (B, n)."""
        table = self._model.get_input_embeddings().weight  # as it is now: it may be trained
        lists = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        rows = [[token for token in row if token not in self._special] for row in lists]
        # −1 pads; at least one column, so that an empty text has a row of padding.
        padded = pad_sequence([torch.tensor(row or [-1]) for row in rows], batch_first=True, padding_value=-1)
        padded = padded.to(table.device)
        return table[padded.clamp_min(0)], padded >= 0


embedding_reward = EmbeddingReward


def token_log_probs(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities (B, T) of tokens `ids` (B, T) under `logits` (B, T, V); logits[:, t] predict ids[:, t]."""
    return -torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), ids, reduction="none")


def self_critical_loss(log_probs: Tensor, mask: Tensor, reward: Rewards, baseline: Rewards) -> Tensor:
    """Mean over the batch of (baseline − reward) Σ_t log p(ŷ_t); 0 with a gradient of 0 if no row has a reward.

    `log_probs` and `mask` (B, T) are those of the sampled tokens, the end-of-sequence token included; `reward` and
    `baseline` (B,) those of the samples and of the greedily decoded outputs. Rows where either is None do not count.

    >>> import torch
    >>> log_probs = torch.log(torch.tensor([[0.5, 0.5], [0.25, 1.0]]))
    >>> mask = torch.tensor([[1, 1], [1, 0]])
    >>> round(float(self_critical_loss(log_probs, mask, [0.9, 0.1], [0.4, 0.1])), 4)  # −0.5 · log 0.25 / 2 rows
    0.3466
    """
    advantage = _constants(baseline, log_probs) - _constants(reward, log_probs)
    counted = torch.isfinite(advantage)
    products = torch.where(counted, advantage, 0.0) * _masked_sums(log_probs, mask)
    return products.sum() / counted.sum().clamp_min(1)


def likelihood_loss(log_probs: Tensor, mask: Tensor) -> Tensor:
    """Mean over the batch of −Σ_t log p(y_t): L_MLE (Clark et al. 2019, Eq. 6), on the same scale as L_RL."""
    return -_masked_sums(log_probs, mask).mean()


def mixed_loss(reward_loss: Tensor, likelihood: Tensor, weight: float) -> Tensor:
    """`weight` · L_RL + (1 − `weight`) · L_MLE: γ ≥ .97 in Clark et al. 2019 (Eq. 8), λ = .3 in Jin & Gildea 2022."""
    return weight * reward_loss + (1 - weight) * likelihood


def _constants(values: Rewards, like: Tensor) -> Tensor:
    if not isinstance(values, torch.Tensor):
        values = torch.tensor([math.nan if value is None else float(value) for value in values])
    return values.detach().to(device=like.device, dtype=like.dtype)


def _masked_sums(log_probs: Tensor, mask: Tensor) -> Tensor:
    return log_probs.masked_fill(~mask.bool(), 0.0).sum(dim=1)
