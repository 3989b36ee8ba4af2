"""The pointer-generator of Clark et al. 2019 (§5, A.3): two-layer biLSTM encoder, LSTM decoder, attention, pointer.

Attention is additive (Bahdanau et al. 2015) and the pointer that of See et al. 2017. Attention reads the state of the
decoder and is not fed back into it, so that teacher forcing computes all steps at once: a deviation that saves time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

PAD, UNKNOWN, BEGIN, END = range(4)


@dataclass(frozen=True)
class Encoded:
    """Documents as the decoder needs them; words that only a document has are numbered after the vocabulary."""

    memory: Tensor  # (B, S, 2h)
    keys: Tensor  # (B, S, h)
    ids: Tensor  # (B, S)
    mask: Tensor  # (B, S)
    state: tuple[Tensor, Tensor]  # (layers, B, h)
    extra: int

    def repeat(self, times: int) -> Encoded:
        """Every document `times` times in a row."""
        parts = (self.memory, self.keys, self.ids, self.mask)
        memory, keys, ids, mask = (part.repeat_interleave(times, 0) for part in parts)
        hidden, cell = (part.repeat_interleave(times, 1) for part in self.state)
        return Encoded(memory, keys, ids, mask, (hidden, cell), self.extra)


class PointerGenerator(nn.Module):
    """Sizes: V words, embeddings of e numbers, h = 128 hidden units per direction."""

    def __init__(self, vectors: Tensor, hidden: int = 128, layers: int = 2) -> None:
        super().__init__()
        size = vectors.shape[1]
        self.words = len(vectors)
        self.layers, self.hidden = layers, hidden
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=PAD)
        self.encoder = nn.LSTM(size, hidden, layers, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(size, hidden, layers, batch_first=True)
        self.bridge = nn.Linear(2 * hidden, 2 * hidden)
        self.key, self.query = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, hidden)
        self.energy = nn.Linear(hidden, 1, bias=False)
        self.reduce = nn.Linear(3 * hidden, size)
        self.out = nn.Linear(size, self.words)
        self.switch = nn.Linear(3 * hidden + size, 1)

    def encode(self, ids: Tensor, lengths: Tensor, extra: int) -> Encoded:
        known = ids.masked_fill(ids >= self.words, UNKNOWN)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(known), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        memory, (hidden, _) = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True, total_length=ids.shape[1])
        ends = hidden.view(self.layers, 2, len(ids), self.hidden).transpose(1, 2).flatten(2)  # (layers, B, 2h)
        first, second = self.bridge(ends).tanh().chunk(2, -1)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        return Encoded(memory, self.key(memory), ids, mask, (first.contiguous(), second.contiguous()), extra)

    def step(
        self, documents: Encoded, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Log-probabilities (B, T, V + extra) after inputs (B, T), and the decoder's new state."""
        embedded = self.embedding(inputs.masked_fill(inputs >= self.words, UNKNOWN))
        hidden, state = self.decoder(embedded, state)
        energy = self.energy((documents.keys[:, None] + self.query(hidden)[:, :, None]).tanh())[..., 0]  # (B, T, S)
        attention = energy.masked_fill(~documents.mask[:, None], -1e9).softmax(-1)
        context = attention @ documents.memory
        joined = torch.cat([hidden, context], -1)
        generate = torch.sigmoid(self.switch(torch.cat([joined, embedded], -1)))
        vocabulary = self.out(self.reduce(joined)).softmax(-1) * generate
        whole = torch.nn.functional.pad(vocabulary, (0, documents.extra))
        places = documents.ids[:, None].expand(-1, inputs.shape[1], -1)
        whole = whole.scatter_add(2, places, attention * (1 - generate))
        return (whole + 1e-9).log(), state

    def log_probs(self, documents: Encoded, outputs: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B, T) of outputs with their end, and the mask (B, T)."""
        rows = [[*row, END] for row in outputs]
        width = max(map(len, rows))
        target = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        inputs = torch.cat([torch.full((len(rows), 1), BEGIN), target[:, :-1]], 1)
        scores, _ = self.step(documents, inputs, documents.state)
        return scores.gather(2, target[..., None])[..., 0], mask

    @torch.no_grad()
    def generate(self, documents: Encoded, sample: bool, longest: int) -> list[list[int]]:
        """Sampled or greedy outputs, without end."""
        rows = len(documents.ids)
        last, state = torch.full((rows, 1), BEGIN), documents.state
        outputs: list[list[int]] = [[] for _ in range(rows)]
        running = [True] * rows
        for _ in range(longest):
            scores, state = self.step(documents, last, state)
            scores[:, :, [PAD, BEGIN, UNKNOWN]] = -1e9
            chosen = torch.multinomial(scores[:, 0].exp(), 1) if sample else scores[:, 0].argmax(-1, keepdim=True)
            for row, word in enumerate(chosen[:, 0].tolist()):
                running[row] = running[row] and word != END
                if running[row]:
                    outputs[row].append(word)
            if not any(running):
                break
            last = chosen
        return outputs

    @torch.no_grad()
    def beam(self, documents: Encoded, longest: int, shortest: int, width: int = 5) -> list[list[int]]:
        """The best of `width` beams per document by mean log-probability, as See et al. choose."""
        rows = len(documents.ids)
        wide = documents.repeat(width)
        state = wide.state
        last = torch.full((rows * width, 1), BEGIN)
        totals = torch.full((rows, width), -1e9)
        totals[:, 0] = 0.0
        prefixes: list[list[int]] = [[] for _ in range(rows * width)]
        ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(rows)]
        for step in range(longest):
            scores, state = self.step(wide, last, state)
            scores = scores[:, 0]
            scores[:, [PAD, BEGIN, UNKNOWN]] = -1e9
            if step < shortest:
                scores[:, END] = -1e9
            words = scores.shape[1]
            best = (totals.view(-1, 1) + scores).view(rows, -1).topk(2 * width)
            sources: list[int] = []
            chosen: list[int] = []
            sums: list[float] = []
            for row in range(rows):
                count = 0
                pairs = zip(best.values[row].tolist(), best.indices[row].tolist(), strict=True)
                for rank, (total, place) in enumerate(pairs):
                    source, word = row * width + place // words, place % words
                    if word == END:
                        if rank < width:
                            ended[row].append((total / (step + 1), prefixes[source]))
                    elif count < width:
                        sources.append(source)
                        chosen.append(word)
                        sums.append(total)
                        count += 1
            prefixes = [[*prefixes[source], word] for source, word in zip(sources, chosen, strict=True)]
            order = torch.tensor(sources)
            state = (state[0][:, order].contiguous(), state[1][:, order].contiguous())
            last, totals = torch.tensor(chosen)[:, None], torch.tensor(sums).view(rows, width)
            if all(len(items) >= width for items in ended):
                break
        for row in range(rows):
            place = row * width
            ended[row] += [(float(totals[row, 0]) / longest, prefixes[place])] if not ended[row] else []
        return [max(items)[1] for items in ended]
