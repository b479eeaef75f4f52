"""A state machine that compares a store with the memory store, step by step, over whatever Hypothesis thinks of.

A store author writes::

    class MineMachine(JournalMachine):
        def open_journal(self, folder, **options):
            return st.open(folder / "journal.db", durability="process_crash", **options)

    TestMine = machine_test(MineMachine)

Both journals share one clock and draw from equal random sources, so ids, times and errors must be the same too.
``SESSIONTREE_EXAMPLES`` sets how many runs are tried; ``SESSIONTREE_PROFILE=deep`` tries 2,000.
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
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.errors import SessionTreeError
from sessiontree.journal import Journal
from sessiontree.messages import assistant, user
from sessiontree.model import Entry, Lease, Page, RunFailure, TurnMarker
from sessiontree.opening import open as open_journal
from sessiontree.operations.entries import NewEntry
from sessiontree.queries import StoreStats
from sessiontree.testing.clock import ManualClock, seeded_random

__all__ = ["JournalMachine", "machine_settings", "machine_test"]

_STEPS = 40
_THREADS = ("a", "b", "c/\u2028", "d")
_CONTENTS = (
    user("one"),
    user("two"),
    assistant("three"),
    TurnMarker(status="started"),
    TurnMarker(status="save_point"),
    RunFailure(error="no model"),
)

threads = some.sampled_from(_THREADS)
contents = some.sampled_from(_CONTENTS)
given_ids = some.sampled_from(["e1", "e2", "e3", "e4", "e5", "é\0"])
entry_ids = some.none() | given_ids
refs = given_ids | some.integers(0, 30)
"""An entry: by an id that a caller may have given, or by its place among all entries so far."""
places = some.none() | refs
maybe_places = some.just(UNSET) | some.just(UNSET) | places
maybe_leases = some.none() | some.none() | some.integers(0, 5)
somewhere = some.fixed_dictionaries(
    {
        "parent": maybe_places,
        "expect_leaf": maybe_places,
        "lease": maybe_leases,
        "turn_id": some.sampled_from(["", "t1"]),
    }
)
owners = some.sampled_from(["x", "y"])


class JournalMachine(RuleBasedStateMachine):
    """Give ``open_journal``; everything else is here."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sessiontree-machine-"))
        self.clock = ManualClock()
        self.sources = seeded_random(1), seeded_random(1)
        self.seen: list[str] = []
        self.leases: list[Lease] = []
        self.abandoned: list[Journal] = []
        self.steps = 0
        self.model = open_journal("memory:", clock=self.clock, random=self.sources[0])
        self.real = self._open()

    def open_journal(self, folder: Path, **options: Any) -> Journal:
        """A journal on the store under test; the same folder must give the same store."""
        raise NotImplementedError("a machine opens its store here")

    @rule(thread=threads, title=some.sampled_from(["", "Plan", "Straße"]))
    def create_thread(self, thread: str, title: str) -> None:
        self._same(lambda journal: journal.create_thread(thread, title=title))

    @rule(thread=threads, content=contents, id=entry_ids)
    def append(self, thread: str, content: Any, id: str | None) -> None:
        self._same(lambda journal: journal.append(thread, content, id=id))

    @rule(thread=threads, content=contents, id=entry_ids, where=somewhere)
    def append_somewhere(self, thread: str, content: Any, id: str | None, where: dict[str, Any]) -> None:
        options = {"parent": self._entry(where["parent"]), "expect_leaf": self._entry(where["expect_leaf"])}
        options |= {"lease": self._lease(where["lease"]), "turn_id": where["turn_id"]}
        self._same(lambda journal: journal.append(thread, content, id=id, **options))

    @rule(thread=threads, batch=some.lists(some.tuples(entry_ids, contents), max_size=4), parent=maybe_places)
    def append_many(self, thread: str, batch: list[tuple[str | None, Any]], parent: Any) -> None:
        news = [NewEntry(id=name, content=content) for name, content in batch]
        place = self._entry(parent)
        self._same(lambda journal: journal.append_many(thread, news, parent=place))

    @rule(source=threads, new_id=some.none() | threads, at=places, is_before=some.booleans())
    def fork(self, source: str, new_id: str | None, at: Any, is_before: bool) -> None:
        place = {"before" if is_before else "at": self._entry(at)}
        self._same(lambda journal: journal.fork(source, new_id=new_id, **place))

    @rule(thread=threads)
    def delete_thread(self, thread: str) -> None:
        self._same(lambda journal: journal.delete_thread(thread))

    @rule(thread=threads, title=some.sampled_from(["New", "plan b"]), version=some.none() | some.integers(1, 3))
    def update_thread(self, thread: str, title: str, version: int | None) -> None:
        self._same(lambda journal: journal.update_thread(thread, title=title, expect_version=version))

    @rule(thread=threads, is_archived=some.booleans(), tags=some.sets(some.sampled_from("xyz")))
    def archive(self, thread: str, is_archived: bool, tags: set[str]) -> None:
        marks = tuple(sorted(tags))
        self._same(lambda journal: journal.update_thread(thread, is_archived=is_archived, tags=marks))

    @rule(thread=threads, to=places, leaf=maybe_places, lease=maybe_leases)
    def move_leaf(self, thread: str, to: Any, leaf: Any, lease: int | None) -> None:
        target, options = self._entry(to), {"expect_leaf": self._entry(leaf), "lease": self._lease(lease)}
        self._same(lambda journal: journal.move_leaf(thread, target, **options))

    @rule(thread=threads, to=refs)
    def rewind(self, thread: str, to: Any) -> None:
        target = self._entry(to)
        self._same(lambda journal: journal.rewind(thread, target))

    @rule(thread=threads, verb=some.sampled_from(["reset", "undo", "undo", "redo", "retry", "resume"]))
    def move_back_and_forth(self, thread: str, verb: str) -> None:
        self._same(lambda journal: getattr(journal, verb)(thread))

    @rule(thread=threads, to=refs, name=some.sampled_from(["", "start"]))
    def label(self, thread: str, to: Any, name: str) -> None:
        target = self._entry(to)
        self._same(lambda journal: journal.label(thread, target, name))
        self._same(lambda journal: journal.labels(thread))

    @rule(thread=threads, owner=owners, turn=some.sampled_from([None, "t1"]), seconds=some.sampled_from([5, 50]))
    def acquire_lease(self, thread: str, owner: str, turn: str | None, seconds: int) -> None:
        options = {"owner": owner, "turn_id": turn, "ttl_seconds": seconds}
        self._same(lambda journal: journal.acquire_lease(thread, **options))

    @precondition(lambda self: self.leases)
    @rule(which=some.integers(0, 5), verb=some.sampled_from(["renew_lease", "release_lease"]))
    def use_lease(self, which: int, verb: str) -> None:
        lease = self._lease(which)
        self._same(lambda journal: getattr(journal, verb)(lease))

    @rule(thread=threads)
    def clear_expired_lease(self, thread: str) -> None:
        self._same(lambda journal: journal.clear_expired_lease(thread))

    @rule(seconds=some.sampled_from([0.000000001, 1, 10, 100, -3]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(
        order=some.sampled_from(["created", "updated"]), limit=some.integers(1, 3),
        filters=some.fixed_dictionaries(
            {},
            optional={
                "is_archived": some.sampled_from([None, True, False]),
                "title_contains": some.sampled_from(["PLAN", "STRASSE", ""]),
                "tags": some.sampled_from([("x",), ("y", "x")]),
                "tree": threads,
                "forked_from_thread": threads,
            },
        ),
    )  # fmt: skip
    def list_threads(self, order: str, limit: int, filters: dict[str, Any]) -> None:
        cursor: str | None = None
        for _ in range(10):
            options = {"order": order, "limit": limit, "cursor": cursor, **filters}
            page = self._same(lambda journal, options=options: journal.list_threads(**options))
            assert isinstance(page, Page)
            cursor = page.cursor
            if cursor is None:
                break

    @rule(thread=threads, entry=places)
    def look_closer(self, thread: str, entry: Any) -> None:
        place = self._entry(entry)
        self._same(lambda journal: journal.children(thread, place))
        self._same(lambda journal: journal.path(thread, place, limit=3))
        self._same(lambda journal: journal.entries(thread, after=place, limit=2))
        self._same(lambda journal: list(journal.watch(thread, after=place, timeout=0)))

    @rule()
    def close_and_reopen(self) -> None:
        self.real.close()
        self._reopen()

    @rule()
    def crash_and_reopen(self) -> None:
        """The object is dropped without a word, as if its process had died."""
        self.abandoned.append(self.real)
        self._reopen()

    @rule()
    def check(self) -> None:
        assert self.real.check() == []
        self._same(lambda journal: replace(journal.stats(), bytes=0))

    @invariant()
    def threads_look_the_same(self) -> None:
        """One thread after each step, in turn."""
        self.steps += 1
        thread = _THREADS[self.steps % len(_THREADS)]
        for verb in ("thread", "path", "entries", "reflog", "active_lease"):
            self._same(lambda journal, verb=verb: getattr(journal, verb)(thread))

    def teardown(self) -> None:
        try:
            assert self.real.check() == []
            for thread in _THREADS:
                self._same(lambda journal, thread=thread: journal.entries(thread))
        finally:
            for journal in (self.model, self.real, *self.abandoned):
                journal.close()
            shutil.rmtree(self.folder)

    def _same(self, verb: Callable[..., Any]) -> Any:
        """What a verb gives on both journals, which must not differ."""
        expected, actual = _outcome(verb, self.model), _outcome(verb, self.real)
        assert actual == expected
        self._remember(expected)
        return expected

    def _remember(self, result: Any) -> None:
        match result:
            case Lease() if result not in self.leases:
                self.leases.append(result)
            case Entry() if result.id not in self.seen:
                self.seen.append(result.id)
            case [Entry(), *_]:
                for entry in result:
                    self._remember(entry)

    def _entry(self, ref: Any) -> Any:
        if not isinstance(ref, int):
            return ref
        return self.seen[ref % len(self.seen)] if self.seen else "nowhere"

    def _lease(self, number: int | None) -> Lease | None:
        return None if number is None or not self.leases else self.leases[-1 - number % len(self.leases)]

    def _open(self) -> Journal:
        return self.open_journal(self.folder, clock=self.clock, random=self.sources[1])

    def _reopen(self) -> None:
        """The model gets a new journal too, as a journal remembers the last id that it made."""
        self.model = Journal(self.model.store, clock=self.clock, random=self.sources[0])
        self.real = self._open()


def machine_settings() -> settings:
    """How much to try: a repeatable handful by default, 2,000 random runs in the deep profile."""
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


def _outcome(verb: Callable[[Journal], Any], journal: Journal) -> Any:
    try:
        result = verb(journal)
    except SessionTreeError as error:
        return type(error), str(error), vars(error)
    return replace(result, bytes=0) if isinstance(result, StoreStats) else result
