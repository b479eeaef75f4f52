"""What a traced process does to a store, step by step, and what must be in the store after each step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import sessiontree as st
from sessiontree.testing.contract.base import is_on_disk
from torture.rounds import Problem, new_folder

NEEDLE = "correct-horse-battery-staple"
_LONGEST_OWN_ID = 8
ALL_STEPS = 1_000

Picture = dict[str, list[tuple[str, str]]]
"""For each thread the entries of its path with their texts, for each context its texts, for each file its content. Those of backups too."""

Work = Callable[[st.Journal, Path], object]


class Step(NamedTuple):
    """One acknowledged piece of work. ``needle`` is a text that is gone from every file afterwards.

    A step of several commits is not done at once: repeating it finishes it.
    """

    run: Work
    needle: str = ""
    is_repeatable: bool = False


class Script(NamedTuple):
    """Steps after a preparation that nothing interferes with.

    ``settle`` is what the next start does first, and ``afterwards`` what must still be possible.
    """

    name: str
    steps: tuple[Step, ...]
    prepare: Work = lambda _journal, _folder: None
    settle: Work = lambda _journal, _folder: None
    afterwards: Work = lambda _journal, _folder: None


def _append(thread: str, entry: str, text: str = "") -> Step:
    return Step(lambda journal, _: journal.append(thread, st.user(text or f"text of {entry}"), id=entry))


BASICS = Script(
    "basics",
    (
        Step(lambda journal, _: journal.create_thread("t")),
        _append("t", "a"),
        Step(lambda journal, _: journal.append_many("t", [st.user("b"), st.assistant("c " * 3000)])),
        Step(lambda journal, _: journal.fork("t", at="a", new_id="fork")),
        _append("fork", "f", f"fork {NEEDLE}"),
        Step(lambda journal, _: journal.create_thread(f"id-{NEEDLE}", title=f"title {NEEDLE}")),
        _append(f"id-{NEEDLE}", "x", f"{NEEDLE} " * 50),
        Step(lambda journal, _: journal.search("correct")),
        Step(lambda journal, _: journal.list_threads()),
        Step(lambda journal, _: journal.rewind("t", "a")),
        Step(lambda journal, _: journal.undo("t")),
        Step(lambda journal, _: journal.update_thread("t", title="new")),
        Step(lambda journal, _: journal.delete_thread("fork"), f"fork {NEEDLE}"),
        Step(lambda journal, _: journal.delete_thread(f"id-{NEEDLE}"), NEEDLE),
        _append("t", "d"),
    ),
)


def _with_a_secret(journal: st.Journal, _: Path) -> None:
    journal.create_thread("t")
    journal.append("t", st.user(f"{NEEDLE} " * 20), id="secret")
    reference = journal.put_artifact(f"{NEEDLE} in a file ".encode() * 20, mime="text/plain")
    journal.append("t", st.user([st.FilePart(artifact=reference)]), id="file")
    journal.append("t", st.assistant("and so on"), id="rest")
    journal.fork("t", new_id="fork")
    journal.append("fork", st.user("more"), id="more")
    journal.rewind("t", "secret")
    journal.append("t", st.user(f"{NEEDLE} on another branch"), id="branch")
    assert journal.search("correct").hits


ERASE = Script(
    "erase",
    (
        Step(lambda journal, _: journal.erase("fork", ["secret"])),
        Step(lambda journal, _: journal.erase("fork", ["file"]), f"{NEEDLE} in a file"),
        Step(lambda journal, _: journal.rewind("t", "secret")),
        Step(lambda journal, _: journal.prune("t"), NEEDLE),
        _append("t", "after"),
    ),
    prepare=_with_a_secret,
)


def _long_talk(journal: st.Journal, _: Path) -> None:
    journal.create_thread("t")
    for number in range(40):
        role = st.assistant if number % 2 else st.user
        journal.append("t", role(f"{number} " * 120), id=f"m{number}")


def _brief(request: st.SummaryRequest) -> st.Summary:
    return st.Summary(text="what was said before")


_SMALL_WINDOW = st.CompactionPolicy(window_tokens=6_000, keep_recent_tokens=400)

COMPACT = Script(
    "compact",
    (
        Step(lambda journal, _: journal.compact("t", _brief, policy=_SMALL_WINDOW)),
        _append("t", "after"),
        Step(lambda journal, _: journal.uncompact("t")),
        _append("t", "last"),
    ),
    prepare=_long_talk,
)


def _files(folder: Path) -> Path:
    return folder / "files"


def _two_states(journal: st.Journal, folder: Path) -> None:
    root = _files(folder)
    root.mkdir()
    journal.create_thread("t")
    for number in range(8):
        (root / f"{number}.txt").write_text(f"first {number}")
    journal.append("t", st.user("first"), id="one")
    journal.workspace.snapshot("t", "one", root)
    for number in range(4):
        (root / f"{number}.txt").write_text(f"second {number}" * 40)
    (root / "7.txt").unlink()
    (root / "folder").mkdir()
    (root / "folder" / "new.txt").write_text("new")
    journal.append("t", st.user("second"), id="two")
    journal.workspace.snapshot("t", "two", root)


RESTORE = Script(
    "restore",
    (
        Step(lambda journal, folder: journal.workspace.restore("t", "one", _files(folder))),
        _append("t", "a"),
        Step(lambda journal, folder: journal.workspace.restore("t", "two", _files(folder))),
    ),
    prepare=_two_states,
    settle=lambda journal, folder: journal.workspace.recover(_files(folder)),
)


def _export(_: st.Journal, folder: Path) -> None:
    with st.open("memory:") as source:
        _with_a_secret(source, folder)
        _long_talk_in(source, "long")
        st.export_sessions(source, folder / "exported", format="native")


def _long_talk_in(journal: st.Journal, thread: str) -> None:
    journal.create_thread(thread)
    for number in range(30):
        journal.append(thread, st.user(f"text {number} " * 100), id=f"{thread[0]}{number}")
    journal.fork(thread, at=f"{thread[0]}5", new_id=f"{thread}-fork")


IMPORT = Script(
    "import",
    (
        Step(lambda journal, folder: st.import_sessions(journal, folder / "exported"), is_repeatable=True),
        _append("long", "after"),
    ),
    prepare=_export,
)


def _backups(folder: Path) -> Path:
    return folder / "backups"


def _restored(folder: Path) -> Path:
    return folder / "restored"


BACKUP = Script(
    "backup",
    (
        _append("t", "a"),
        Step(lambda journal, folder: journal.backup(_backups(folder))),
        _append("t", "b"),
        Step(lambda journal, folder: journal.backup(_backups(folder))),
        Step(lambda _, folder: st.restore_backup(_backups(folder), _restored(folder))),
        _append("t", "c"),
    ),
    prepare=_with_a_secret,
    afterwards=lambda journal, folder: journal.backup(_backups(folder)),
)

SCRIPTS = {script.name: script for script in (BASICS, ERASE, COMPACT, RESTORE, IMPORT, BACKUP)}


@cache
def pictures_of(script: Script) -> list[Picture]:
    """The picture before the first step and after each one, in the store that is the reference of the others."""
    with new_folder() as name, st.open("memory:") as journal:
        folder = Path(name)
        script.prepare(journal, folder)
        pictures = [_picture(journal, folder)]
        for step in script.steps:
            step.run(journal, folder)
            pictures.append(_picture(journal, folder))
    return pictures


def _picture(journal: st.Journal, folder: Path) -> Picture:
    found = _threads(journal)
    for path in sorted(_files(folder).rglob("*.txt")):
        found[str(path.relative_to(folder))] = [("", path.read_text())]
    if _restored(folder).exists():
        found |= _named("restored", _restored(folder))
    for number, backup in enumerate(_complete(_backups(folder))):
        with new_folder() as place:
            st.restore_backup(_backups(folder), Path(place) / "store", backup_id=backup.id)
            found |= _named(f"backup {number}", Path(place) / "store")
    return found


def _complete(backups: Path) -> list[st.Backup]:
    """The complete backups; none if the folder is not a folder of backups yet."""
    try:
        return st.list_backups(backups)
    except st.BackupError:
        return []


def _named(name: str, path: Path) -> Picture:
    with st.open(path) as journal:
        return {f"{name}: {thread}": entries for thread, entries in _threads(journal).items()}


def _threads(journal: st.Journal) -> Picture:
    found: Picture = {}
    for thread in journal.list_threads(limit=1000):
        found[thread.id] = [
            (entry.id if len(entry.id) <= _LONGEST_OWN_ID else "", entry.message.text if entry.message else "")
            for entry in journal.path(thread.id)
            if entry.type != "checkpoint"
        ]
        found[f"context of {thread.id}"] = [
            (message.role, message.text) for message in journal.context(thread.id).messages
        ]
    return found


def prepare(script: Script, url: str, folder: Path) -> None:
    """Make the store as the script finds it; a script without a preparation creates it."""
    if script is not BASICS:
        with st.open(url) as journal:
            script.prepare(journal, folder)


def perform(script: Script, url: str, folder: Path, report: int, steps: int = ALL_STEPS) -> None:
    """Run the first steps and report each one on a descriptor: acknowledged, refused or failed with an error of Python."""
    try:
        journal = st.open(url)
        _tell(report, "opened")
        for step in script.steps[:steps]:
            step.run(journal, folder)
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


def read(report: int, before: bytes = b"") -> Told:
    """Read what was reported, after what was read before; the other end is closed."""
    with os.fdopen(report, "rb") as file:
        words = [json.loads(line) for line in (before + file.read()).splitlines()]
    problems = [word for word in words if word not in ("opened", "acknowledged", "closed")]
    return Told(words.count("acknowledged"), problems[0] if problems else "")


_KEPT_NOTHING = ("StoreUnavailableError", "StoreFullError", "StoreReadOnlyError")


def violations(script: Script, url: str, folder: Path, told: Told, *, is_moved: bool = False) -> tuple[Problem, ...]:
    """Open the store again and compare it with what was acknowledged; one step more may have been committed.

    A store that was moved since has no backups.
    """
    found: list[Problem] = []
    if told.problem.startswith("raw"):
        found.append(Problem("other", told.problem))
    try:
        with st.open(url) as journal:
            script.settle(journal, folder)
            found += _differences(script, journal, folder, told)
            found += [Problem("torn", finding.problem) for finding in journal.check() if finding.kind != "torn"]
            journal.create_thread("afterwards")
            journal.append("afterwards", st.user("it goes on"))
            if not is_moved:
                script.afterwards(journal, folder)
    except Exception as error:  # noqa: BLE001  any error here is a finding
        found.append(Problem("other", f"cannot be opened: {type(error).__name__}: {error}"))
    return tuple(found)


def _differences(script: Script, journal: st.Journal, folder: Path, told: Told) -> list[Problem]:
    pictures = pictures_of(script)
    allowed = pictures[told.acknowledged : told.acknowledged + 2]
    now = _picture(journal, folder)
    if now not in allowed and _is_repeatable(script, told):
        script.steps[told.acknowledged].run(journal, folder)
        now = _picture(journal, folder)
    if now not in allowed:
        return [Problem("lost", f"after {told.acknowledged} steps: {_difference(allowed[0], now)}")]
    found = []
    if told.problem in _KEPT_NOTHING and now != allowed[0] and not _is_repeatable(script, told):
        found.append(Problem("other", f"{told.problem} although it was committed"))
    done = told.acknowledged + allowed.index(now)
    needles = [step.needle for step in script.steps[:done] if step.needle]
    found += [Problem("other", f"{needle!r} is still on the disk") for needle in needles if is_on_disk(folder, needle)]
    return found


def _is_repeatable(script: Script, told: Told) -> bool:
    return told.acknowledged < len(script.steps) and script.steps[told.acknowledged].is_repeatable


def _difference(expected: Picture, found: Picture) -> str:
    keys = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    return "; ".join(
        f"{key}: {str(expected.get(key))[:150]} is now {str(found.get(key))[:150]}" for key in sorted(keys)
    )
