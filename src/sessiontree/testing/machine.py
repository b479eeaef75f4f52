"""A Hypothesis state machine that compares a store with the memory store, step by step.

A store author writes::

    class MineMachine(JournalMachine):
        def open_journal(self, folder, **options):
            return st.open(folder / "journal.db", durability="process_crash", **options)

    TestMine = machine_test(MineMachine)

Both journals share one clock and have equal random sources, so ids, times and errors must be the same too. The runs are
the same every time; ``SESSIONTREE_PROFILE=deep`` tries 2,000 random ones. ``SESSIONTREE_EXAMPLES`` sets the number of runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.errors import SessionTreeError
from sessiontree.journal import Journal
from sessiontree.journal.opening import open as open_journal
from sessiontree.journal.operations.changes import Changes
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import ArtifactRef, Entry, ImagePart, Lease, RunFailure, TurnMarker, blob_of
from sessiontree.model.builders import assistant, user
from sessiontree.stores.queries import StoreStats
from sessiontree.testing.clock import ManualClock, seeded_random

__all__ = ["JournalMachine", "machine_settings", "machine_test"]


_STEPS = 40
_NEW_NAMES = ("a", "b", "c/\u2028", "d")
_PICTURES = (b"one picture", b"another picture")
_JOINT = ("append", "append", "create", "delete", "replace", "fork", "move", "put", "put_once", "drop")
_CONTENTS = (
    user("one"),
    user("two"),
    assistant("three"),
    TurnMarker(status="started"),
    TurnMarker(status="save_point"),
    RunFailure(error="no model"),
    *(user([ImagePart(artifact=ArtifactRef(sha256=blob_of(data).hash))]) for data in _PICTURES),
)

# A number refers to something that exists, counted from the newest, so that most steps have an effect; the highest
# numbers refer to something that does not exist, or no longer.
numbers = some.integers(0, 20)
places = some.none() | numbers
maybe_places = some.just(UNSET) | some.just(UNSET) | places
maybe_leases = some.none() | some.none() | numbers
new_names = some.sampled_from(_NEW_NAMES)
contents = some.sampled_from(_CONTENTS)
entry_ids = some.none() | some.none() | some.sampled_from(["e1", "e2", "é\0"]) | numbers
somewhere = some.fixed_dictionaries(
    {
        "parent": maybe_places,
        "expect_leaf": maybe_places,
        "lease": maybe_leases,
        "turn_id": some.sampled_from(["", "t1"]),
    }
)
filters = some.fixed_dictionaries(
    {"order": some.sampled_from(["created", "updated"]), "limit": some.integers(1, 4)},
    optional={
        "is_archived": some.sampled_from([None, True, False]),
        "title_contains": some.sampled_from(["PLAN", "STRASSE", ""]),
        "tags": some.sampled_from([("x",), ("y", "x")]),
        "tree": new_names,
        "forked_from_thread": new_names,
    },
)


class JournalMachine(RuleBasedStateMachine):
    """The state machine; a subclass implements ``open_journal``."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sessiontree-machine-"))
        self.clock = ManualClock()
        self.sources = seeded_random(1), seeded_random(1)
        self.leases: list[Lease] = []
        self.abandoned: list[Journal] = []
        self.steps = 0
        self.model = open_journal("memory:", clock=self.clock, random=self.sources[0])
        self.real = self._open()

    def open_journal(self, folder: Path, **options: Any) -> Journal:
        """A journal on the store under test; the same folder must give the same store."""
        raise NotImplementedError("implement open_journal: it opens the store under test")

    @initialize(names=some.lists(new_names, min_size=1, max_size=3, unique=True))
    def begin_with_some_threads(self, names: list[str]) -> None:
        """Create one to three threads with three entries each."""
        for name in names:
            self._same(lambda journal, name=name: journal.create_thread(name))
            self._same(lambda journal, name=name: journal.append_many(name, _CONTENTS[:3]))

    @rule(thread=new_names, title=some.sampled_from(["", "Plan", "Straße"]))
    def create_thread(self, thread: str, title: str) -> None:
        """Create a thread, or fail because it exists."""
        self._same(lambda journal: journal.create_thread(thread, title=title))

    @rule(number=numbers, content=contents, id=entry_ids, seconds=some.sampled_from([0, 0.000001]))
    def append(self, number: int, content: Any, id: Any, seconds: float) -> None:
        """Append at the leaf."""
        self.clock.advance(seconds)
        thread = self._thread(number)
        name = self._entry(thread, id)
        self._same(lambda journal: journal.append(thread, content, id=name))

    @rule(data=some.sampled_from(_PICTURES))
    def put_artifact(self, data: bytes) -> None:
        """Store a picture that messages may refer to."""
        self._same(lambda journal: journal.put_artifact(data, mime="image/png"))

    @rule(data=some.sampled_from(_PICTURES))
    def read_artifact(self, data: bytes) -> None:
        """Read a picture, or fail because it was never stored or is gone with the last entry that refers to it."""
        self._same(lambda journal: journal.read_artifact(blob_of(data).hash))

    @rule(number=numbers, content=contents, id=entry_ids, where=somewhere)
    def append_somewhere(self, number: int, content: Any, id: Any, where: dict[str, Any]) -> None:
        """Append with every option."""
        thread = self._thread(number)
        options = {name: self._entry(thread, where[name]) for name in ("parent", "expect_leaf")}
        options |= {"id": self._entry(thread, id), "lease": self._lease(where["lease"]), "turn_id": where["turn_id"]}
        self._same(lambda journal: journal.append(thread, content, **options))

    @rule(number=numbers)
    def append_again(self, number: int) -> None:
        """Append the newest entry again, like a caller who did not get the answer."""
        thread = self._thread(number)
        entries = self._visible(thread)
        if entries:
            last = entries[-1]
            self._same(lambda journal: journal.append(thread, last.payload, id=last.id, turn_id=last.turn_id))

    @rule(
        number=numbers,
        batch=some.lists(some.tuples(entry_ids, contents, maybe_places), max_size=4),
        parent=maybe_places,
        options=some.fixed_dictionaries(
            {},
            optional={
                "on_duplicate": some.just("skip"),
                "moves_leaf": some.just(False),
                "create": some.just(True),
                "fields": some.sampled_from([{"title": "Plan c"}, {"tags": ("x",)}]),
                "expect_version": some.integers(0, 3),
            },
        ),
    )
    def append_many(self, number: int, batch: list[tuple[Any, Any, Any]], parent: Any, options: dict[str, Any]) -> None:
        """Append a batch with every option."""
        thread = self._thread(number)
        entries = [
            NewEntry(id=self._entry(thread, name), content=content, parent=self._entry(thread, above))
            for name, content, above in batch
        ]
        place = self._entry(thread, parent)
        self._same(lambda journal: journal.append_many(thread, entries, parent=place, **options))

    @rule(number=numbers, new_id=new_names)
    def fork_all_branches(self, number: int, new_id: str) -> None:
        """Copy every branch into a new thread."""
        source = self._thread(number)
        self._same(lambda journal: journal.fork(source, new_id=new_id, branches="all"))

    @rule(number=numbers, new_id=some.none() | new_names, at=places, is_before=some.booleans())
    def fork(self, number: int, new_id: str | None, at: Any, is_before: bool) -> None:
        """Fork at or before an entry."""
        source = self._thread(number)
        place = {"before" if is_before else "at": self._entry(source, at)}
        self._same(lambda journal: journal.fork(source, new_id=new_id, **place))

    @rule(number=numbers, leaf=maybe_places)
    def delete_thread(self, number: int, leaf: Any) -> None:
        """Delete a thread."""
        thread = self._thread(number)
        expected = self._entry(thread, leaf)
        self._same(lambda journal: journal.delete_thread(thread, expect_leaf=expected))

    @rule(parts=some.lists(some.tuples(some.sampled_from(_JOINT), numbers, places), min_size=1, max_size=4))
    def commit_together(self, parts: list[tuple[str, int, Any]]) -> None:
        """Change several threads and documents in one commit, or none of them."""
        named = [(verb, self._thread(number), place) for verb, number, place in parts]
        chosen = [(verb, thread, self._entry(thread, place)) for verb, thread, place in named]
        self._same(lambda journal: journal.commit(_changes(chosen)))
        self._same(lambda journal: journal.documents.list("app"))

    @rule(number=numbers, places=some.lists(numbers, max_size=2), leaf=maybe_places)
    def erase(self, number: int, places: list[int], leaf: Any) -> None:
        """Erase contents."""
        thread = self._thread(number)
        wanted = [self._entry(thread, place) for place in places]
        expected = self._entry(thread, leaf)
        self._same(lambda journal: journal.erase(thread, wanted, expect_leaf=expected))

    @rule(number=numbers)
    def prune(self, number: int) -> None:
        """Erase what no leaf and no label reaches."""
        thread = self._thread(number)
        self._same(lambda journal: journal.prune(thread))

    @rule(number=numbers, title=some.sampled_from(["New", "plan b"]), version=some.none() | some.integers(1, 3))
    def update_thread(self, number: int, title: str, version: int | None) -> None:
        """Change the title, with an expected version or without."""
        thread = self._thread(number)
        self._same(lambda journal: journal.update_thread(thread, title=title, expect_version=version))

    @rule(number=numbers, is_archived=some.booleans(), tags=some.sets(some.sampled_from("xyz")))
    def archive(self, number: int, is_archived: bool, tags: set[str]) -> None:
        """Archive or unarchive a thread and set its tags."""
        thread, marks = self._thread(number), tuple(sorted(tags))
        self._same(lambda journal: journal.update_thread(thread, is_archived=is_archived, tags=marks))

    @rule(number=numbers, to=places, leaf=maybe_places, lease=maybe_leases)
    def move_leaf(self, number: int, to: Any, leaf: Any, lease: int | None) -> None:
        """Move the leaf, with an expected leaf and a lease or without."""
        thread = self._thread(number)
        target = self._entry(thread, to)
        options = {"expect_leaf": self._entry(thread, leaf), "lease": self._lease(lease)}
        self._same(lambda journal: journal.move_leaf(thread, target, **options))

    @rule(number=numbers, to=numbers)
    def rewind(self, number: int, to: int) -> None:
        """Rewind to an entry."""
        thread = self._thread(number)
        target = self._entry(thread, to)
        self._same(lambda journal: journal.rewind(thread, target))

    @rule(number=numbers, verb=some.sampled_from(["reset", "undo", "undo", "redo", "retry", "resume"]))
    def move_back_and_forth(self, number: int, verb: str) -> None:
        """Reset, undo, redo, retry or resume."""
        thread = self._thread(number)
        self._same(lambda journal: getattr(journal, verb)(thread))

    @rule(number=numbers, verb=some.sampled_from(["undo", "redo"]))
    def look_at_next_move(self, number: int, verb: str) -> None:
        """Ask which move undo or redo would take back."""
        thread = self._thread(number)
        self._same(lambda journal: getattr(journal, verb)(thread, dry_run=True))

    @rule(number=numbers, to=numbers, name=some.sampled_from(["", "start"]))
    def label(self, number: int, to: int, name: str) -> None:
        """Label an entry and list the labels."""
        thread = self._thread(number)
        target = self._entry(thread, to)
        self._same(lambda journal: journal.label(thread, target, name))
        self._same(lambda journal: journal.labels(thread))

    @rule(
        number=numbers,
        owner=some.sampled_from(["x", "y"]),
        turn=some.sampled_from([None, "t1"]),
        seconds=some.sampled_from([5, 50]),
    )
    def acquire_lease(self, number: int, owner: str, turn: str | None, seconds: int) -> None:
        """Acquire a lease."""
        thread, options = self._thread(number), {"owner": owner, "turn_id": turn, "ttl_seconds": seconds}
        self._same(lambda journal: journal.acquire_lease(thread, **options))

    @rule(which=numbers, verb=some.sampled_from(["renew_lease", "release_lease"]))
    def use_lease(self, which: int, verb: str) -> None:
        """Renew or release a lease."""
        lease = self._lease(which)
        if lease is not None:
            self._same(lambda journal: getattr(journal, verb)(lease))

    @rule(number=numbers)
    def clear_expired_lease(self, number: int) -> None:
        """Clear an expired lease."""
        thread = self._thread(number)
        self._same(lambda journal: journal.clear_expired_lease(thread))

    @rule(seconds=some.sampled_from([0.000000001, 1, 10, 100, -3]))
    def let_time_pass(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.advance(seconds)

    @rule(query=filters)
    def list_threads(self, query: dict[str, Any]) -> None:
        """Walk through the pages of a list."""
        cursor: str | None = None
        for _ in range(10):
            options = {**query, "cursor": cursor}
            cursor = self._same(lambda journal, options=options: journal.list_threads(**options)).cursor
            if cursor is None:
                break

    @rule(number=numbers, entry=places)
    def look_closer(self, number: int, entry: Any) -> None:
        """Read children, paths, entries and new entries."""
        thread = self._thread(number)
        place = self._entry(thread, entry)
        self._same(lambda journal: journal.children(thread, place))
        self._same(lambda journal: journal.path(thread, place, limit=3))
        self._same(lambda journal: journal.entries(thread, after=place, limit=2))
        self._same(lambda journal: journal.entries(thread, after=place, newest_first=True, limit=3))
        self._same(lambda journal: journal.last_entries([thread, "nowhere"]))
        self._same(lambda journal: list(journal.watch(thread, after=place, timeout=0)))

    @rule(
        number=numbers,
        types=some.none() | some.sets(some.sampled_from(["user_message", "turn_marker", "run_failure", "label"])),
        turn=some.sampled_from([None, "", "t1"]),
        newest_first=some.booleans(),
        places=some.lists(numbers, max_size=3),
    )
    def choose_entries(
        self, number: int, types: set[str] | None, turn: str | None, newest_first: bool, places: list[int]
    ) -> None:
        """Read entries by type, turn and id."""
        thread = self._thread(number)
        options: dict[str, Any] = {"types": types, "turn_id": turn, "newest_first": newest_first}
        self._same(lambda journal: journal.entries(thread, limit=3, **options))
        self._same(lambda journal: journal.path(thread, limit=2, types=types))
        self._same(lambda journal: journal.path_bodies(thread, limit=2, types=types))
        wanted = [self._entry(thread, place) for place in places]
        self._same(lambda journal: journal.find_entries(wanted, thread_id=thread))
        assert _anywhere(self.real, wanted) == _anywhere(self.model, wanted)

    @rule(
        key=some.sampled_from(["k", "k/1", "l"]),
        value=some.sampled_from([1, {"a": [None]}, "text"]),
        version=some.sampled_from([None, None, 0, 1]),
        seconds=some.sampled_from([None, 1, 50]),
    )
    def change_document(self, key: str, value: Any, version: int | None, seconds: int | None) -> None:
        """Put a document, and list those that there are."""
        self._same(
            lambda journal: journal.documents.put("app", key, value, expect_version=version, ttl_seconds=seconds)
        )
        self._same(lambda journal: journal.documents.list("app", "k"))
        self._same(lambda journal: journal.documents.scopes())

    @rule(key=some.sampled_from(["k", "k/1", "l"]), is_purge=some.booleans())
    def delete_document(self, key: str, is_purge: bool) -> None:
        """Delete a document, or all that have expired."""
        if is_purge:
            self._same(lambda journal: journal.documents.purge())
        self._same(lambda journal: journal.documents.delete("app", key))
        self._same(lambda journal: journal.documents.get("app", "k"))

    @rule(number=numbers, id=entry_ids, when=some.sampled_from(["next_step", "next_turn"]))
    def enqueue(self, number: int, id: Any, when: Any) -> None:
        """Queue a message and list the inbox."""
        thread = self._thread(number)
        name = self._entry(thread, id)
        self._same(lambda journal: journal.enqueue(thread, user("later"), when=when, id=name))
        self._same(lambda journal: journal.inbox(thread))

    @rule(number=numbers, to=numbers)
    def withdraw(self, number: int, to: int) -> None:
        """Take a message back, or try to take back another entry."""
        thread = self._thread(number)
        waiting = self.model.inbox(thread) if thread in self._threads() else []
        name = waiting[to % len(waiting)].id if waiting else self._entry(thread, to)
        self._same(lambda journal: journal.withdraw(thread, name))

    @rule(number=numbers)
    def run_turn(self, number: int) -> None:
        """Run a turn, which takes what is in the inbox."""
        thread = self._thread(number)
        self._same(lambda journal: _turn(journal, thread))

    @rule()
    def close_and_reopen(self) -> None:
        """Close and open the store."""
        self.real.close()
        self._reopen()

    @rule()
    def crash_and_reopen(self) -> None:
        """Abandon the journal without closing it, as if its process had died."""
        self.abandoned.append(self.real)
        self._reopen()

    @rule()
    def check(self) -> None:
        """Check the store and compare the statistics."""
        assert self.real.check() == []
        self._same(lambda journal: replace(journal.stats(), bytes=0))

    @invariant()
    def threads_look_the_same(self) -> None:
        """Compare one thread after each step, in turn."""
        self.steps += 1
        thread = self._thread(self.steps % 20)
        for verb in ("thread", "path", "entries", "reflog", "active_lease"):
            self._same(lambda journal, verb=verb: getattr(journal, verb)(thread))

    def teardown(self) -> None:
        """Check the store, compare all entries, and remove everything."""
        try:
            assert self.real.check() == []
            for thread in self._threads():
                self._same(lambda journal, thread=thread: journal.entries(thread))
        finally:
            for journal in (self.model, self.real, *self.abandoned):
                journal.close()
            shutil.rmtree(self.folder)

    def _same(self, verb: Callable[..., Any]) -> Any:
        """Run a call on both journals, which must have the same outcome, and return it."""
        expected, actual = _outcome(verb, self.model), _outcome(verb, self.real)
        assert actual == expected
        if isinstance(expected, Lease) and expected not in self.leases:
            self.leases.append(expected)
        return expected

    def _threads(self) -> list[str]:
        return [thread.id for thread in self.model.list_threads(is_archived=None, order="created", limit=1000)]

    def _thread(self, number: int) -> str:
        threads = self._threads()
        return threads[number % len(threads)] if threads and number < 19 else "nowhere"

    def _visible(self, thread: str) -> list[Entry]:
        return self.model.entries(thread) if thread in self._threads() else []

    def _entry(self, thread: str, ref: Any) -> Any:
        """The id for a number: below 18 an entry of the thread, 18 and 19 one of another thread, 20 a missing one."""
        if not isinstance(ref, int):
            return ref
        owner = thread if ref < 18 else self._thread(ref - 18)
        entries = self._visible(owner)
        return entries[-1 - ref % len(entries)].id if entries and ref < 20 else "nowhere"

    def _lease(self, number: int | None) -> Lease | None:
        return None if number is None or not self.leases else self.leases[-1 - number % len(self.leases)]

    def _open(self) -> Journal:
        return self.open_journal(self.folder, clock=self.clock, random=self.sources[1])

    def _reopen(self) -> None:
        """Open both again: a journal remembers the last id that it generated."""
        self.model = Journal(self.model.store, clock=self.clock, random=self.sources[0])
        self.real = self._open()


def machine_settings() -> settings:
    """60 repeatable runs by default, 2,000 random runs in the deep profile."""
    is_deep = os.environ.get("SESSIONTREE_PROFILE") == "deep"
    examples = int(os.environ.get("SESSIONTREE_EXAMPLES", "2000" if is_deep else "60"))
    return settings(
        max_examples=examples,
        stateful_step_count=_STEPS,
        deadline=None,
        derandomize=not is_deep,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def machine_test(machine: type[JournalMachine]) -> Any:
    """A test class that pytest collects."""
    case = machine.TestCase
    case.settings = machine_settings()
    return case


def _anywhere(journal: Journal, entry_ids: list[str]) -> list[str]:
    """Entries by id without a thread, sorted: which tree comes first is up to the store."""
    return sorted(map(repr, journal.find_entries(entry_ids)))


def _changes(parts: list[tuple[str, str, Any]]) -> Changes:
    changes = Changes()
    for verb, thread, place in parts:
        match verb:
            case "append":
                changes.append(thread, user("together"), create=True)
            case "create":
                changes.create_thread("b", contents=[user("one"), assistant("two")])
            case "delete":
                changes.delete_thread(thread)
            case "replace":
                changes.delete_thread(thread).create_thread(thread, contents=[user("again")])
            case "fork":
                changes.fork(thread, at=place, new_id="d")
            case "move":
                changes.move_leaf(thread, place)
            case "put":
                changes.put_document("app", "k", thread)
            case "put_once":
                changes.put_document("app", "l", thread, expect_version=0)
            case _:
                changes.delete_document("app", "k")
    return changes


def _turn(journal: Journal, thread: str) -> list[Entry]:
    with journal.turn(thread, owner="x", turn_id="t1") as turn:
        return turn.append_many([assistant("done")])


def _outcome(verb: Callable[[Journal], Any], journal: Journal) -> Any:
    try:
        result = verb(journal)
    except SessionTreeError as error:
        return type(error), str(error), vars(error)
    return replace(result, bytes=0) if isinstance(result, StoreStats) else result
