from __future__ import annotations

import numpy as np

from movers.scores.bags import Bag, alignment_of, match_unknown


class Named:
    """Units that are told by their names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def unknown(self) -> np.ndarray:
        return np.array([name.startswith("?") for name in self.names])

    def vectors(self) -> np.ndarray:
        return np.zeros((len(self.names), 1), np.float32)

    def keys(self) -> list[str]:
        return [*self.names]

    def describe(self) -> list[dict[str, object]]:
        return [{"text": name} for name in self.names]


def test_an_alignment_holds_what_moves_and_the_shares_of_the_masses() -> None:
    first, second = Bag(Named("a", "b"), np.array([1.0, 3.0])), Bag(Named("c", "d", "e"), np.array([0.5, 0.0, 1.5]))
    flow, costs = np.array([[0.25, 0.0, 0.0], [0.0, 0.0, 0.75]]), np.array([[2.0, 7.0, 8.0], [9.0, 9.0, 4.0]])
    assert alignment_of(first, second, flow, costs, 0.5) == {
        "distance": 0.5,
        "prediction": [{"text": "a", "weight": 0.25}, {"text": "b", "weight": 0.75}],
        "reference": [{"text": "c", "weight": 0.25}, {"text": "d", "weight": 0.0}, {"text": "e", "weight": 0.75}],
        "flows": [{"i": 0, "j": 0, "mass": 0.25, "cost": 2.0}, {"i": 1, "j": 2, "mass": 0.75, "cost": 4.0}],
    }


def test_an_unknown_word_matches_itself_and_is_one_unit_from_all_others() -> None:
    costs = np.full((3, 4), 9.0)
    match_unknown(costs, Named("a", "?b", "?c"), Named("a", "?c", "b", "?b"), 0.5)
    assert costs.tolist() == [[9.0, 0.5, 9.0, 0.5], [0.5, 0.5, 0.5, 0.0], [0.5, 0.0, 0.5, 0.5]]
    match_unknown(costs := np.full((1, 2), 9.0), Named("a"), Named("?a", "a"), 2.0)
    assert costs.tolist() == [[2.0, 9.0]]
