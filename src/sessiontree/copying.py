"""Copy a whole store into another one, of whatever kind.

What is carried: every thread with all its metadata and its version, every entry with its id, parent, time, turn and
content, forks as forks (shared entries stay shared), the reflog and the leaf of each thread, and the files of every
checkpoint. Leases are not: they belong to processes that run on the source. A copy can be interrupted and repeated;
what is there already is not written again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from os import PathLike

from sessiontree.codec import content_hash, seal
from sessiontree.commands import DeleteThread, Draft, ImportThread, Placed
from sessiontree.copying_blobs import import_steps
from sessiontree.copying_families import Family, gone_of, living_of
from sessiontree.copying_order import End, Make, in_order, stand_ins
from sessiontree.errors import CopyMismatchError, EntryNotFoundError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model import Entry, Move, Thread
from sessiontree.model.record import Record
from sessiontree.opening import open as open_journal
from sessiontree.operations.entries import weight_of
from sessiontree.rules.importing import plain

__all__ = ["CopyReport", "copy_store"]

_CHUNK = 500
_PAGE = 500

Place = str | PathLike[str] | Journal


class CopyReport(Record, frozen=True, kw_only=True):
    """What the source holds and the target holds now, checked entry by entry."""

    threads: int = 0
    entries: int = 0
    moves: int = 0
    copied: int = 0
    """Entries that this run had to write."""
    blobs: int = 0
    """Files and file lists that this run had to write."""


def copy_store(source: Place, target: Place, *, progress: Callable[[CopyReport], None] | None = None) -> CopyReport:
    """Copy everything from one store into another, and compare every content hash afterwards.

    Both are addresses or open journals; nobody should write to the source meanwhile. ``progress`` is called with
    what was done so far, after each tree. A target that holds something else under the same id, also that
    of a deleted thread that forks still show, is refused (ConflictError), and what came out different is
    CopyMismatchError.

    >>> import sessiontree as st
    >>> with st.open("memory:") as source, st.open("memory:") as target:
    ...     thread = source.create_thread(title="demo")
    ...     _ = source.append(thread.id, st.user("hello"))
    ...     copy_store(source, target).entries
    1
    """
    with ExitStack() as stack:
        old, new = (_opened(place, stack) for place in (source, target))
        report = CopyReport()
        for threads in _together(old):
            for part in _copy(old, new, threads):
                report = _added(report, part)
            if progress is not None:
                progress(report)
        return report


def _opened(place: Place, stack: ExitStack) -> Journal:
    return place if isinstance(place, Journal) else stack.enter_context(open_journal(place))


def _trees(journal: Journal) -> Iterator[list[Thread]]:
    """All threads, tree by tree."""
    trees: dict[str, list[Thread]] = {}
    cursor: str | None = None
    while True:
        page = journal.list_threads(is_archived=None, order="created", limit=_PAGE, cursor=cursor)
        for thread in page:
            trees.setdefault(thread.tree, []).append(thread)
        cursor = page.cursor
        if cursor is None:
            break
    yield from trees.values()


def _together(journal: Journal) -> Iterator[list[Thread]]:
    """Tree by tree; trees with deleted threads, and with threads that bear the names of those, in one go."""
    trees = list(_trees(journal))
    forked = [threads for threads in trees if any(thread.forked_from_entry for thread in threads)]
    gone = {threads[0].tree: gone_of(journal, living_of(journal, threads)) for threads in forked}
    names = {family.thread.id for families in gone.values() for family in families}
    tangled: list[Thread] = []
    for threads in trees:
        if gone.get(threads[0].tree) or any(thread.id in names for thread in threads):
            tangled += threads
        else:
            yield threads
    if tangled:
        yield tangled


def _copy(old: Journal, new: Journal, threads: Sequence[Thread]) -> Iterator[CopyReport]:
    """Deleted threads are made, forked from and deleted again, so that what they left behind is theirs here too."""
    families = _families(old, threads)
    finished = [family for family in families if family.is_gone and _was_finished(new, family, families)]
    for step in in_order([family for family in families if not any(family is one for one in finished)]):
        match step:
            case Make(family=family):
                yield _copy_thread(old, new, family)
            case End(family=family):
                new.store.commit(DeleteThread(thread_id=family.thread.id))
    for family in finished:
        yield CopyReport(entries=len(family.own))
        for keeper in stand_ins(family, families):
            if _holds(new, keeper.thread):
                new.store.commit(DeleteThread(thread_id=keeper.thread.id))
    for thread in threads:
        _compare(old, new, thread.id)


def _families(old: Journal, threads: Sequence[Thread]) -> list[Family]:
    families: list[Family] = []
    trees: dict[str, list[Thread]] = {}
    for thread in threads:
        trees.setdefault(thread.tree, []).append(thread)
    for tree in trees.values():
        living = living_of(old, tree)
        families += [*gone_of(old, living), *living]
    return families


def _was_finished(new: Journal, gone: Family, families: Sequence[Family]) -> bool:
    """Whether an earlier run came as far as deleting it: others show what it left behind, and it is not there."""
    if _holds(new, gone.thread):
        return False
    return all(
        _shows(new, keeper.thread.id, keeper.base)
        or any(keeper.base in family.inherited and _shows(new, family.thread.id, keeper.base) for family in families)
        for keeper in stand_ins(gone, families)
    )


def _shows(journal: Journal, thread_id: str, entry_id: str | None) -> bool:
    try:
        return entry_id is not None and journal.entry(thread_id, entry_id).id == entry_id
    except (ThreadNotFoundError, EntryNotFoundError):
        return False


def _holds(journal: Journal, thread: Thread) -> bool:
    try:
        return plain(journal.thread(thread.id)) == plain(thread)
    except ThreadNotFoundError:
        return False


def _copy_thread(old: Journal, new: Journal, family: Family) -> CopyReport:
    thread = family.thread
    new.store.commit(ImportThread(thread=thread, base=family.base))
    known = {entry.id for entry in new.entries(thread.id)}
    moved = len(new.reflog(thread.id))
    missing = [
        step
        for step in _history(family)
        if (step.draft.id not in known if isinstance(step, Placed) else step.number > moved)
    ]
    blobs = sum(
        import_steps(old, new, thread.id, missing[start : start + _CHUNK]) for start in range(0, len(missing), _CHUNK)
    )
    copied = sum(isinstance(step, Placed) for step in missing)
    return CopyReport(
        threads=int(not family.is_gone),
        entries=len(family.own),
        moves=len(family.moves),
        copied=copied,
        blobs=blobs,
    )


def _history(family: Family) -> Iterator[Placed | Move]:
    """Entries and moves, woven as they happened: a move that starts at the present leaf comes before the next entry,
    because that leaf would not come back without one."""
    leaf = family.base
    moves = deque(family.moves)
    for entry in family.own:
        while moves and moves[0].from_entry == leaf:
            leaf = moves[0].to_entry
            yield moves.popleft()
        yield Placed(parent=entry.parent, draft=_draft(entry))
        leaf = entry.id
    yield from moves


def _draft(entry: Entry) -> Draft:
    payload, body = seal(entry.payload)
    messages, tokens = weight_of(payload)
    return Draft(
        id=entry.id,
        payload=payload,
        body=body,
        created_ns=entry.created_ns,
        turn_id=entry.turn_id,
        messages=messages,
        tokens=tokens,
    )


def _compare(old: Journal, new: Journal, thread_id: str) -> None:
    """Everything that a reader could see of a thread, on both sides."""
    for mine, theirs in zip_longest(old.entries(thread_id), new.entries(thread_id)):
        if mine is None or theirs is None or _mark(mine) != _mark(theirs):
            raise CopyMismatchError(thread_id, (mine or theirs).id)
    is_same = plain(old.thread(thread_id)) == plain(new.thread(thread_id))
    if not is_same or old.thread(thread_id).leaf != new.thread(thread_id).leaf:
        raise CopyMismatchError(thread_id, "")
    if old.reflog(thread_id) != new.reflog(thread_id):
        raise CopyMismatchError(thread_id, "")


def _mark(entry: Entry) -> tuple[object, ...]:
    return (
        entry.id, entry.parent, entry.thread_id, entry.created_ns, entry.turn_id, content_hash(entry.payload),
    )  # fmt: skip


def _added(one: CopyReport, other: CopyReport) -> CopyReport:
    return CopyReport(
        threads=one.threads + other.threads,
        entries=one.entries + other.entries,
        moves=one.moves + other.moves,
        copied=one.copied + other.copied,
        blobs=one.blobs + other.blobs,
    )
