"""The cross-encoder of Bao et al. 2020: `[CLS] document [SEP] summary [SEP]` through a transformer.

For training both texts are cut in parallel to the window, as in the paper. For scoring nothing is cut unless asked for:
the document is read through windows, each beside the summary, and the best window counts.

This module imports torch; import it late.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from movers.encoders import load_encoder
from movers.encoders.load import find_device
from movers.encoders.static import StaticEncoder
from movers.encoders.windows import Window, batches, windows_over
from movers.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["CrossEncoder", "cut_in_parallel", "load_cross_encoder"]

Ids = list[int]
Batch = dict[str, Tensor]


def cut_in_parallel(document: int, summary: int, room: int) -> tuple[int, int]:
    """Tokens to keep of each text, in proportion to their lengths, at least one of each.

    >>> cut_in_parallel(900, 100, 100), cut_in_parallel(30, 20, 100)
    ((90, 10), (30, 20))
    """
    if document + summary <= room:
        return document, summary
    kept = min(summary, max(1, round(room * summary / (document + summary))))
    return min(document, room - kept), kept


class CrossEncoder(nn.Module):
    """A transformer with the paper's fully connected network (128 neurons) on its first token."""

    def __init__(
        self, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, window: int, hidden: int = 128
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.tokenizer = tokenizer
        self.window = window
        self.room = window - 3  # tokens of both texts beside the three special ones
        self.hidden = nn.Linear(int(transformer.config.hidden_size), hidden)
        self.output = nn.Linear(hidden, 1)

    def ids(self, text: str) -> Ids:
        """Token ids of a text, without special tokens."""
        return self.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]

    def batch(self, rows: Sequence[tuple[Ids, Ids]]) -> Batch:
        """(document, summary) rows with special tokens, padded."""
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        width = max(len(document) + len(summary) for document, summary in rows) + 3
        ids = torch.full((len(rows), width), self.tokenizer.pad_token_id or 0)
        mask, kinds = torch.zeros((2, len(rows), width), dtype=torch.long)
        for place, (document, summary) in enumerate(rows):
            row = [begin, *document, end, *summary, end]
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
            kinds[place, len(document) + 2 : len(row)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}

    def cut(self, document: str, summary: str) -> tuple[Ids, Ids]:
        """A row with both texts cut in parallel to the window."""
        return self.cut_ids(self.ids(document), self.ids(summary))

    def cut_ids(self, document: Ids, summary: Ids) -> tuple[Ids, Ids]:
        kept = cut_in_parallel(len(document), len(summary), self.room)
        return document[: kept[0]], summary[: kept[1]]

    def windows(self, document: Ids, summary: Ids) -> list[list[tuple[Ids, Ids]]]:
        """All of both texts: for each part of the summary the windows of the document, each beside that part."""
        # a summary that would leave the document less than half of the room is read in parts of that size
        step, rows = max(1, self.room // 2), []
        for begin in range(0, max(1, len(summary)), step):
            part = summary[begin : begin + step]
            windows = windows_over(0, len(document), self.room - len(part))
            rows.append([(document[window.begin : window.end], part) for window in windows])
        return rows

    def forward(self, batch: Batch) -> Tensor:
        """(B,) logits."""
        return self.head(self.first(batch))

    def first(self, batch: Batch) -> Tensor:
        """(B, d) vectors of the first token."""
        inputs = {name: value.to(self.output.weight.device) for name, value in batch.items()}
        if getattr(self.transformer.config, "type_vocab_size", 0) < 2:
            inputs.pop("token_type_ids")
        return self.transformer(**inputs).last_hidden_state[:, 0].float()

    def head(self, first: Tensor) -> Tensor:
        """(B,) logits of (B, d) vectors."""
        return self.output(torch.relu(self.hidden(first))).squeeze(-1)

    def score_rows(self, rows: Sequence[tuple[Ids, Ids]], batch_size: int | None = None) -> list[float]:
        """Scores in [0, 1] of (document, summary) rows; `batch_size` rows per forward pass."""
        budget = 2048 if self.output.weight.device.type == "cpu" else 32768
        lengths = [len(document) + len(summary) for document, summary in rows]
        longest_first = sorted(range(len(rows)), key=lambda place: -lengths[place])
        scores = [0.0] * len(rows)
        windows = (Window(place, 0, lengths[place], 0, lengths[place]) for place in longest_first)
        for places in ([window.text for window in batch] for batch in batches(windows, 3, budget, batch_size)):
            with torch.inference_mode():
                found = self(self.batch([rows[place] for place in places])).double().sigmoid().tolist()
            for place, score in zip(places, found, strict=True):
                scores[place] = score
        return scores

    def save_parts(self, folder: Path) -> None:
        """Write what is needed beside the weights to build it again."""
        self.transformer.config.to_json_file(folder / "transformer.json", use_diff=False)
        self.tokenizer.save_pretrained(folder / "tokenizer")

    def placed(self, device: str | None, dtype: str) -> CrossEncoder:
        """Itself on a device, the transformer in a precision; a copy if that differs from where it is."""
        target, precision, here = torch.device(find_device(device)), getattr(torch, dtype), self.output.weight.device
        stays = target.type == here.type and target.index in (None, here.index)
        if stays and self.transformer.dtype == precision:
            return self
        copied = copy.deepcopy(self).to(target)
        copied.transformer.to(precision)
        return copied


def load_cross_encoder(name: str, window: int | None = None) -> CrossEncoder:
    """A cross-encoder on a copy of the named transformer; `name` may be the folder of a saved one."""
    import transformers

    folder = Path(name)
    if (folder / "transformer.json").is_file():
        config = transformers.AutoConfig.from_pretrained(folder / "transformer.json", trust_remote_code=False)
        model = transformers.AutoModel.from_config(config, trust_remote_code=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer", trust_remote_code=False)
        limit = int(getattr(config, "max_position_embeddings", 512))
    else:
        encoder = load_encoder(name)
        if isinstance(encoder, StaticEncoder):
            raise InputError(f"train quality: unit: 'cross' needs a transformer as encoder, but got {name!r}")
        model, tokenizer = copy.deepcopy((encoder.model, encoder.objects[1]))
        limit = encoder.max_window
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise InputError(f"train quality: unit: 'cross' needs an encoder with [CLS] and [SEP], but got {name!r}")
    model.requires_grad_(True)
    chosen = limit if window is None else window
    if not 16 <= chosen <= limit:
        raise InputError(f"train quality: window: expected 16 to {limit} tokens, but got {chosen}")
    return CrossEncoder(model, tokenizer, chosen)
