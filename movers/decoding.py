"""Minimum Bayes risk (MBR) decoding: of several sampled texts, the one that is most like the others.

The expected utility of a sample y is estimated by the other samples, as pseudo-references r with weights w:
Σ_r w_r · u(y, r) / Σ_r w_r, where the utility u is a metric.

References: S. Kumar, W. Byrne. Minimum Bayes-Risk Decoding for Statistical Machine Translation. NAACL 2004. —
B. Eikema, W. Aziz. Sampling-Based Approximations to Minimum Bayes Risk Decoding for Neural Machine Translation. EMNLP
2022 (coarse to fine). — Y. Jinnai et al. Model-Based Minimum Bayes Risk Decoding. ICML 2024 (`log_probs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.all_pairs import AllPairs, locate
from movers.errors import InputError, TextError
from movers.inputs import check_positive, check_text_groups
from movers.io import progress_bar
from movers.scorer import Scorer
from movers.threads import chunks, solver_pool

__all__ = ["MbrChoice", "mbr"]

Numbers = Sequence[Sequence[float]]
_BLOCK = 16  # prompts whose samples are encoded together, in batches of texts of similar length


@dataclass(frozen=True)
class MbrChoice:
    """The chosen sample of a prompt."""

    text: str
    index: int  # in the samples of the prompt
    utilities: list[float | None]  # expected utility of each sample; None if the prefilter dropped it


class _Prompt(NamedTuple):
    """Samples of a prompt, and what they are compared with."""

    samples: list[str]
    references: list[str]
    weights: NDArray[np.float64]  # of the references; they sum to 1

    def only(self, places: list[int]) -> _Prompt:
        """The prompt with these of its samples as references."""
        weights = self.weights[places] if self.weights[places].any() else np.ones(len(places))
        return self._replace(references=[self.samples[place] for place in places], weights=weights / weights.sum())


def mbr(
    metric: str,
    samples: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]] | None = None,
    weights: Numbers | None = None,
    *,
    log_probs: Numbers | None = None,
    prefilter: str | None = None,
    keep: int = 4,
    **options: object,
) -> list[MbrChoice]:
    """For each prompt, choose the sample with the highest expected utility (the first, if several have it).

    Parameters
    ----------
    metric : str, with its `options`
        The utility, `name` or `name[key=value,…]`: one of the six metrics that compare with references.
    samples : one list of texts per prompt
    references : one list of texts per prompt, by default the samples
        Pseudo-references: texts sampled from the same model that are not candidates themselves.
    weights, log_probs : one list of numbers per prompt, one per reference, by default all equal
        `log_probs` are those of whole texts under the model, as weights instead of frequencies among the samples: a
        text that was sampled twice counts once.
    prefilter : str
        A cheaper metric, such as `"wms"`, that keeps the best `keep` samples of a prompt. Only these are encoded and
        compared by `metric`: with the `references`, or if there are none with each other. Its own options stand in
        brackets; `options` are those of `metric` alone.

    >>> samples = [["Snow melts in spring.", "In spring, snow melts.", "Shares fell on Monday."]]
    >>> [choice] = mbr("wms", samples)
    >>> choice.text, choice.index, [round(utility, 1) for utility in choice.utilities]
    ('Snow melts in spring.', 0, [0.8, 0.8, 0.6])
    """
    names = [metric] if prefilter is None else [metric, prefilter]
    scorers = [Scorer(name, **(options if name is metric else {})) for name in names]
    for scorer in scorers:
        ((_, spec),) = scorer.specs.items()
        if spec.compared_with != "references" or scorer.needs_corpus:
            expected = "a metric that compares with references, without idf='corpus'"
            raise InputError(f"mbr: metric: expected {expected}, but got {spec.name}")
    check_positive("mbr", "keep", keep, none_allowed=False)
    prompts = _prompts(samples, references, weights, log_probs)
    run = scorers[0].options[metric].run
    choices: list[MbrChoice] = []
    bar = progress_bar(len(prompts), desc=f"mbr: {metric}", unit=" prompts", progress=run.progress)
    with solver_pool(run.threads) as pool, bar:
        for block in chunks(prompts, _BLOCK):
            texts = list(dict.fromkeys(text for prompt in block for text in (*prompt.samples, *prompt.references)))
            metrics = [AllPairs(next(iter(scorer.metrics.values())), texts, pool) for scorer in scorers]
            candidates = [list(range(len(prompt.samples))) for prompt in block]
            try:
                if prefilter is not None:
                    coarse = _utilities(metrics[1], block, candidates)
                    candidates = [sorted(np.argsort(-each, kind="stable")[:keep].tolist()) for each in coarse]
                pairs = zip(block, candidates, strict=True)
                compared = block if references is not None else [prompt.only(places) for prompt, places in pairs]
                fine = _utilities(metrics[0], compared, candidates)
                for prompt, places, values in zip(block, candidates, fine, strict=True):
                    utilities = dict(zip(places, values.tolist(), strict=True))
                    best = max(places, key=utilities.__getitem__)
                    by_sample = [utilities.get(place) for place in range(len(prompt.samples))]
                    choices.append(MbrChoice(prompt.samples[best], best, by_sample))
                    bar.update(1)
            except TextError as error:
                columns = {name: [getattr(prompt, name) for prompt in prompts] for name in ("samples", "references")}
                raise locate("mbr", error, columns) from None
    return choices


def _utilities(
    metric: AllPairs, prompts: Sequence[_Prompt], candidates: Sequence[Sequence[int]]
) -> Iterator[NDArray[np.float64]]:
    """The expected utility of each candidate, for each prompt; every distinct text of all prompts is read once."""
    sides = [
        ([prompt.samples[place] for place in places], prompt.references)
        for prompt, places in zip(prompts, candidates, strict=True)
    ]
    distinct = list(dict.fromkeys(text for both in sides for side in both for text in side))
    bags = dict(zip(distinct, metric.read(distinct), strict=True))
    for (texts, references), prompt in zip(sides, prompts, strict=True):
        # Of texts that occur more than once one row and one column is computed.
        rows, columns = list(dict.fromkeys(texts)), list(dict.fromkeys(references))
        first = [bags[text] for text in rows]
        matrix = metric.compare(first, first if rows == columns else [bags[text] for text in columns])
        weights = np.bincount([columns.index(text) for text in references], prompt.weights, len(columns))
        utilities = dict(zip(rows, matrix @ weights, strict=True))
        yield np.array([utilities[text] for text in texts])


def _prompts(samples: object, references: object, weights: Numbers | None, log_probs: Numbers | None) -> list[_Prompt]:
    """The prompts, validated."""
    groups = check_text_groups("mbr", "samples", samples)
    if not groups or (isinstance(samples, Sequence) and isinstance(samples[0], str)):
        got = "a list of texts" if groups else "an empty list"
        raise InputError(f"mbr: samples: expected a list of texts for each prompt, but got {got}")
    compared = groups if references is None else check_text_groups("mbr", "references", references)
    if weights is not None and log_probs is not None:
        raise InputError("mbr: log_probs: expected weights or log_probs, but got both")
    name, numbers = ("weights", weights) if log_probs is None else ("log_probs", log_probs)
    for argument, rows in (("references", compared), (name, numbers)):
        if rows is not None and (not hasattr(rows, "__len__") or len(rows) != len(groups)):
            count = len(rows) if hasattr(rows, "__len__") else repr(rows)
            raise InputError(f"mbr: {argument}: expected one list per prompt ({len(groups)}), but got {count}")
    prompts = []
    for row, (texts, others) in enumerate(zip(groups, compared, strict=True)):
        values = [1.0] * len(others) if numbers is None else numbers[row]
        try:
            masses = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):  # no numbers, or lists of different lengths
            masses = np.zeros(0)
        is_mass = log_probs is not None or (bool((masses >= 0).all()) and masses.sum() > 0)
        if masses.shape != (len(others),) or not np.isfinite(masses).all() or not is_mass:
            expected = f"{len(others)} finite numbers" + " of at least 0, not all 0" * (log_probs is None)
            raise InputError(f"mbr: {name}[{row}]: expected {expected}, but got {values!r:.60}")
        if log_probs is not None:
            seen = [text in others[:place] for place, text in enumerate(others)]
            masses = np.where(seen, 0.0, np.exp(masses - masses.max()))
        prompts.append(_Prompt(texts, others, masses / masses.sum()))
    return prompts
