"""Validate the requests of random histories.

python tests/validation/campaign.py --seeds 0:10000 --processes 2    # a campaign: counts, then one line per finding
python tests/validation/campaign.py --replay 123                    # what one seed did, and what is wrong with it
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import sessiontree as st
from validation.histories import History, contexts
from validation.material import PAYLOAD
from validation.validators import VALIDATORS

__all__ = ["Finding", "findings", "leaks", "requests_problems"]

_MEDIA_FIELDS = frozenset({"data", "url", "image_url", "file_data", "result", "file_uri", "fileUri", "file_url"})


@dataclass(frozen=True)
class Finding:
    """One thing that a provider refuses in the request of a seed."""

    seed: int
    dialect: str
    problem: str


def requests_problems(context: st.Context) -> Iterator[tuple[str, str, Any]]:
    """Yield dialect, problem and request for everything that is wrong with the four requests of a context."""
    for dialect, validate in VALIDATORS.items():
        try:
            request = st.DIALECTS[dialect].to_request(context)
        except Exception as error:  # noqa: BLE001  whatever it raises is a finding
            yield dialect, f"to_request raised {error!r}", None
            continue
        for problem in [*validate(request), *leaks(request)]:
            yield dialect, problem, request


def findings(seed: int) -> list[Finding]:
    """Return what is wrong with the requests of one random history."""
    return [Finding(seed, dialect, problem) for dialect, problem, _, _ in _examine(seed)]


def _examine(seed: int) -> Iterator[tuple[str, str, Any, History | None]]:
    try:
        for history, context in contexts(seed):
            if context.messages:  # there is nothing to send without
                for dialect, problem, request in requests_problems(context):
                    yield dialect, problem, request, history
    except Exception:  # noqa: BLE001  the history itself failed
        yield "history", traceback.format_exc(limit=-3), None, None


def leaks(value: Any, key: str = "") -> Iterator[str]:
    """Yield where the base64 of a picture or a file stands in a text: a note is short, and media are in media fields."""
    match value:
        case str() if PAYLOAD[:40] in value and key not in _MEDIA_FIELDS:
            yield f"base64 in {key}"
        case Mapping():
            for name, item in value.items():
                yield from leaks(item, name)
        case list():
            for item in value:
                yield from leaks(item, key)
        case _:
            return


def _batch(seeds: range) -> list[Finding]:
    warnings.simplefilter("ignore")
    return [finding for seed in seeds for finding in findings(seed)]


def _campaign(first: int, last: int, processes: int) -> int:
    batches = [range(start, min(start + 50, last)) for start in range(first, last, 50)]
    with ProcessPoolExecutor(processes) as pool:
        found = [finding for batch in pool.map(_batch, batches) for finding in batch]
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        kinds.setdefault((finding.dialect, _shape(finding.problem)), []).append(finding)
    bad = Counter(dialect for dialect, _ in {(finding.dialect, finding.seed) for finding in found})
    print(f"seeds {first} to {last}: {len(found)} problems, invalid histories by dialect: {dict(bad)}")
    for (dialect, _), same in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(same):6} {dialect:17} seed {same[0].seed}: {same[0].problem[:300]}")
    return len(found)


def _shape(problem: str) -> str:
    """Return a problem without its numbers, so that the same ones are counted together."""
    return "".join("#" if letter.isdigit() else letter for letter in problem.split("'", maxsplit=1)[0])[:120]


def _replay(seed: int) -> None:
    for dialect, problem, request, history in _examine(seed):
        print(f"{dialect}: {problem}\n  steps: {history.steps if history else ''}")
        print("  " + json.dumps(_shortened(request), ensure_ascii=False, default=repr)[:6000])


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > 80:
            return value[:60] + "…"
        case Mapping():
            return {key: _shortened(item) for key, item in value.items()}
        case list():
            return [_shortened(item) for item in value]
        case _:
            return value


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replay", type=int)
    options = parser.parse_args()
    if options.replay is not None:
        _replay(options.replay)
        return
    first, last = map(int, options.seeds.split(":"))
    sys.exit(1 if _campaign(first, last, options.processes) else 0)


if __name__ == "__main__":
    main()
