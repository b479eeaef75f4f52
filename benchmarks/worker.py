"""One process that measures one case on one system; the runner asks it for samples over a pipe.

``python -m benchmarks.worker sample CASE MODULE SYSTEM SIZE FOLDER`` answers each line that it reads with a line of JSON;
``fill`` with the same arguments prepares the store. ``once MODULE SYSTEM FOLDER`` opens a store and appends, as a short
program would, and ``durability`` appends a few messages between two marks that strace shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from benchmarks.system import CHAT, System, opener

MARK = "/sessiontree-benchmark-mark"
SYNCED_FILE = "-with-a-synced-file"
DURABLE_APPENDS = 20


def main() -> None:
    with _quiet_output() as answers:
        match sys.argv[1:]:
            case ["sample", case, module, system, size, folder]:
                _sample(answers, case, opener(module, system), int(size), Path(folder))
            case ["fill", case, module, system, size, folder]:
                _fill(case, opener(module, system), int(size), Path(folder))
            case ["once", module, system, folder]:
                _once(opener(module, system), Path(folder))
            case ["durability", module, system, folder]:
                _durability(opener(module, system), Path(folder))
            case _:
                sys.exit(__doc__)


@contextlib.contextmanager
def _quiet_output() -> Iterator[TextIO]:
    """Keep the pipe to the runner apart from what a package prints."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        yield answers


def _sample(answers: TextIO, case_name: str, kind: type[System], size: int, folder: Path) -> None:
    from benchmarks.case import cases  # noqa: PLC0415  a short program does not load the cases

    case = cases()[case_name]
    system = kind(folder)
    if case.prepare is not None and kind.is_in_memory:
        case.prepare(system, size)
    samples = case.run(system, size)
    for _ in sys.stdin:
        sample = next(samples, None)
        print(json.dumps(sample), file=answers, flush=True)
        if sample is None:
            break
    samples.close()  # type: ignore[attr-defined]
    system.call(system.close)


def _fill(case_name: str, kind: type[System], size: int, folder: Path) -> None:
    from benchmarks.case import cases  # noqa: PLC0415

    prepare = cases()[case_name].prepare
    assert prepare is not None
    system = kind(folder, is_filling=True)
    prepare(system, size)
    system.call(system.close)


def _once(kind: type[System], folder: Path) -> None:
    system = kind(folder)
    system.call(system.append, CHAT, "hello")
    system.call(system.close)


def _durability(kind: type[System], folder: Path) -> None:
    system = kind(folder)
    for _ in range(5):
        system.call(system.append, CHAT, "warm up")
    os.access(MARK, os.F_OK)
    for _ in range(DURABLE_APPENDS):
        system.call(system.append, CHAT, "hello")
    os.access(f"{MARK}{SYNCED_FILE}" if _has_synced_file() else MARK, os.F_OK)
    system.call(system.close)


def _has_synced_file() -> bool:
    """Whether a file is open that syncs with each write."""
    infos = [path.read_text() for path in Path("/proc/self/fdinfo").iterdir() if path.exists()]
    flags = [int(info.split("flags:")[1].split()[0], 8) for info in infos if "flags:" in info]
    return any(flag & os.O_DSYNC for flag in flags)


if __name__ == "__main__":
    main()
