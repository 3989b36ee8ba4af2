"""The papers' runs: linearised graphs, the pointer network, and judging sheets, tested on made-up data."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tiny import ROOT

import movers


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks import each other by their place below `benchmarks`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def load(name: str) -> ModuleType:
    return importlib.import_module(f"rewards.{name}")


@pytest.mark.parametrize(
    ("amr", "expected"),
    [
        ("(c / chapter\n  :mod 1)", "chapter :mod 1"),
        (
            "(s / see-01 :ARG0 (i / i) :ARG1 (p / picture :wiki - :mod (m / red)) :ARG2 i)",
            "see :ARG0 i :ARG1 ( picture :mod red ) :ARG2 i",
        ),
        ('(b / book :name (n / name :op1 "True" :op2 "Stories"))', "book :name ( name :op1 True :op2 Stories )"),
    ],
)
def test_graphs_are_linearised_depth_first(amr: str, expected: str) -> None:
    data = load("amr_to_text.data")
    assert data.linearise(amr) == expected


def test_linearised_graphs_have_as_many_opening_as_closing_brackets() -> None:
    data = load("amr_to_text.data")
    deep = "(a / and :op1 (b / be :ARG0 (c / cat) :ARG1 (d / dog :mod (o / old))) :op2 (r / run :ARG0 c))"
    text = data.linearise(deep)
    assert text.count("(") == text.count(")") and text.endswith(":op2 ( run :ARG0 cat )")


@pytest.fixture
def small() -> object:
    """An untrained Transformer that knows the words of two sentences."""
    data, scratch = load("amr_to_text.data"), load("amr_to_text.scratch")
    pairs = [
        data.Pair("1", "see :ARG0 i :ARG1 ( picture :mod red )", "I saw a red picture."),
        data.Pair("2", "sleep :ARG0 fox", "The fox sleeps."),
    ]
    return scratch.SmallTransformer(pairs, size=16, layers=2, dropout=0.5)


GRAPHS = ["see :ARG0 i :ARG1 ( picture :mod red )", "sleep :ARG0 fox", "sleep :time night"]  # the last has a new role


@torch.no_grad()
def test_the_small_transformer_writes_one_token_at_a_time_what_it_finds_likely(small: Any) -> None:
    """Greedy outputs are the best tokens of one pass over the whole output, although padding and keys differ."""
    outputs = small.generate(small.read_prompts(GRAPHS), sample=False)
    small.model.eval()
    for graph, output in zip(GRAPHS, outputs, strict=True):
        alone = small.read_prompts([graph])
        ids, mask = small.pad([output])
        own = small.log_probs(alone, ids, mask)[0, : len(output)].tolist()
        others = []
        for place in range(len(output)):
            rows = torch.tensor([[*output[:place], word] for word in range(small.model.words)])
            repeated = small.read_prompts([graph] * len(rows))
            others.append(float(small.log_probs(repeated, rows, torch.ones_like(rows))[:, place].max()))
            if place == 3:
                break
        assert own[: len(others)] == pytest.approx(others, abs=1e-4)


def test_the_small_transformer_reads_its_own_sentences_and_its_vectors_are_those_of_wordllama(small: Any) -> None:
    sentence = "I saw a red picture."
    ids = small.encode_sentence(sentence)
    assert small.decode([ids]) == [sentence] and max(ids) < small.model.words
    vector, _ = movers.load_encoder("wordllama").vectors(["fox"])
    assert small.table[small.encode_sentence("fox")].mean(0).tolist() == pytest.approx(vector[0].tolist(), abs=1e-5)
    assert small.model.words < small.encode_graph(":time")[0]  # never seen: read by its pieces, never written


def test_only_the_start_of_a_seed_decides_its_weights(small: Any) -> None:
    drawn = []
    for seed in (1, 2, 1):
        small.restart(seed)
        drawn.append(small.trained["leave.weight"].detach().clone())
    assert torch.equal(drawn[0], drawn[2]) and not torch.equal(drawn[0], drawn[1])


@pytest.fixture
def network() -> ModuleType:
    return load("summarization.network")


def made(network: ModuleType) -> tuple[object, object]:
    torch.manual_seed(0)
    model = network.PointerGenerator(torch.randn(12, 6), hidden=5).eval().requires_grad_(False)
    documents = model.encode(torch.tensor([[4, 5, 12, 13], [6, 12, 0, 0]]), torch.tensor([4, 2]), extra=2)
    return model, documents


def test_the_pointer_reaches_words_that_only_the_document_has(network: ModuleType) -> None:
    model, documents = made(network)
    scores, _ = model.step(documents, torch.tensor([[2], [2]]), documents.state)
    chances = scores.exp()[:, 0].detach()
    assert chances.sum(-1).tolist() == pytest.approx([1.0, 1.0], abs=1e-4)
    assert chances[0, 13] > 1e-4 and chances[1, 13] < 1e-6  # the second document has no second word of its own


def test_teacher_forcing_gives_what_single_steps_give(network: ModuleType) -> None:
    model, documents = made(network)
    outputs = [[7, 12], [8]]
    found, mask = model.log_probs(documents, outputs)
    assert mask.tolist() == [[1, 1, 1], [1, 1, 0]]
    last, state, alone = torch.tensor([[2], [2]]), documents.state, []
    for words in ((7, 8), (12, network.END)):
        scores, state = model.step(documents, last, state)
        alone.append([float(scores[row, 0, word].detach()) for row, word in enumerate(words)])
        last = torch.tensor(words)[:, None]
    assert found.detach()[:, :2].T.tolist() == [pytest.approx(step, abs=1e-5) for step in alone]


def test_a_wide_beam_finds_the_best_output_of_all(network: ModuleType) -> None:
    model, documents = made(network)
    allowed = [number for number in range(14) if number not in (network.PAD, network.BEGIN, network.UNKNOWN)]
    candidates = [
        [*row] for size in (1, 2) for row in itertools.product(allowed, repeat=size) if network.END not in row
    ]
    best = []
    for row in (0, 1):
        one = model.encode(documents.ids[row : row + 1], documents.mask[row : row + 1].sum(1), extra=2)
        scored = []
        for candidate in candidates:
            log_probs, mask = model.log_probs(one, [candidate])
            scored.append((float((log_probs * mask).sum()) / len([*candidate, network.END]), candidate))
        best.append(max(scored)[1])
    assert model.beam(documents, longest=3, shortest=1, width=1800) == best  # so wide that nothing is dropped
    assert model.beam(documents, longest=3, shortest=0, width=1) == model.generate(documents, False, 3)


SUMMARIES = {
    "rouge": [f"rouge summary {number}" for number in range(30)],
    "wms": [f"wms summary {number}" for number in range(30)],
    "sms": [f"sms summary {number}" if number % 3 else f"rouge summary {number}" for number in range(30)],
    "swms": [f"swms summary {number}" for number in range(30)],
}


def answered(sheet: str, prefers: str) -> str:
    """A judge who prefers the summaries of one model, finds all equally focused and leaves coherence open."""
    lines = sheet.strip().splitlines()
    found = [lines[0]]
    for line in lines[1:]:
        item, first, second = line.split(",")[:3]
        answer = "A" if first.startswith(prefers) else "B"
        found.append(f"{item},{first},{second},{answer},,=,{answer}")
    return "\n".join(found)


def test_sheets_are_blind_and_their_analysis_counts_what_judges_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheets = load("summarization.sheets")
    made_sheets, key = sheets.make(SUMMARIES, samples=20, seed=1)
    assert [len(text.strip().splitlines()) - 1 for text in made_sheets.values()] == [20, 20, 20]
    sides = [entry["baseline"] for entry in key.values()]
    assert 15 < sides.count("A") < 45  # in random order
    assert made_sheets["wms"].splitlines()[0] == "item,summary A,summary B,non-redundancy,coherence,focus,overall"
    (tmp_path / "key.json").write_text(json.dumps(key))
    for judge in range(2):
        (tmp_path / f"{judge}.csv").write_text(answered(made_sheets["wms"], prefers="wms"))
    (tmp_path / "2.csv").write_text(answered(made_sheets["sms"], prefers="rouge"))
    sheets.main(["analyse", str(tmp_path / "key.json"), *(str(tmp_path / f"{number}.csv") for number in range(3))])
    lines = capsys.readouterr().out.splitlines()
    cells = {tuple(line.split(" | ")[:2]): line.strip("| ").split(" | ")[2:] for line in lines}
    assert cells["| ROUGE-L against WMS", "non-redundancy"] == ["0", "40", "0", "100 %", "0.000"]
    assert cells["| ROUGE-L against WMS", "coherence"] == ["0", "0", "0", "50 %", "1.000"]
    assert cells["| ROUGE-L against WMS", "focus"] == ["0", "0", "40", "50 %", "1.000"]
    assert cells["| ROUGE-L against SMS", "overall"] == ["20", "0", "0", "0 %", "0.000"]


def test_the_sign_test_leaves_ties_out() -> None:
    sheets = load("summarization.sheets")
    # 8 of 10 decided: 2 · (45 + 10 + 1) / 1024
    assert sheets.Count("wms", "overall", 2, 8, 90).p == pytest.approx(112 / 1024)


def test_an_answer_that_is_none_of_the_three_is_named() -> None:
    sheets = load("summarization.sheets")
    _, key = sheets.make(SUMMARIES, samples=2, seed=1)
    item = next(iter(key))
    with pytest.raises(movers.InputError, match=rf"focus\[{item}\]: expected A, B or =, but got 'C'"):
        sheets.analyse(key, [{"item": item, "focus": "C"}])
    with pytest.raises(movers.InputError, match="expected an item of the key, but got '9-999'"):
        sheets.analyse(key, [{"item": "9-999"}])


def test_the_report_says_what_was_measured_and_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = load("report")
    monkeypatch.setattr(report, "HERE", tmp_path)
    folder = tmp_path / "results" / "summarization"
    folder.mkdir(parents=True)
    columns = ("rouge1", "rouge2", "rougeL", "wms", "sms", "swms")
    for row, seed, value in (("mle", 0, 0.25), ("mle", 1, 0.35), ("sms", 0, 0.5), ("sms-1e-5", 1, 0.35)):
        result = {
            "sizes": {"train": {"pairs": 7, "document": 80.0, "summary": 30.0}},
            "test": dict.fromkeys(columns, value),
            "each": {name: [value] * 20 for name in columns},
            "samples": {"3": f"summary by {row}"},
        }
        (folder / f"{row}-{seed}.json").write_text(json.dumps(result))
    text = "\n".join(report.summarization())
    assert "**Not finished:** MLE + ROUGE-L of seed 0" in text and "| MLE + WMS | not finished |" in text
    assert "| MLE | 30.00 ± 7.07 |" in text and "| MLE + SMS | 50.00 |" in text
    assert "| MLE + SMS | +25.00 (p = 0.0001) |" in text and "| MLE + SMS, rate 1e-5 | +0.00 (p = 1.0000) |" in text
    assert "No system has finished yet." in "\n".join(report.amr_to_text(tmp_path, report.AMR[0]))
    assert "Not finished." in "\n".join(report.grpo()) and "Not measured." in "\n".join(report.cost())
