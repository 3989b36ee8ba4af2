"""The process that scores for a page: one JSON request per line comes in, JSON lines go out.

It can be stopped at any moment, which no thread can, and what happens to it does not happen to the page.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import IO, Any

from movers.errors import InputError
from movers.serve.answers import FileRun, Pair, chosen_options, score_pair
from movers.serve.limits import LIMITS

__all__ = ["main"]

Message = dict[str, object]


def _pair(request: Mapping[str, Any]) -> Iterator[Message]:
    pair = Pair(*request["pair"])
    _load(pair)
    yield {"loaded": True}
    answer = score_pair(pair)
    yield {"answer": {"summary": answer.summary, "picture": answer.picture, "result": answer.result()}}


def _file(request: Mapping[str, Any]) -> Iterator[Message]:
    _load(Pair(request["metric"], "", [""], chosen_options(request["metric"], request["options"])))
    yield {"loaded": True}
    run = FileRun.open(request["metric"], request["path"], request["options"], *request["columns"])
    examples = []
    for example in run.examples():
        examples.append(example)
        if len(examples) % 50 == 0:
            yield {"done": len(examples), "of": len(run.predictions)}
    yield {"answer": run.answer(examples)._asdict()}


_loaded: set[str] = set()


def _load(pair: Pair) -> None:
    """Load what a metric needs, the encoder above all, by scoring two words: the time is not the visitor's."""
    key = json.dumps([pair.metric, pair.options])
    if key not in _loaded:
        score_pair(pair._replace(prediction="snow", others=["ice"]))
        if len(_loaded) < 1000:  # visitors may think of any number
            _loaded.add(key)


_KINDS = {"pair": _pair, "file": _file}


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    _limit_memory()
    with contextlib.suppress(BrokenPipeError):  # the page is gone
        for line in sys.stdin:
            _serve(json.loads(line), answers)


def _serve(request: Mapping[str, object], answers: IO[str]) -> None:
    try:
        for message in _KINDS[str(request["kind"])](request):
            _write(answers, message)
    except InputError as error:
        _write(answers, {"refused": str(error)})
    except MemoryError:
        _write(answers, {"refused": "it takes more memory than a page may use; shorten the texts, or use the package"})
    except BrokenPipeError:
        raise
    except Exception:
        _write(answers, {"bug": traceback.format_exc()})


def _write(answers: IO[str], message: Message) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (LIMITS.memory_bytes, LIMITS.memory_bytes))


if __name__ == "__main__":
    main()
