"""Metrics as rewards for TRL's trainers and plain PyTorch loops, and the losses of self-critical training.

`reward` turns one metric or several into a reward function, `embedding_reward` compares the token embeddings of the
model that is being trained. The losses are those of Clark et al. 2019 and Jin & Gildea 2022: a sample ŷ is compared
with the greedily decoded output ỹ, so that no critic has to be learned:

L_RL = (r(ỹ) − r(ŷ)) Σ_t log p(ŷ_t | ŷ_<t, x)    (Clark et al. 2019, Eq. 7 and 11; Jin & Gildea 2022, §4)
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from movers.errors import InputError
from movers.inputs import check_choice, check_text, is_group
from movers.registry import MetricSpec, parse_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.tensors import TensorAlignment, bertscore_tensors
from movers.texts import token_spans

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["EmbeddingReward", "Reward", "embedding_reward", "likelihood_loss", "mixed_loss", "reward",
           "self_critical_loss", "token_log_probs"]  # fmt: skip

Log = Callable[[str, float], object]
#: Minimum reward, given to completions without words, by the scale of the scores. −4 is the logarithm of the
#: similarity at four times the distance of unrelated texts.
LOWER_BOUNDS = {"similarity": 0.0, "log": -4.0, "rescaled": -1.0, "learned": 0.0}


# ---------------------------------------------------------------------------------------------------------------------
# Texts, as trainers pass them


def _text(reward: str, argument: str, row: int, value: object) -> str:
    """A text, or the text of a conversation: the content of its last message."""
    if is_group(value) and all(isinstance(message, Mapping) for message in value):
        if not len(value):
            return ""
        value = value[-1]
    if isinstance(value, Mapping):
        value = value.get("content")
        if value is None:  # a message that only calls a tool has no text
            return ""
        if is_group(value):
            return "".join(str(part.get("text", "")) for part in value if isinstance(part, Mapping))
    return check_text(reward, argument, str(row), value)


def _completions(reward: str, completions: object) -> list[str]:
    if isinstance(completions, str) or not isinstance(completions, Sequence):
        raise InputError(f"{reward}: completions: expected a list, but got {type(completions).__name__}")
    return [_text(reward, "completions", row, value) for row, value in enumerate(completions)]


def _column(reward: str, kind: str, column: str, columns: Mapping[str, object], count: int) -> list[list[str]]:
    """The references (or sources) of each row: none where the row has None, nothing or blank texts alone."""
    if column not in columns:
        known = ", ".join(name for name, values in columns.items() if isinstance(values, list)) or "none"
        raise InputError(f"{reward}: expected a column {column!r} with {kind}, but got {known}")
    rows = columns[column]
    if not is_group(rows) or len(rows) != count:
        actual = len(rows) if is_group(rows) else type(rows).__name__
        raise InputError(f"{reward}: {column}: expected one entry per completion, {count}, but got {actual}")
    groups = []
    for number, row in enumerate(rows):
        several = is_group(row) and not (len(row) and isinstance(row[0], Mapping))
        items: Iterable[object] = row if several and is_group(row) else [row]
        texts = [_text(reward, column, number, item) for item in items if item is not None]
        groups.append([text for text in texts if text.strip()])
    return groups


def _has_words(text: str) -> bool:
    """Whether there is a letter or a digit."""
    return any(map(str.isalnum, text))


def _repetitions(text: str) -> tuple[int, str]:
    """How often a text repeats itself, and the text up to its first repetition.

    >>> _repetitions("Snow melts. Snow melts. Snow melts.")
    (3, 'Snow melts.')
    >>> _repetitions("Snow melts in spring.")
    (1, 'Snow melts in spring.')
    """
    tokens = [(token.casefold(), end) for token, _, end in token_spans(text) if _has_words(token)]
    words, count = [word for word, _ in tokens], len(tokens)
    for period in range(1, count // 2 + 1):
        if count % period == 0 and words[period:] == words[:-period]:
            end = tokens[period - 1][1]
            rest = text[end:]
            closing = len(rest) - len(rest.lstrip(".,;:!?…\"'”’)"))
            return count // period, text[: end + closing]
    return 1, text


# ---------------------------------------------------------------------------------------------------------------------
# Metrics


@dataclass(frozen=True)
class _Part:
    """One metric of a reward: its text as the user wrote it, its column among the Scorer's examples, its scale."""

    label: str
    column: int
    compared_with: str
    multi_ref: str
    aspect: str | None
    scale: str
    weight: float

    def reward(self, score: float) -> float:
        lower = LOWER_BOUNDS[self.scale]
        if self.scale == "log":
            score = math.log(score) if score > 0 else lower
        return max(score, lower)

    def score(self, example: Example) -> float:
        if self.aspect is None:
            return example.score
        if self.aspect not in example.parts:
            raise InputError(f"{self.label}: aspect: expected a model with aspects, but it has none")
        return example.parts[self.aspect]


class Reward:
    """A reward function: call it with keywords, as TRL's trainers do, or use `score` in your own loop.

    Attributes
    ----------
    __name__ : str
        Name under which trainers log the reward.
    lower : float
        Minimum reward, given to completions without words.
    """

    def __init__(self, parts: list[_Part], scorer: Callable[[], Scorer], columns: dict[str, str], name: str) -> None:
        self._parts, self._columns = parts, columns
        self._scorer = lru_cache(1)(scorer)  # encoders are loaded by the first call
        self._called = False
        self.__name__ = name
        self.lower = math.fsum(part.weight * LOWER_BOUNDS[part.scale] for part in parts)

    def __repr__(self) -> str:
        return f"<reward {self.__name__}>"

    def __call__(self, *, completions: object, log_metric: Log | None = None, **columns: object) -> list[float | None]:
        """One reward per completion; None where the row has nothing to compare with.

        Parameters
        ----------
        completions : texts, or conversations (lists of messages) whose last message counts
        log_metric : function of name and value, optional
            Gets the mean reward of each metric, if there are several, and the share of completions without words.
        **columns
            Columns of the dataset, among them the references (or sources); all others are ignored.
        """
        texts = _completions(self.__name__, completions)
        groups = {
            kind: _column(self.__name__, kind, column, columns, len(texts)) for kind, column in self._columns.items()
        }
        counted = [number for number in range(len(texts)) if all(group[number] for group in groups.values())]
        spoken = [number for number in counted if _has_words(texts[number])]
        rewards: list[float | None] = [None] * len(texts)
        for number in counted:
            rewards[number] = self.lower
        rows = [Row(texts[number], **{kind: group[number] for kind, group in groups.items()}) for number in spoken]
        with warnings.catch_warnings():
            if self._called:
                warnings.simplefilter("ignore")  # unknown words are worth one warning, not one per step
            values = self._values(rows) if rows else []
        self._called = True
        for number, row in zip(spoken, values, strict=True):
            total = math.fsum(part.weight * value for part, value in zip(self._parts, row, strict=True))
            rewards[number] = max(total, self.lower)
        if log_metric is not None and counted:
            for part, column in zip(self._parts, zip(*values, strict=True), strict=False):
                if len(self._parts) > 1:
                    log_metric(f"{self.__name__}/{part.label}", fmean(column))
            log_metric(f"{self.__name__}/no_words", 1 - len(spoken) / len(counted))
        return rewards

    def score(
        self,
        completions: Sequence[str],
        references: Sequence[object] | None = None,
        *,
        sources: Sequence[object] | None = None,
    ) -> list[float | None]:
        """The same for your own loop: texts, with one or several references (or `sources`) each."""
        compared = {"references": references, "sources": sources}
        passed = [kind for kind, texts in compared.items() if texts is not None]
        for kind in self._columns.keys() - passed:
            raise InputError(f"{self.__name__}: score: expected {kind}=…, but got {', '.join(passed) or 'none'}")
        columns: dict[str, Any] = {column: compared[kind] for kind, column in self._columns.items()}
        return self(completions=completions, **columns)

    def _values(self, rows: Sequence[Row]) -> list[list[float]]:
        """Rewards by row and metric; a completion that repeats itself earns no more than without the repetition."""
        repetitions = [_repetitions(row.prediction) for row in rows]
        again = [number for number, (count, _) in enumerate(repetitions) if count > 1]
        scores = self._scores([*rows, *(rows[number]._replace(prediction=repetitions[number][1]) for number in again)])
        for number, once in zip(again, scores[len(rows) :], strict=True):
            for place, part in enumerate(self._parts):
                others = getattr(rows[number], part.compared_with)
                if all(_repetitions(text)[0] < repetitions[number][0] for text in others):
                    scores[number][place] = min(scores[number][place], once[place])
        return [
            [part.reward(score) for part, score in zip(self._parts, row, strict=True)] for row in scores[: len(rows)]
        ]

    def _scores(self, rows: Sequence[Row]) -> list[list[float]]:
        """Scores by row and metric; −∞ where a completion of stop words alone meets a reference with content words.

        A metric compares such a completion with all tokens of the reference, which says little and may give more than a
        good sentence gets from a comparison of content words.
        """
        scorer = self._scorer()
        examples = list(scorer.stream(rows, total=len(rows)))
        scores = [[part.score(example[part.column]) for part in self._parts] for example in examples]
        flagged = [
            (number, place, part)
            for number, row in enumerate(examples)
            for place, part in enumerate(self._parts)
            if row[part.column].unfiltered and part.aspect is None
        ]
        texts = dict.fromkeys(
            text
            for number, _, part in flagged
            for text in (rows[number][0], *getattr(rows[number], part.compared_with))
        )
        alone = dict(zip(texts, scorer.stream(Row(text, [text], [text]) for text in texts), strict=True))
        for number, place, part in flagged:
            others = getattr(rows[number], part.compared_with)
            left = [text for text in others if alone[text][part.column].unfiltered]
            if alone[rows[number].prediction][part.column].unfiltered and len(left) < len(others):
                scores[number][place] = -math.inf
                if left and part.multi_ref == "max":
                    row = Row(rows[number].prediction, left, left)
                    scores[number][place] = next(scorer.stream([row]))[part.column].score
        return scores


def reward(
    metric: str | Sequence[str] | Mapping[str, float],
    *,
    reference_column: str = "reference",
    source_column: str = "source",
    transform: Literal["log"] | None = None,
    aspect: str | None = None,
    name: str | None = None,
    **options: object,
) -> Reward:
    """A metric as a reward function for `reward_funcs` of TRL's `GRPOTrainer` and `RLOOTrainer`.

    Parameters
    ----------
    metric : str, list of str, or dict of weights
        `name` or `name[key=value,…]`. Several are added up: with equal weights that sum to 1 for a list, with the given
        weights for a dict. Metrics with the same encoder reuse one forward pass per text.
    reference_column : str
        Column of the dataset with one reference or several per row. Rows where it is None, empty or blank get None,
        which trainers leave out.
    source_column : str
        Column of the documents, for `reference_free_summary_quality`.
    transform : {None, "log"}
        "log" gives −distance instead of exp(−distance), for wms, sms and swms.
    aspect : {None, "faithfulness", "coverage", "fluency", "likelihood"}
        Reward this aspect of `reference_free_summary_quality` instead of its score; `likelihood` needs an `lm`. In
        brackets after the name it holds for one metric of several.
    name : str, optional
        Name under which trainers log the reward; the metrics' names by default.
    **options
        Options of the metric (of all of them, if there are several). Scores are readable by default:
        `temperature="auto"` for wms, sms, swms (1 is the paper's), `rescale=True` for moverscore and bertscore_*.

    Returns
    -------
    Reward
        Its lower bound, given to completions without words, is 0 for wms, sms, swms and reference_free_summary_quality,
        −4 with `transform="log"` (four times the distance of unrelated texts), and −1 for moverscore and bertscore_*.
        A completion of stop words alone earns it too, where the metric drops them and the reference has more. A
        completion that repeats itself earns no more than without the repetition, unless a reference repeats itself as
        often.

    Examples
    --------
    >>> sms = reward("sms")
    >>> good, other, none, blank = sms(
    ...     completions=["A man sells snow.", "The court adjourned.", "A man sells snow.", "..."],
    ...     reference=["Someone is selling snow.", "Someone is selling snow.", None, "Someone is selling snow."],
    ... )
    >>> good > other > blank, none, blank
    (True, None, 0.0)
    """
    options = {"progress": False, **options}
    parts: list[_Part] = []
    metrics: dict[str, int] = {}  # of the Scorer; those that differ in their aspect alone are one
    columns = {}
    for label, weight in _weights(metric).items():
        spec, specific = parse_metric(label)
        part_aspect = _check_aspect(spec, specific.pop("aspect", aspect), {**options, **specific})
        scale = _scale(spec, {**options, **specific}, transform)
        if scale == "rescaled" and "rescale" not in options:
            specific = {"rescale": True, **specific}
        parsed = spec.parse({**options, **specific})
        if getattr(parsed, "idf", None) == "corpus":
            raise InputError(
                f"{spec.name}: idf: expected a table for a reward, because 'corpus' would change it with every batch; "
                "save one with IdfTable.save"
            )
        values = (f"{key}={'none' if value is None else json.dumps(value)}" for key, value in specific.items())
        column = metrics.setdefault(f"{spec.name}[{','.join(values)}]", len(metrics))
        multi_ref = getattr(parsed, "multi_ref", "mean")
        parts.append(_Part(label, column, spec.compared_with, multi_ref, part_aspect, scale, weight))
        columns[spec.compared_with] = reference_column if spec.compared_with == "references" else source_column
    name = name or "+".join(part.label for part in parts)
    return Reward(parts, lambda: Scorer(list(metrics), **options), columns, name)


def _weights(metric: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(metric, str):
        return {metric: 1.0}
    if not isinstance(metric, Sequence | Mapping):
        raise InputError(f"reward: metric: expected a name, a list or weights by name, but got {metric!r:.60}")
    weights = dict(metric) if isinstance(metric, Mapping) else {text: 1 / len(metric) for text in metric}
    numbers = [value for value in weights.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    if not weights or len(numbers) < len(weights) or not all(0 < value < math.inf for value in numbers):
        raise InputError(f"reward: metric: expected metrics with weights above zero, but got {metric!r}")
    if len(weights) < len(metric):
        raise InputError(f"reward: metric: expected different metrics, but got {', '.join(metric)}")
    return weights


def _scale(spec: MetricSpec, options: Mapping[str, object], transform: object) -> str:
    """Scale of the scores: exp(−distance) for metrics with a temperature, rescaled by default where they can be."""
    names = {field.name for field in fields(spec.options_class)}
    similarity = "temperature" in names and not options.get("rescale")
    if transform not in (None, "log"):
        raise InputError(f"{spec.name}: transform: expected 'log' or None, but got {transform!r}")
    if transform == "log" and not similarity:
        raise InputError(f"{spec.name}: transform: expected None, but got 'log', which needs exp(−distance) as score")
    if similarity:
        return transform or "similarity"
    return "rescaled" if "rescale" in names else "learned"


def _check_aspect(spec: MetricSpec, aspect: object, options: Mapping[str, object]) -> str | None:
    if aspect is None:
        return None
    from movers.quality.aspects import ASPECTS

    known = (*ASPECTS, "likelihood") if options.get("lm") else ASPECTS
    if spec.compared_with != "sources" or aspect not in known:
        hint = "" if options.get("lm") else " (likelihood: only with lm)"
        raise InputError(
            f"{spec.name}: aspect: expected None, or {', '.join(known)} of summary quality{hint}, but got {aspect!r}"
        )
    return str(aspect)


# ---------------------------------------------------------------------------------------------------------------------
# A generator's own embeddings


class EmbeddingReward:
    """F1 on the token embeddings (lowest layer) of the model that is being trained (Jin & Gildea 2022), in 0–1.

    Called with keywords, as TRL's trainers do, it returns a list; `score_texts` and `score_ids` return tensors.

    Parameters
    ----------
    model : transformers model, or its folder or Hub id
        Its input embeddings are read at every call, so that they may be trained too.
    alignment : {"hungarian", "emd", "greedy"}
        F_disc, F_cont or F_BERT of Jin & Gildea 2022.
    tokenizer : optional
        For texts; that of the model's folder if the model was given by name. Ids need none.
    reference_column : str
        Column with one reference or several per row, when called by a trainer.
    threads : int, optional
        Threads that align; all processors by default.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=20, eos_token_id=0, bos_token_id=0)
    >>> reward = embedding_reward(transformers.GPT2LMHeadModel(config))
    >>> reward.score_ids([[3, 4, 5, 0], [3, 3, 3, 0]], [[5, 3, 4], [5, 3, 4]]).tolist()[0]
    1.0
    """

    lower = 0.0

    def __init__(
        self,
        model: PreTrainedModel | str,
        alignment: TensorAlignment = "hungarian",
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        reference_column: str = "reference",
        threads: int | None = None,
    ) -> None:
        check_choice("embedding_reward", "alignment", alignment, ("hungarian", "emd", "greedy"))
        if isinstance(model, str):
            from transformers import AutoModel, AutoTokenizer

            tokenizer = tokenizer or AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            model = AutoModel.from_pretrained(model, trust_remote_code=False, weights_only=True)
        self._model, self._tokenizer, self._alignment = model, tokenizer, alignment
        self._column, self._threads = reference_column, threads
        self._special = set(getattr(tokenizer, "all_special_ids", None) or ())
        for name in () if self._special else ("pad", "bos", "eos", "decoder_start"):
            ids = getattr(model.config, f"{name}_token_id", None)
            self._special.update(ids if isinstance(ids, list) else [ids])
        self.encode = lru_cache(1 << 16)(self._encode)  # the same references come again
        self.__name__ = f"embedding_{alignment}"

    def __call__(
        self, *, completions: object, completion_ids: Sequence[Sequence[int]] | None = None, **columns: object
    ) -> list[float | None]:
        """One reward per completion; None where the row has no reference. `completion_ids` save tokenizing."""
        texts = _completions(self.__name__, completions)
        groups = _column(self.__name__, "references", self._column, columns, len(texts))
        pairs = [(row, reference) for row, group in enumerate(groups) if _has_words(texts[row]) for reference in group]
        rewards: list[float | None] = [self.lower if group else None for group in groups]
        ids = [self.encode(texts[row]) if completion_ids is None else completion_ids[row] for row, _ in pairs]
        scores = self.score_ids(ids, [self.encode(reference) for _, reference in pairs]).tolist() if pairs else []
        for (row, _), value in zip(pairs, scores, strict=True):
            rewards[row] = max(rewards[row] or self.lower, value)
        return rewards

    def score_texts(self, completions: Sequence[str], references: Sequence[str]) -> Tensor:
        """Rewards (B,) of texts; a text without words earns 0."""
        import torch

        scores = self.score_ids([self.encode(text) for text in completions], [self.encode(text) for text in references])
        return torch.where(torch.tensor([_has_words(text) for text in completions]).to(scores.device), scores, 0.0)

    def score_ids(
        self, completions: Sequence[Sequence[int]] | Tensor, references: Sequence[Sequence[int]] | Tensor
    ) -> Tensor:
        """Rewards (B,) of token ids, as lists or padded tensors; special tokens carry no mass."""
        import torch

        with torch.no_grad():
            sides = *self._embed(completions), *self._embed(references)
            return bertscore_tensors(*sides, alignment=self._alignment, threads=self._threads)[2].clamp_min(self.lower)

    def _encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens."""
        if self._tokenizer is None:
            raise InputError(f"{self.__name__}: tokenizer: expected one for texts, but got None")
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _embed(self, ids: Sequence[Sequence[int]] | Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (B, n, d) and mask (B, n)."""
        import torch

        table = self._model.get_input_embeddings().weight  # as it is now: it may be trained
        lists = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        rows = [torch.tensor([token for token in row if token not in self._special], dtype=torch.long) for row in lists]
        width = max(1, *map(len, rows))
        padded = torch.stack([torch.nn.functional.pad(row, (0, width - len(row))) for row in rows]).to(table.device)
        lengths = torch.tensor([len(row) for row in rows], device=table.device)
        return table[padded], torch.arange(width, device=table.device) < lengths[:, None]


embedding_reward = EmbeddingReward


# ---------------------------------------------------------------------------------------------------------------------
# Losses


def token_log_probs(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities (B, T) of tokens `ids` (B, T) under `logits` (B, T, V); logits[:, t] predict ids[:, t].

    >>> import torch
    >>> token_log_probs(torch.zeros(1, 2, 4), torch.tensor([[1, 3]])).exp().tolist()
    [[0.25, 0.25]]
    """
    import torch

    return -torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), ids, reduction="none")


def self_critical_loss(
    log_probs: Tensor,
    mask: Tensor,
    reward: Tensor | Sequence[float | None],
    baseline: Tensor | Sequence[float | None],
    *,
    per_token: bool = False,
) -> Tensor:
    """Mean over the batch of (baseline − reward) Σ_t log p(ŷ_t).

    Parameters
    ----------
    log_probs : (B, T)
        Log-probabilities of the sampled tokens, with gradient; values at masked positions do not matter.
    mask : (B, T)
        True (or 1) for the tokens of the sample, the end-of-sequence token included.
    reward, baseline : (B,)
        Rewards of the samples and of the greedily decoded outputs; constants. Rows where either is None or not a number
        do not count.
    per_token : bool
        Divide each row's sum by its number of tokens, so that long samples do not weigh more.

    Returns
    -------
    scalar tensor; 0 with a gradient of 0 if no row has a reward

    Examples
    --------
    >>> import torch
    >>> log_probs = torch.log(torch.tensor([[0.5, 0.5], [0.25, 1.0]]))
    >>> mask = torch.tensor([[1, 1], [1, 0]])
    >>> round(float(self_critical_loss(log_probs, mask, [0.9, 0.1], [0.4, 0.1])), 4)  # −0.5 · log 0.25 / 2 rows
    0.3466
    """
    import torch

    if log_probs.ndim != 2 or mask.shape != log_probs.shape:
        raise InputError(
            "self_critical_loss: log_probs, mask: expected two tensors of shape (B, T), "
            f"but got {tuple(log_probs.shape)} and {tuple(mask.shape)}"
        )
    advantage = _constants("baseline", baseline, log_probs) - _constants("reward", reward, log_probs)
    counted = torch.isfinite(advantage)
    products = torch.where(counted, advantage, 0.0) * _masked_sums(log_probs, mask, per_token)
    return products.sum() / counted.sum().clamp_min(1)


def likelihood_loss(log_probs: Tensor, mask: Tensor, *, per_token: bool = False) -> Tensor:
    """Mean over the batch of −Σ_t log p(y_t): L_MLE (Clark et al. 2019, Eq. 6), on the same scale as L_RL.

    >>> import torch
    >>> round(float(likelihood_loss(torch.full((1, 3), -2.0), torch.tensor([[1, 1, 0]]))), 4)
    4.0
    """
    return -_masked_sums(log_probs, mask, per_token).mean()


def mixed_loss(reward_loss: Tensor, likelihood: Tensor, weight: float) -> Tensor:
    """`weight` · L_RL + (1 − `weight`) · L_MLE: γ ≥ .97 in Clark et al. 2019 (Eq. 8), λ = .3 in Jin & Gildea 2022.

    >>> import torch
    >>> round(float(mixed_loss(torch.tensor(1.0), torch.tensor(2.0), 0.3)), 4)
    1.7
    """
    if not 0 <= weight <= 1:
        raise InputError(f"mixed_loss: weight: expected a number from 0 to 1, but got {weight!r}")
    return weight * reward_loss + (1 - weight) * likelihood


def _constants(name: str, values: Tensor | Sequence[float | None], like: Tensor) -> Tensor:
    import torch

    if not isinstance(values, torch.Tensor):
        values = torch.tensor([float("nan") if value is None else float(value) for value in values])
    if values.shape != like.shape[:1]:
        raise InputError(
            f"self_critical_loss: {name}: expected one number per row, {like.shape[0]}, but got {tuple(values.shape)}"
        )
    return values.detach().to(device=like.device, dtype=like.dtype)


def _masked_sums(log_probs: Tensor, mask: Tensor, per_token: bool) -> Tensor:
    sums = log_probs.masked_fill(~mask.bool(), 0.0).sum(dim=1)
    return sums / mask.sum(dim=1).clamp_min(1) if per_token else sums
