"""What the traced process does to a store, step by step, and what must be in the store after each step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import sessiontree as st
from sessiontree.testing.contract.base import is_on_disk

NEEDLE = "correct-horse-battery-staple"

Picture = dict[str, list[tuple[str, str]]]
"""For each thread the entries of its path, with their texts."""


class Step(NamedTuple):
    """One commit. ``needle`` is a text that is gone from every file afterwards."""

    name: str
    run: Callable[[st.Journal], object]
    needle: str = ""


def _append(thread: str, entry: str, text: str = "") -> Step:
    return Step("append", lambda journal: journal.append(thread, st.user(text or f"text of {entry}"), id=entry))


STEPS: tuple[Step, ...] = (
    Step("create", lambda journal: journal.create_thread("t")),
    _append("t", "a"),
    Step("append", lambda journal: journal.append_many("t", [st.user("b"), st.assistant("c " * 3000)])),
    Step("fork", lambda journal: journal.fork("t", at="a", new_id="fork")),
    _append("fork", "f", f"fork {NEEDLE}"),
    Step("create", lambda journal: journal.create_thread(f"id-{NEEDLE}", title=f"title {NEEDLE}")),
    _append(f"id-{NEEDLE}", "x", f"{NEEDLE} " * 50),
    Step("search", lambda journal: journal.search("correct")),
    Step("list", lambda journal: journal.list_threads()),
    Step("rewind", lambda journal: journal.rewind("t", "a")),
    Step("undo", lambda journal: journal.undo("t")),
    Step("update", lambda journal: journal.update_thread("t", title="new")),
    Step("delete", lambda journal: journal.delete_thread("fork"), f"fork {NEEDLE}"),
    Step("delete", lambda journal: journal.delete_thread(f"id-{NEEDLE}"), NEEDLE),
    _append("t", "d"),
)


def expected() -> list[Picture]:
    """The picture before the first step and after each one."""
    with st.open("memory:") as journal:
        pictures = [picture(journal)]
        for step in STEPS:
            step.run(journal)
            pictures.append(picture(journal))
    return pictures


def picture(journal: st.Journal) -> Picture:
    """What is in a store."""
    return {
        thread.id: [
            (entry.id if len(entry.id) == 1 else "", entry.message.text if entry.message else "")
            for entry in journal.path(thread.id)
        ]
        for thread in journal.list_threads(limit=1000)
    }


def perform(url: str, report: int, steps: int = len(STEPS)) -> None:
    """Run the first steps and report each one on a descriptor: acknowledged, refused or failed with an error of Python."""
    try:
        journal = st.open(url)
        _tell(report, "opened")
        for step in STEPS[:steps]:
            step.run(journal)
            _tell(report, "acknowledged")
        journal.close()
        _tell(report, "closed")
    except st.SessionTreeError as error:
        _tell(report, type(error).__name__)
    except BaseException as error:  # noqa: BLE001  what leaves the library is what the ladder looks for
        _tell(report, f"raw {type(error).__name__}: {error}")


def _tell(report: int, word: str) -> None:
    os.write(report, json.dumps(word).encode() + b"\n")


class Told(NamedTuple):
    """What the process said before it ended."""

    acknowledged: int
    problem: str


def read(report: int) -> Told:
    """Read what was reported; the other end is closed."""
    with os.fdopen(report, "rb") as file:
        words = [json.loads(line) for line in file.read().splitlines()]
    problems = [word for word in words if word not in ("opened", "acknowledged", "closed")]
    return Told(words.count("acknowledged"), problems[0] if problems else "")


_KEPT_NOTHING = ("StoreUnavailableError", "StoreFullError", "StoreReadOnlyError")


def violations(url: str, folder: Path, told: Told, pictures: list[Picture]) -> list[str]:
    """Open the store again and compare it with what was acknowledged; one step more may have been committed."""
    found: list[str] = []
    if told.problem.startswith("raw"):
        found.append(told.problem)
    allowed = pictures[told.acknowledged : told.acknowledged + 2]
    try:
        with st.open(url) as journal:
            now = picture(journal)
            if now not in allowed:
                found.append(f"lost or torn: {now} after {told.acknowledged} steps")
            elif told.problem in _KEPT_NOTHING and now != allowed[0]:
                found.append(f"{told.problem} although it was committed")
            found += [f"damaged: {finding.problem}" for finding in journal.check() if finding.kind != "torn"]
            done = pictures.index(now) if now in allowed else told.acknowledged
            found += [
                f"{step.needle!r} is still on the disk"
                for step in STEPS[:done]
                if step.needle and is_on_disk(folder, step.needle)
            ]
            journal.create_thread("afterwards")
            journal.append("afterwards", st.user("it goes on"))
    except Exception as error:  # noqa: BLE001  any error here is a finding
        found.append(f"cannot be opened: {type(error).__name__}: {error}")
    return found
