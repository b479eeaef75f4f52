"""The rungs that interfere with one system call of a script, and the disks that a power cut would have left."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import sessiontree as st
from sessiontree.stores import _io
from sessiontree.stores.sqlite import schema
from torture import power, scripts, tracer
from torture.rounds import Outcome, Problem, Round, new_folder, url_of
from torture.writers import fork

ACTIONS: tuple[tracer.Action, ...] = tuple(name for name in get_args(tracer.Action) if name != "count")


@cache
def calls_of(store: str, script: str, steps: int = scripts.ALL_STEPS) -> int:
    """How many calls the first steps of a script make; without steps, opening and closing the store."""
    with new_folder() as folder:
        return _traced(store, scripts.SCRIPTS[script], Path(folder), "count", 0, steps)[0].calls


def interfere(what: Round, steps: int = scripts.ALL_STEPS) -> Outcome:
    """Interfere with one call of a script: the fault is ``action/script``."""
    action, _, name = what.fault.partition("/")
    script = scripts.SCRIPTS[name]
    with new_folder() as place:
        folder = Path(place)
        url = url_of(what.store, folder)
        beside: list[Problem] = []
        ended, told = _traced(
            what.store, script, folder, action, what.number, steps,  # type: ignore[arg-type]
            meanwhile=lambda: beside.extend(_use_beside(url)),
        )  # fmt: skip
        if ended.has_hung:
            return Outcome(told.acknowledged, (*beside, Problem("hung", f"at {ended.hit}")))
        return Outcome(told.acknowledged, (*beside, *scripts.violations(script, url, folder, told)))


def _use_beside(url: str) -> Iterator[Problem]:
    """Read and write with another process while the traced one is stopped; the write is refused in any case."""
    reading, writing = os.pipe()
    child = fork(lambda: _list_and_append(url, writing))
    os.close(writing)
    has_ended = tracer.wait_for(child, _BESIDE_SECONDS)
    with os.fdopen(reading) as file:
        answer = file.read()
    if not has_ended:
        yield Problem("hung", "another process waited for the stopped one")
    elif answer != "refused":
        yield Problem("other", f"another process beside the stopped one: {answer}")


_BESIDE_SECONDS = 20
_PATIENCE_SECONDS = 0.2


def _list_and_append(url: str, report: int) -> None:
    _io.LOCK_SECONDS = schema.BUSY_SECONDS = _PATIENCE_SECONDS
    try:
        with st.open(url) as journal:
            journal.list_threads()
            journal.append("no such thread", st.user("never"))
    except st.SessionTreeError:
        os.write(report, b"refused")
    except BaseException as error:  # noqa: BLE001  what leaves the library is what the ladder looks for
        os.write(report, f"{type(error).__name__}: {error}".encode())


class Recording(NamedTuple):
    """Every change that a script made to a folder, after those that make what it found there."""

    folder: Path
    changes: list[power.Change]
    first: int


@cache
def record(store: str, script: str) -> Recording:
    """Run a script once and record it."""
    chosen = scripts.SCRIPTS[script]
    with new_folder() as name:
        folder = Path(name)
        scripts.prepare(chosen, url_of(store, folder), folder)
        found = power.changes_that_made(folder)
        reading, writing = os.pipe()
        recorder = power.Recorder(folder, writing)
        tracer.run(
            lambda: scripts.perform(chosen, url_of(store, folder), folder, writing),
            "count", 0, ignored=writing, observe=recorder.observe,
        )  # fmt: skip
        os.close(writing)
        told = scripts.read(reading)
        assert told == scripts.Told(len(chosen.steps), ""), told
        return Recording(folder, [*found, *recorder.changes], len(found))


def cut_power(what: Round) -> Outcome:
    """Open the store as it could be after a power cut at a random moment of a script: the fault is ``power/script``.

    ``power/open`` is a cut during the first open of a store.
    """
    source = random.Random(what.number)
    name = what.fault.partition("/")[2]
    script = scripts.BASICS if name == "open" else scripts.SCRIPTS[name]
    recording = record(what.store, script.name)
    # The first report says that the store is open, and the last one that it is closed.
    is_report = [change.kind == "report" for change in recording.changes]
    last = is_report.index(True) if name == "open" else len(recording.changes)
    changes = recording.changes[: source.randint(recording.first, last)]
    with new_folder() as place:
        reports = power.disk_after(changes, recording.folder, Path(place), source)
        told = scripts.Told(min(max(0, reports - 1), len(script.steps)), "")
        url = url_of(what.store, Path(place))
        return Outcome(told.acknowledged, scripts.violations(script, url, Path(place), told, is_moved=True))


def _traced(
    store: str,
    script: scripts.Script,
    folder: Path,
    action: tracer.Action,
    number: int,
    steps: int,
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[tracer.Traced, scripts.Told]:
    url = url_of(store, folder)
    scripts.prepare(script, url, folder)
    reading, writing = os.pipe()
    ended = tracer.run(lambda: scripts.perform(script, url, folder, writing, steps), action, number, ignored=writing)
    os.close(writing)
    return ended, scripts.read(reading)
