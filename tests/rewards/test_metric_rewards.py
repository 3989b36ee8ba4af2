"""Metrics as rewards: what TRL hands over and gets back, the scale, the lower bound, what training could exploit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

import movers
from movers.errors import InputError
from movers.registry import METRICS
from movers.rewards import Reward, reward
from movers.rewards.scale import LOWER_BOUNDS
from movers.scores.rescaling import unrelated_texts

PAIRWISE = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
SENTENCES = {
    "A man in suburban Boston is selling snow online.": "A man near Boston sells snow to people in warmer states.",
    "The cat sat on the mat.": "A cat was sitting on a mat.",
    "Six officers were suspended.": "Six officers have been suspended with pay while the authorities investigate.",
    "The boa swallowed an animal.": "It was a picture of a boa constrictor in the act of swallowing an animal.",
    "good movie": "I enjoyed the film a lot",
}
UNRELATED = unrelated_texts()[:12]
WORDLESS = ["", "   \n", "...", "?! — …", "***"]


@pytest.fixture(scope="module")
def rewards() -> Iterator[dict[str, Reward]]:
    yield {name: reward(name) for name in PAIRWISE}


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_completion_without_a_word_earns_the_lower_bound_and_nothing_earns_less(
    rewards: dict[str, Reward], name: str
) -> None:
    reference = "For $89, he will ship six pounds of snow in an insulated box."
    other = ["the", "42", "a a a", "The court adjourned.", "snow " * 30, "Он продаёт снег.", "x", "😀 snow"]
    blank = rewards[name].score(WORDLESS, [reference] * len(WORDLESS))
    assert blank == [rewards[name].lower] * len(WORDLESS)
    found = rewards[name].score(other, [reference] * len(other))
    assert all(value is not None and value >= rewards[name].lower for value in found)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_good_sentence_earns_at_least_as_much_as_its_repetition(rewards: dict[str, Reward], name: str) -> None:
    references = list(SENTENCES.values())
    once = rewards[name].score(list(SENTENCES), references)
    for count in (2, 3, 7):
        again = rewards[name].score([" ".join([text] * count) for text in SENTENCES], references)
        assert all(first >= second for first, second in zip(once, again, strict=True))


def test_without_its_rule_a_metric_would_pay_for_repetition() -> None:
    text, reference = list(SENTENCES.items())[3]
    plain = movers.bertscore_hungarian([text, f"{text} {text}"], [reference] * 2)["scores"]
    assert plain[1] > plain[0]


def test_a_repetition_that_the_reference_has_too_is_no_fault(rewards: dict[str, Reward]) -> None:
    song = "Row the boat. Row the boat."
    found = rewards["bertscore_hungarian"].score([song, "Row the boat."], [song] * 2)
    assert found[0] == pytest.approx(1.0, abs=1e-5) and found[0] > found[1]


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_good_sentence_earns_more_than_stop_words_and_unrelated_texts(rewards: dict[str, Reward], name: str) -> None:
    text, reference = next(iter(SENTENCES.items()))
    good, stop, unrelated = rewards[name].score([text, "the", UNRELATED[0]], [reference] * 3)
    assert good > stop and good > unrelated


@pytest.mark.parametrize("name", PAIRWISE)
def test_very_long_and_very_short_completions_have_finite_rewards(rewards: dict[str, Reward], name: str) -> None:
    long = " ".join(f"snow{number % 700} melts" for number in range(1000))
    found = rewards[name].score([long, "snow " * 900, "snow"], ["Snow melts in spring."] * 3)
    assert all(math.isfinite(value) for value in found)


@pytest.mark.parametrize("name", PAIRWISE)
def test_unrelated_texts_and_equal_texts_are_where_the_scale_says(rewards: dict[str, Reward], name: str) -> None:
    pairs = [(first, second) for first in UNRELATED for second in UNRELATED if first < second]
    found = rewards[name].score([first for first, _ in pairs], [second for _, second in pairs])
    expected = math.exp(-1) if name in ("wms", "sms", "swms") else 0.0
    assert sum(found) / len(found) == pytest.approx(expected, abs=0.05)
    assert rewards[name].score([UNRELATED[0]], [UNRELATED[0]])[0] == pytest.approx(1.0, abs=1e-5)


def test_temperature_and_rescaling_can_be_set() -> None:
    text, reference = next(iter(SENTENCES.items()))
    for name, options in (
        ("wms", {"temperature": 1}),
        ("bertscore_emd", {"rescale": False}),
        ("sms", {"rescale": True}),
    ):
        own = METRICS[name].function([text], [reference], **options)["scores"]
        assert reward(name, **options).score([text], [reference]) == pytest.approx(own)
    assert reward("sms", rescale=True).lower == -1.0


def test_log_is_the_negative_distance_in_units_of_the_temperature() -> None:
    text, reference = next(iter(SENTENCES.items()))
    for options in ({}, {"temperature": 20}):
        result = movers.wms([text], [reference], **options)
        log = reward("wms", transform="log", **options)
        expected = [-result["distances"][0] / result["temperature"], LOWER_BOUNDS["log"]]
        assert log.score([text, "..."], [reference] * 2) == pytest.approx(expected)


def test_plain_and_conversational_completions_earn_the_same() -> None:
    sms = reward("sms")
    text, reference = next(iter(SENTENCES.items()))
    forms: list[object] = [
        text,
        [{"role": "assistant", "content": text}],
        [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": text}],
        [{"role": "assistant", "content": [{"type": "text", "text": text}]}],
    ]
    found = sms(
        prompts=["p"] * 4, completions=forms, completion_ids=[[1]] * 4, reference=[reference] * 4, trainer_state=None
    )
    assert found == [found[0]] * 4
    called = [[{"role": "assistant", "content": None, "tool_calls": []}]]
    assert sms(completions=called, reference=[reference]) == [0.0]


def test_rows_have_one_reference_or_several_or_none() -> None:
    sms = reward("sms", reference_column="gold")
    text = "Snow is sold online."
    one, best, none, empty, blank = sms(
        completions=[text] * 5, gold=["It rains.", ["It rains.", text], None, [], " "], reference=[None] * 5
    )
    assert best == pytest.approx(1.0) and one < best
    assert none is empty is blank is None


def test_the_reference_free_metric_reads_the_sources() -> None:
    quality = reward("reference_free_summary_quality", source_column="document")
    document = "The council met on Monday. It voted to close the old bridge. Repairs would cost too much."
    good, blank, none = quality(
        completions=["The council closes the old bridge.", "..."] * 1 + ["It votes."],
        document=[document, document, None],
    )
    expected = movers.reference_free_summary_quality(["The council closes the old bridge."], sources=[document])
    assert good == pytest.approx(expected["score"]) and blank == 0.0 and none is None


def test_an_aspect_can_be_the_reward() -> None:
    document = "The council met on Monday. It voted to close the old bridge. Repairs would cost too much."
    texts, name = (
        ["The council closes the old bridge.", "The council closes the old zoo."],
        "reference_free_summary_quality",
    )
    expected = movers.reference_free_summary_quality(texts, [document] * 2)
    for aspect in ("faithfulness", "coverage", "fluency"):
        assert reward(name, aspect=aspect).score(texts, sources=[document] * 2) == pytest.approx(expected[aspect])
    both = reward({f"{name}[aspect=faithfulness]": 2.0, f"{name}[aspect=fluency]": 1.0})
    added = [2 * one + other for one, other in zip(expected["faithfulness"], expected["fluency"], strict=True)]
    assert both.score(texts, sources=[document] * 2) == pytest.approx(added)
    assert both.score(["..."], sources=[document]) == [0.0]


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("reference_free_summary_quality", {"aspect": "beauty"}),
        ("reference_free_summary_quality", {"aspect": "likelihood"}),
        ("sms", {"aspect": "fluency"}),
    ],
)
def test_an_aspect_that_is_not_there_is_an_error(metric: str, options: dict[str, str]) -> None:
    with pytest.raises(
        movers.InputError, match=f"{metric}: aspect: expected None, or faithfulness, coverage, fluency of"
    ):
        reward(metric, **options)  # type: ignore[arg-type]


def test_several_metrics_are_added_up_with_weights_and_share_the_pass() -> None:
    text, reference = next(iter(SENTENCES.items()))
    names = ["bertscore_hungarian", "bertscore_emd"]
    alone = [reward(name).score([text], [reference])[0] for name in names]
    assert reward(names).score([text], [reference])[0] == pytest.approx(sum(alone) / 2, abs=1e-6)
    both = reward(dict(zip(names, (0.25, 2.0), strict=True)))
    assert both.score([text], [reference])[0] == pytest.approx(0.25 * alone[0] + 2 * alone[1], abs=1e-6)
    assert both.score(["."], [reference]) == [-2.25] == [both.lower]
    assert both.__name__ == "bertscore_hungarian+bertscore_emd"


def test_references_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from movers.scores.clark import SentenceMover

    read: list[str] = []
    original = SentenceMover.read

    def recording(self: SentenceMover, texts: list[str]) -> object:
        read.extend(texts)
        return original(self, texts)

    sms = reward("sms", temperature=8)
    monkeypatch.setattr(SentenceMover, "read", recording)
    for step in range(3):
        sms.score([f"Snow number {step}."], ["Snow melts in spring."])
    assert read.count("Snow melts in spring.") == 1 and len(read) == 4


def test_trainers_get_a_name_and_what_is_worth_logging() -> None:
    logged: dict[str, float] = {}
    both = reward(["wms", "sms"], name="movers")
    both(completions=["Snow.", "..."], reference=["Snow."] * 2, log_metric=logged.__setitem__, log_extra=None)
    assert both.__name__ == "movers"
    assert logged == {"movers/wms": 1.0, "movers/sms": 1.0, "movers/no_words": 0.5}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reward("smss"), "did you mean 'sms'"),
        (lambda: reward("wms", idf="corpus"), "'corpus' would change it with every batch"),
        (lambda: reward("sms", temperature=0), "temperature: expected 'auto' or a number above zero, but got 0"),
        (lambda: reward("moverscore", transform="log"), "transform: expected None"),
        (lambda: reward("moverscore", rescale="none.json").score(["a"], ["b"]), "rescale: no such file"),
        (lambda: reward({"wms": -1.0}), "weights above zero"),
        (lambda: reward("sms")(completions=["a"], answer=["b"]), "expected a column 'reference' with references"),
        (lambda: reward("sms")(completions=["a"], reference=["b", "c"]), "one entry per completion, 1, but got 2"),
        (lambda: reward("sms")(completions=[3], reference=["b"]), r"completions\[0\]: expected a text"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(movers.InputError, match=message):
        call()


def test_weights_texts_and_aspects_that_do_not_fit_are_told() -> None:
    with pytest.raises(InputError, match="metric: expected metrics with weights above zero, but got {'wms': 'x'}"):
        reward({"wms": "x"})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="score: expected sources=…, but got references"):
        reward("reference_free_summary_quality").score(["a"], ["b"])
    with pytest.raises(InputError, match="likelihood: only with lm"):
        reward("reference_free_summary_quality", aspect="likelihood")
