"""Lower layers of a transformer without computing the layers above them.

Hidden state k is the input of layer k, so a forward pass can end where the highest layer that is needed would begin.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class _Reached(Exception):
    """All inputs that are needed have been recorded."""


def lower_states(
    model: PreTrainedModel, layers: torch.nn.ModuleList, numbers: Sequence[int], arguments: Mapping[str, Any]
) -> dict[int, Any]:
    """Hidden states with these numbers (ascending), by number; the last of these layers and those above do not run."""
    states: dict[int, Any] = {}
    thread = threading.get_ident()

    def record(number: int, layer: object, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        if threading.get_ident() == thread:  # another thread's pass is not ours to end
            states[number] = positional[0] if positional else named.get("hidden_states")
            if number == numbers[-1]:
                raise _Reached

    handles = [layers[n].register_forward_pre_hook(partial(record, n), with_kwargs=True) for n in numbers]
    try:
        model(**arguments)
    except _Reached:
        pass
    finally:
        for handle in handles:
            handle.remove()
    return states


def find_layers(model: PreTrainedModel, count: int, arguments: Mapping[str, Any]) -> torch.nn.ModuleList | None:
    """The list of the model's `count` layers; None if their inputs are not the hidden states that the model returns.

    That is so where layers share their weights (ALBERT), are nested (Funnel) or have their axes swapped (XLNet).
    """
    import torch

    expected = getattr(model(**arguments, output_hidden_states=True), "hidden_states", None) or ()
    for layers in model.modules():
        if isinstance(layers, torch.nn.ModuleList) and len(layers) == count == len(expected) - 1:
            try:
                states = lower_states(model, layers, range(count), arguments)
            except Exception:  # whatever this model does when a hook ends its pass
                continue
            if all(_is_close(states.get(number), expected[number]) for number in range(count)):
                return layers
    return None


def _is_close(state: Any, expected: torch.Tensor) -> bool:
    if getattr(state, "shape", None) != expected.shape:
        return False
    return bool((state - expected).abs().max() <= 1e-6 * expected.abs().max())
