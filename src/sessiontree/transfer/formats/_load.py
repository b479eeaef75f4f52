"""Import the records of one session into a journal: repeatable, and tolerant of broken records."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidInputError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Draft, Journal, make_draft
from sessiontree.model import Checkpoint, Thread, ThreadFields
from sessiontree.model.artifacts import artifacts_of
from sessiontree.transfer.formats._batches import OURS, Batches, Start, has_files, is_same, update_fields
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, with_origin
from sessiontree.transfer.formats._resume import UNFINISHED, LooksBackError, save_point

__all__ = ["load"]


_FIRST_TOO_LATE = 1 << 63
_MOST_WAITING = 10_000


def load(journal: Journal, session: ImportedSession, tally: Tally, *, format_name: str, prefix: str) -> None:
    """Bring one session up to date with its source; entries that the journal already has are not changed.

    If a session that goes on refers to what was read before, its source is read as a whole.
    """
    notes = len(tally.notes)
    try:
        _load(journal, session, tally, format_name=format_name, prefix=prefix)
    except LooksBackError:
        assert session.goes_on is not None
        tally.forget_notes(notes)
        for one in session.goes_on.whole():
            _load(journal, one, tally, format_name=format_name, prefix=prefix)


def _load(journal: Journal, session: ImportedSession, tally: Tally, *, format_name: str, prefix: str) -> None:
    thread_id = prefix + session.id
    if session.fork is not None and session.alone is not None and not _can_fork(journal, prefix, session):
        session = session.alone()
    if session.fork is not None:
        session = session._replace(fork=(prefix + session.fork[0], session.fork[1]))
    if prefix:
        session = _with_prefixed_parent(session, prefix)
    try:
        exported = None if prefix else session.find(journal)
        start = Start(exported, "found") if exported else _find_or_begin(journal, session, thread_id, format_name)
    except (InvalidInputError, EntryNotFoundError, ThreadNotFoundError) as error:
        tally.note("damage", session.place, f"the session cannot be created: {error}", thread_id=thread_id)
        return
    batches = Batches(journal, start, session.place, tally, format_name, goes_on=session.goes_on is not None)
    try:
        batches.begin()
        _import_records(journal, session, batches, tally)
    except InvalidInputError as error:
        batches.note("damage", f"the session cannot be imported: {error}")
    except (ThreadExistsError, DuplicateEntryError, ThreadNotFoundError) as error:
        batches.note("conflict", _why_left_out(error, start.thread.id))


def _with_prefixed_parent(session: ImportedSession, prefix: str) -> ImportedSession:
    """The session with the prefix before the name of its parent, which comes from the same source."""

    def prefixed(fields: ThreadFields) -> ThreadFields:
        parent = fields.get("parent_thread")
        return {**fields, "parent_thread": prefix + parent} if parent else fields

    def finish(thread: Thread) -> ThreadFields:
        return prefixed(session.finish(thread))

    return session._replace(fields=prefixed(session.fields), finish=finish)


def _can_fork(journal: Journal, prefix: str, session: ImportedSession) -> bool:
    """Whether the entry to fork from is there, and the thread was not imported without it before."""
    assert session.fork is not None
    source, at = prefix + session.fork[0], session.fork[1]
    try:
        journal.entry(source, at)
        return journal.thread(prefix + session.id).forked_from_thread == source
    except EntryNotFoundError:
        return False
    except ThreadNotFoundError as error:
        return error.thread_id != source


def _import_records(journal: Journal, session: ImportedSession, batches: Batches, tally: Tally) -> None:
    stream = _Stream(journal, batches)
    if session.fork is not None:
        before = batches.before
        stream.inherit(entry.id for entry in journal.path(before.id, before.forked_from_entry or None))
    if session.goes_on is not None:
        stream.inherit(session.goes_on.entries)
    last_size = tally.bytes_read
    for item in session.items:
        stream.read(item, tally.bytes_read - last_size)
        last_size = tally.bytes_read
    stream.finish()
    thread, left = _with_leaf(journal, batches, stream, session)
    if batches.format_name != OURS:
        update_fields(journal, thread, left, session, batches.format_name)
    point = session.resume_point()
    if point is not None and stream.is_as_in_source:
        save_point(journal, thread.id, point)


def _why_left_out(error: ThreadExistsError | DuplicateEntryError | ThreadNotFoundError, thread_id: str) -> str:
    match error:
        case ThreadExistsError():
            return f"the journal has another thread {thread_id!r}; import with a prefix to keep both"
        case DuplicateEntryError():
            return (
                f"record {error.entry_id!r} is already an entry of another thread in the same tree, such as a fork of a"
                " deleted thread; import with a prefix to get all records"
            )
        case ThreadNotFoundError():
            return f"thread {thread_id!r} was deleted during the import; import again to restore it"


def _find_or_begin(journal: Journal, session: ImportedSession, thread_id: str, format_name: str) -> Start:
    with suppress(ThreadNotFoundError):
        return Start(journal.thread(thread_id), "found")
    if session.goes_on is not None:
        raise LooksBackError(thread_id)
    fields: ThreadFields = {"updated_ns": _time(session.updated_ns), **session.fields}
    if format_name != OURS:
        fields["origin"] = {"format": format_name, **fields.get("origin", {}), UNFINISHED: None}
    created = _time(session.created_ns)
    if session.fork is None:
        thread = Thread(id=thread_id, tree=thread_id, created_ns=created, **fields)
        return Start(thread, "missing", fields)
    source, at = session.fork
    try:
        return Start(journal.fork(source, at=at, new_id=thread_id, created_ns=created, **fields), "created")
    except ThreadExistsError:
        # Another import of the same source was faster.
        return Start(journal.thread(thread_id), "found")


def _time(time_ns: int) -> int:
    """The time, or 0 where it does not fit into 64 bits."""
    return time_ns if -_FIRST_TOO_LATE <= time_ns < _FIRST_TOO_LATE else 0


def _draft_of(item: ImportedRecord) -> Draft:
    payload, entry_id, created_ns, _, turn_id, blobs = item
    hashes = tuple([blob.hash for blob in blobs]) if blobs else ()
    return make_draft(payload, id=entry_id, created_ns=_time(created_ns), turn_id=turn_id, blobs=hashes)


def _with_leaf(
    journal: Journal, batches: Batches, stream: _Stream, session: ImportedSession
) -> tuple[Thread, str | None]:
    """Move the leaf to the source's; returns the thread and the leaf to remember as that of this import.

    A thread that was continued or rewound in the journal keeps its leaf. Then the leaf of the last import is remembered
    again, so that the next one still sees that it was moved.
    """
    wanted = session.leaf()
    target = stream.tip if wanted is UNSET else stream.found(wanted) if isinstance(wanted, str) else None
    left, before = target, batches.before
    if not batches.is_new and _was_moved_here(journal, batches, stream, target):
        target, left = batches.leaf_before, before.origin.get("leaf")
        if batches.added:
            problem = f"{batches.added} new records are on a separate branch: the thread was continued in the journal"
            batches.note("hint", problem)
    elif not batches.is_new and before.leaf not in (None, target) and not stream.has_read(before.leaf):
        if not batches.added and wanted is UNSET:
            # A log that was cut, or another copy of it: its head only moves forward. A source that names its head is followed.
            target = left = before.leaf
        elif session.goes_on is None:
            batches.note("hint", f"the leaf {before.leaf!r} is not in the source; it is on a separate branch now")
    thread = journal.thread(before.id)
    if thread.leaf != target:
        thread = journal.move_leaf(thread.id, target, at_ns=_time(session.updated_ns))
    return thread, left


def _was_moved_here(journal: Journal, batches: Batches, stream: _Stream, target: str | None) -> bool:
    """Whether the leaf was moved in the journal since the last import, by an append or a move.

    Threads of our own files do not record where the last import left it. They count as moved if they continue from
    the source's leaf.
    """
    tip, before = batches.leaf_before, batches.before
    if batches.format_name != OURS:
        return tip != before.origin.get("leaf")
    if tip is None or stream.has_read(tip):
        return False
    return target is None or _is_on_path(journal, before, target, tip)


def _is_on_path(journal: Journal, thread: Thread, entry_id: str, leaf: str) -> bool:
    return entry_id in {entry.id for entry in journal.path(thread.id, leaf)}


class _Stream:
    """The records of one session in the order of the source, adapted to the journal's rules.

    A record whose parent was not read yet waits for it. If the parent never comes, the record goes under the one that
    was read before it, so that a gap in a file does not cut a conversation in two.
    """

    def __init__(self, journal: Journal, batches: Batches) -> None:
        self._journal = journal
        self._batches = batches
        self.tip: str | None = None
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}
        self._dropped: dict[str | None, str | None] = {}
        self._waiting: dict[str, list[tuple[ImportedRecord, str | None]]] = {}
        self._waits: set[str] = set()

    def inherit(self, entry_ids: Iterable[str]) -> None:
        """Register entries that are there already: of the thread that this one was forked from, or of an earlier import."""
        for entry_id in entry_ids:
            self._seen.add(entry_id)
            self.tip = entry_id

    def read(self, item: ImportedRecord, size: int = 0) -> None:
        self._batches.size += size
        if isinstance(item.payload, Checkpoint):
            item = self._with_files_or_without(item, item.payload)
        elif self._batches.format_name == OURS:  # the others bring the artifacts of a record with it
            self._batches.expect_artifacts(item.id, artifacts_of(item.payload))
        parent = item.parent
        if parent is UNSET:
            self._place_item(item, self.tip)
        elif parent is None or parent in self._seen:
            self._place_item(item, self.named(parent) if parent else None)
        else:
            assert isinstance(parent, str)
            self._waiting.setdefault(parent, []).append((item, self.tip))
            self._waits.add(item.id)
            if len(self._waits) > _MOST_WAITING:
                self._adopt_oldest()

    def _with_files_or_without(self, item: ImportedRecord, checkpoint: Checkpoint) -> ImportedRecord:
        """The checkpoint; without its manifest, and noted, if its files are neither in the source nor in the store."""
        name = checkpoint.manifest
        if not name or has_files(self._journal, name, (*item.blobs, *self._batches.blobs)):
            return item
        self._batches.note(
            "damage", f"the files of checkpoint {item.id!r} are missing in the source; it cannot be restored"
        )
        kept = replace(checkpoint, manifest="", origin={**checkpoint.origin, "manifest": name})
        return item._replace(payload=kept, blobs=())

    def finish(self) -> None:
        while self._waiting:
            self._adopt_oldest()
        self._batches.finish()

    def found(self, entry_id: str) -> str | None:
        """The leaf that the source names, or the last record if that one is missing."""
        if entry_id in self._seen:
            return self.named(entry_id)
        if self.tip is not None:
            self._batches.note("repair", f"the leaf {entry_id!r} is missing; the thread ends at {self.tip!r}")
        return self.tip

    @property
    def is_as_in_source(self) -> bool:
        """Whether every record has the id that the source gives it."""
        return not (self._names or self._dropped)

    def has_read(self, entry_id: str | None) -> bool:
        return entry_id in self._seen

    def named(self, entry_id: str) -> str | None:
        """The id that a record of the source has in the journal."""
        found: str | None = self._names.get(entry_id, entry_id)
        while found in self._dropped:
            found = self._dropped[found]
        return found

    def _adopt_oldest(self) -> None:
        missing = self._first_missing()
        for item, before in self._take(missing):
            adopted = item._replace(payload=with_origin(item.payload, parent=missing))
            problem = f"the parent {missing!r} of record {item.id!r} is missing; the record was put under {before!r}"
            self._batches.note("repair", problem)
            self._place_item(adopted, before)

    def _first_missing(self) -> str:
        """The oldest missing parent that does not wait itself; in a cycle the oldest of all."""
        roots = (parent for parent in self._waiting if parent not in self._waits)
        return next(roots, next(iter(self._waiting)))

    def _take(self, parent: str) -> list[tuple[ImportedRecord, str | None]]:
        group = self._waiting.pop(parent, [])
        self._waits.difference_update(item.id for item, _ in group)
        return group

    def _place_item(self, item: ImportedRecord, parent: str | None) -> None:
        if not self._waiting:
            self._put(item, parent)
            return
        todo = [(item, parent)]
        while todo:
            one, under = todo.pop()
            self._put(one, under)
            todo += [(child, self.named(one.id)) for child, _ in reversed(self._take(one.id))]

    def _put(self, item: ImportedRecord, parent: str | None) -> None:
        if item.id in self._seen:
            self._put_again(item, parent)
            return
        self._batches.check_place(item.id, parent)
        if parent != self.tip or self._batches.is_full():
            self._batches.flush()
        self._seen.add(item.id)
        try:
            draft = _draft_of(item)
        except InvalidInputError as error:
            self._drop_or_keep(item, parent, error)
            return
        self._batches.put(draft, item.blobs, parent)
        self.tip = item.id

    def _drop_or_keep(self, item: ImportedRecord, parent: str | None, error: InvalidInputError) -> None:
        """Leave an invalid record out. Its children go under the journal's earlier form of it, or under its parent."""
        if self._batches.keep(item.id):
            self.tip = item.id
            return
        self._dropped[item.id] = parent
        self._batches.note("damage", f"record {item.id!r}: {error}")

    def _put_again(self, item: ImportedRecord, parent: str | None) -> None:
        """Handle an id that occurs twice: an equal record is left out, a different one gets a new id."""
        self._batches.flush()
        stored = self._batches.stored(self.named(item.id) or item.id)
        if stored and is_same(stored.payload, item.payload):
            self._batches.note("repair", f"record {item.id!r} occurs twice; the second one was left out")
            return
        number = 2
        while (name := f"{item.id}~{number}") in self._seen:
            number += 1
        self._batches.note("repair", f"two records have the id {item.id!r}; the second one was renamed to {name!r}")
        self._names[item.id] = name
        self._put(item._replace(id=name, payload=with_origin(item.payload, id=item.id)), parent)
