"""Broken answers and requests: a value at any path is null, of another type, or missing.

``from_response`` and ``from_request`` accept one or raise InvalidInputError, and what they accept can be sent.

    python tests/validation/mutations.py --seeds 0:400 --most 200    # counts, then one line per finding
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path as FilePath
from typing import Any

sys.path.insert(0, str(FilePath(__file__).parents[1]))

import sessiontree as st
from validation.campaign import requests_problems
from validation.histories import ANSWERS
from validation.material import Draw
from validation.written_requests import written_request

__all__ = ["mutant_problems", "mutants"]

_OTHERS: tuple[Any, ...] = (None, 5, 2.5, True, "x", "", [], {}, [None], [5], ["x"], [{}])
_UNKNOWN: tuple[Any, ...] = ({"x": 5}, {"type": "x"}, [{"type": "x"}])
_FORGED = ("signature of another", "the signature of", "without its reasoning")
"""Signed content that was changed, or reasoning that was removed: whoever did it is to blame."""
_MISSING = object()
Path = tuple[str | int, ...]


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """Yield the place of every value inside of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*above, key)
        yield from paths(item, (*above, key))


def mutants(value: Any, dialect: str, draw: Draw, most: int) -> Iterator[tuple[str, Any]]:
    """Yield some copies of a value with one thing changed, and what was changed.

    Chat gets no unknown fields: many vendors speak it, and what they add goes back to them.
    """
    others = (_MISSING, *_OTHERS, *(() if dialect == "openai-chat" else _UNKNOWN))
    every = [(path, other) for path in paths(value) for other in others]
    for path, other in draw.random.sample(every, min(most, len(every))):
        copy = json.loads(json.dumps(value))
        _change(copy, path, other)
        yield f"{'.'.join(map(str, path))} = {'missing' if other is _MISSING else repr(other)}", copy


def _change(value: Any, path: Path, other: Any) -> None:
    *above, last = path
    for key in above:
        value = value[key]
    if other is _MISSING:
        del value[last]
    else:
        value[last] = other


def mutant_problems(seed: int, most: int) -> Iterator[str]:
    """Yield what is wrong with how broken copies of a random answer and a random request are read and sent."""
    warnings.simplefilter("ignore")
    draw = Draw(seed)
    dialect = sorted(ANSWERS)[seed % len(ANSWERS)]
    answer = json.loads(
        ANSWERS[dialect](draw).model_dump_json(by_alias=draw.chance(0.5), exclude_none=draw.chance(0.5))
    )
    for change, copy in mutants(answer, dialect, draw, most):
        yield from (f"answer of {dialect}, {change}: {problem}" for problem in _answer_problems(dialect, copy))
    dialect, body = written_request(draw)
    for change, copy in mutants(body, dialect, draw, most):
        yield from (f"request of {dialect}, {change}: {problem}" for problem in _request_problems(dialect, copy))


def _answer_problems(dialect: str, answer: Any) -> Iterator[str]:
    try:
        payload = st.DIALECTS[dialect].from_response(answer)
    except st.InvalidInputError:
        return
    except Exception as error:  # noqa: BLE001  anything else is a finding
        yield f"from_response raised {error!r}"
        return
    results = [st.tool_result(call.id, "ok", name=call.name) for call in payload.message.tool_calls]
    yield from _sent_problems([st.user("hi"), payload, *results, st.user("go on")])


def _request_problems(dialect: str, body: Any) -> Iterator[str]:
    try:
        system, messages = st.DIALECTS[dialect].from_request(body)
    except st.InvalidInputError:
        return
    except Exception as error:  # noqa: BLE001  anything else is a finding
        yield f"from_request raised {error!r}"
        return
    yield from _sent_problems([*([st.system(system)] if system else []), *messages])


def _sent_problems(contents: list[Any]) -> Iterator[str]:
    with st.open("memory:") as journal:
        thread = journal.create_thread().id
        try:
            journal.append_many(thread, contents)
            context = journal.context(thread)
        except st.InvalidInputError as error:
            yield f"was read, and cannot be stored: {error}"
            return
        if context.messages:
            found = [(dialect, problem) for dialect, problem, _ in requests_problems(context)]
            yield from (f"{dialect}: {problem}" for dialect, problem in found if not any(map(problem.count, _FORGED)))
            for dialect in st.DIALECTS:
                context.losses(dialect)


def _found(most: int, seed: int) -> list[str]:
    return list(mutant_problems(seed, most))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    with ProcessPoolExecutor(options.processes) as pool:
        found = [problem for batch in pool.map(partial(_found, options.most), seeds, chunksize=5) for problem in batch]
    print(f"{len(seeds)} seeds, at most {2 * options.most} broken values each: {len(found)} problems")
    print("\n".join(dict.fromkeys(problem[:400] for problem in found)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
