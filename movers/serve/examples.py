"""Pairs that show what a metric is good at, and what it does not see."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EXAMPLES", "Example"]


class Example(NamedTuple):
    """A pair with what it shows."""

    label: str
    prediction: str
    other: str


_REFERENCE = "After the blizzard, villagers cleared the snow from the baker's shop. By midday it sold loaves again."
_DOCUMENT = (
    "A blizzard closed every road to the village on Monday night. By morning the door of the only bakery was buried "
    "under two metres of snow. Some thirty villagers came with shovels and cleared it within hours. Bread was on sale "
    "again at noon."
)
_PARAPHRASE = "Neighbours dug out the village bakery after the storm. Bread was on sale by noon."
_UNRELATED = Example(
    "For comparison: another topic", "Shares in the shipping company fell for a third day.", _REFERENCE
)
_ROLES = Example("Weakness: who did what", "The dog bit the man in the park.", "The man bit the dog in the park.")
_NUMBERS = Example(
    "Weakness: another amount", "The firm paid $9,000 to its founder.", "The firm paid $5,000 to its founder."
)
_REPEATED = Example(
    "Strength: repetition gains nothing",
    "The storm hit the village. The storm hit the village. The storm hit the village.",
    "The storm hit the village. Villagers cleared the snow.",
)

_WORDS = [Example("Strength: other words", _PARAPHRASE, _REFERENCE), _ROLES, _UNRELATED]
_SENTENCES = [
    Example(
        "Strength: sentences in another order",
        "Bread was on sale by noon. Neighbours dug out the village bakery after the storm.",
        _REFERENCE,
    ),
    _ROLES,
    _UNRELATED,
]
_TOKENS = [_REPEATED, _NUMBERS, Example("For comparison: other words", _PARAPHRASE, _REFERENCE)]

EXAMPLES: dict[str, list[Example]] = {
    "wms": _WORDS,
    "sms": _SENTENCES,
    "swms": _SENTENCES,
    "moverscore": [
        Example("Strength: other words in context", _PARAPHRASE, _REFERENCE),
        Example("Weakness: very short texts", "Yes.", "No."),
        _UNRELATED,
    ],
    "bertscore_hungarian": _TOKENS,
    "bertscore_emd": _TOKENS,
    "reference_free_summary_quality": [
        Example(
            "Strength: a sentence from nowhere, and a repeated one",
            "Villagers dug out their bakery after a blizzard. Villagers dug out their bakery after the blizzard. "
            "The orchestra opened its season.",
            _DOCUMENT,
        ),
        Example(
            "Weakness: a wrong number", "Some ninety villagers with shovels cleared the bakery within hours.", _DOCUMENT
        ),
        Example("For comparison: a fair summary", "Villagers dug out their bakery, which reopened at noon.", _DOCUMENT),
    ],
}
