"""Pouring the records of a session into a journal: repeatable, and past everything that is broken."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.commands import Draft
from sessiontree.errors import EntryNotFoundError, InvalidInputError, ThreadExistsError, ThreadNotFoundError
from sessiontree.formats.batches import OURS, Batches, Start, is_same
from sessiontree.formats.contents import has_files
from sessiontree.formats.fields import settle_fields
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, Session, with_origin
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Thread, ThreadFields
from sessiontree.operations.entries import draft_as_given
from sessiontree.operations.threads import thread_as_given

__all__ = ["load"]

_TIMES = 1 << 63
_MOST_WAITING = 10_000


def load(journal: Journal, session: Session, tally: Tally, *, format_name: str, prefix: str) -> None:
    """Bring one session up to date with its source; nothing that the journal holds is changed."""
    thread_id = prefix + session.id
    if session.fork is not None:
        session = session._replace(fork=(prefix + session.fork[0], session.fork[1]))
    try:
        start = _find_or_begin(journal, session, thread_id, format_name)
    except (InvalidInputError, EntryNotFoundError, ThreadNotFoundError) as error:
        tally.note("damage", session.place, f"the session cannot be created: {error}", thread_id=thread_id)
        return
    batches = Batches(journal, start, session.place, tally, format_name)
    stream = _Stream(journal, batches)
    try:
        batches.refuse_another()
        tally.threads[thread_id] = None
        if session.fork is not None:
            stream.inherit(entry.id for entry in journal.path(thread_id, start.thread.forked_from_entry or None))
        last_size = tally.bytes_read
        for item in session.items:
            stream.read(item, tally.bytes_read - last_size)
            last_size = tally.bytes_read
        stream.finish()
    except ThreadExistsError:
        batches.note("conflict", f"the journal has another thread {thread_id!r}; import with a prefix to keep both")
        tally.threads.pop(thread_id, None)
        return
    loaded = _with_leaf(journal, batches, stream, session)
    if format_name != OURS:
        settle_fields(journal, loaded, session, format_name)


def _find_or_begin(journal: Journal, session: Session, thread_id: str, format_name: str) -> Start:
    with suppress(ThreadNotFoundError):
        return Start(journal.thread(thread_id), "found")
    fields: ThreadFields = {**session.fields}
    if format_name != OURS:
        fields["origin"] = {"format": format_name, **fields.get("origin", {})}
    created, updated = _time(session.created_ns), _time(session.updated_ns)
    if session.fork is None:
        return Start(thread_as_given(thread_id, created, updated, fields), "to be made")
    source, at = session.fork
    try:
        return Start(journal.fork(source, at=at, new_id=thread_id, created_ns=created, **fields), "made")
    except ThreadExistsError:
        # Another import of the same source was faster.
        return Start(journal.thread(thread_id), "found")


def _time(time_ns: int) -> int:
    """A time that a store can hold; one that is none of this world counts as none."""
    return time_ns if -_TIMES <= time_ns < _TIMES else 0


def _draft_of(item: Item) -> Draft:
    payload, entry_id, created_ns, _, turn_id, blobs = item
    hashes = tuple([blob.hash for blob in blobs]) if blobs else ()
    return draft_as_given(entry_id, payload, _time(created_ns), turn_id, hashes)


def _with_leaf(journal: Journal, batches: Batches, stream: _Stream, session: Session) -> Thread:
    """The thread with the tip that the source has; where somebody went on in the journal, their tip stays."""
    wanted = session.leaf()
    target = stream.last() if wanted is UNSET else stream.found(wanted) if isinstance(wanted, str) else None
    before = batches.before
    if not batches.is_new and _was_moved_here(journal, before, stream):
        target = before.leaf
        if batches.added:
            problem = f"{batches.added} new records are on a branch of their own: the thread was continued here"
            batches.note("hint", problem)
    thread = journal.thread(before.id)
    if thread.leaf == target:
        return thread
    return journal.move_leaf(thread.id, target, at_ns=_time(session.updated_ns))


def _was_moved_here(journal: Journal, before: Thread, stream: _Stream) -> bool:
    """Whether somebody appended or moved the leaf since the last import; an import that broke off did not."""
    left_by_import = before.origin.get("leaf", before.leaf)
    if before.leaf == left_by_import:
        return False
    if before.leaf is None or not stream.has_read(before.leaf):
        return True
    return before.leaf in {entry.id for entry in journal.path(before.id, left_by_import)}


class _Stream:
    """The records of one session in the order of the source, made fit for the journal's rules.

    A record whose parent was not read yet waits for it. Where the parent never comes, the record hangs from the one
    that was stored before it, so that a hole in a file does not cut a conversation in two.
    """

    def __init__(self, journal: Journal, batches: Batches) -> None:
        self._journal = journal
        self._batches = batches
        self._tip: str | None = None
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}
        self._dropped: dict[str | None, str | None] = {}
        self._waiting: dict[str, list[tuple[Item, str | None]]] = {}
        self._waits: set[str] = set()

    def inherit(self, entry_ids: Iterable[str]) -> None:
        """Entries of another thread that this one sees."""
        for entry_id in entry_ids:
            self._seen.add(entry_id)
            self._tip = entry_id

    def read(self, item: Item, size: int = 0) -> None:
        self._batches.size += size
        if isinstance(item.payload, Checkpoint):
            item = self._with_files_or_without(item, item.payload)
        parent = item.parent
        if parent is UNSET:
            self._place_item(item, self._tip)
        elif parent is None or parent in self._seen:
            self._place_item(item, self.named(parent) if parent else None)
        else:
            assert isinstance(parent, str)
            self._waiting.setdefault(parent, []).append((item, self._tip))
            self._waits.add(item.id)
            if len(self._waits) > _MOST_WAITING:
                self._adopt_oldest()

    def _with_files_or_without(self, item: Item, checkpoint: Checkpoint) -> Item:
        """A checkpoint whose files are neither in the source nor in the store is kept without them, and named."""
        name = checkpoint.manifest
        if not name or has_files(self._journal, name, (*item.blobs, *self._batches.blobs)):
            return item
        self._batches.note(
            "damage", f"the files of checkpoint {item.id!r} are not in the source; it cannot be restored here"
        )
        kept = replace(checkpoint, manifest="", origin={**checkpoint.origin, "manifest": name})
        return item._replace(payload=kept, blobs=())

    def finish(self) -> None:
        while self._waiting:
            self._adopt_oldest()
        self._batches.finish()

    def last(self) -> str | None:
        """The last record, under the id that it has in the journal."""
        return self._batches.name_of(self._tip)

    def found(self, entry_id: str) -> str | None:
        """The tip that the source names, or the last record where that one is lost."""
        if entry_id in self._seen:
            return self.named(entry_id)
        last = self.last()
        if last is not None:
            self._batches.note("repair", f"the tip {entry_id!r} is missing; the thread ends at {last!r}")
        return last

    def has_read(self, entry_id: str) -> bool:
        return entry_id in self._seen

    def named(self, entry_id: str) -> str | None:
        """The id under which a record of the source is in the journal."""
        found: str | None = self._names.get(entry_id, entry_id)
        while found in self._dropped:
            found = self._dropped[found]
        return self._batches.name_of(found)

    def _adopt_oldest(self) -> None:
        missing = self._first_missing()
        for item, before in self._take(missing):
            adopted = item._replace(payload=with_origin(item.payload, parent=missing))
            problem = f"the parent {missing!r} of record {item.id!r} is missing; it follows {before!r} now"
            self._batches.note("repair", problem)
            self._place_item(adopted, before)

    def _first_missing(self) -> str:
        """The oldest parent that is waited for and does not wait itself; in a ring the oldest of all."""
        roots = (parent for parent in self._waiting if parent not in self._waits)
        return next(roots, next(iter(self._waiting)))

    def _take(self, parent: str) -> list[tuple[Item, str | None]]:
        group = self._waiting.pop(parent, [])
        self._waits.difference_update(item.id for item, _ in group)
        return group

    def _place_item(self, item: Item, parent: str | None) -> None:
        if not self._waiting:
            self._put(item, parent)
            return
        todo = [(item, parent)]
        while todo:
            one, under = todo.pop()
            self._put(one, under)
            todo += [(child, self.named(one.id)) for child, _ in reversed(self._take(one.id))]

    def _put(self, item: Item, parent: str | None) -> None:
        if item.id in self._seen:
            self._put_again(item, parent)
            return
        if parent != self._tip or self._batches.is_full():
            self._batches.flush()
        self._seen.add(item.id)
        try:
            draft = _draft_of(item)
        except InvalidInputError as error:
            self._drop(item, parent, error)
            return
        self._batches.put(draft, item.blobs, parent)
        self._tip = item.id

    def _drop(self, item: Item, parent: str | None, error: InvalidInputError) -> None:
        """No store can hold it: what comes after it hangs from the record before it."""
        self._dropped[item.id] = parent
        self._tip = parent
        self._batches.note("damage", f"record {item.id!r}: {error}")

    def _put_again(self, item: Item, parent: str | None) -> None:
        """An id that occurs twice: the same record is left out, another one gets a name of its own."""
        self._batches.flush()
        stored = self._batches.stored(self.named(item.id) or item.id)
        if stored and stored.parent == parent and is_same(stored.payload, item.payload):
            self._batches.note("repair", f"record {item.id!r} stands there twice")
            return
        number = 2
        while (name := f"{item.id}~{number}") in self._seen:
            number += 1
        self._batches.note("repair", f"two records have the id {item.id!r}; the later one is {name!r} now")
        self._names[item.id] = name
        self._put(item._replace(id=name, payload=with_origin(item.payload, id=item.id)), parent)
