"""What can be done with a thread: every write is undoable, or asks.

An action answers with a sentence about what happened, and with the request that takes it back.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from sessiontree.compaction import CompactionResult
from sessiontree.errors import ActiveTurnError, InvalidInputError
from sessiontree.model import Checkpoint, Record, Thread
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.render.entries import words_of
from sessiontree.render.figures import count, plural
from sessiontree.render.threads import title_of
from sessiontree.web.addresses import thread_url
from sessiontree.web.declare import Action
from sessiontree.web.site import Visit
from sessiontree.workspace import Conflicts, RestorePlan

__all__ = ["ACTIONS"]


_SHORT = 40

Title = Annotated[str, Meta(max_length=500)]
Name = Annotated[str, Meta(max_length=100)]


class Undo(Record, frozen=True, kw_only=True):
    """The request that takes an action back."""

    path: str
    body: dict[str, Any] = {}


class Done(Record, frozen=True, kw_only=True):
    """What happened; ``go`` is the page to show now, if it is another one."""

    said: str
    undo: Undo | None = None
    go: str = ""


class OnThread(Record, frozen=True, kw_only=True):
    """A thread."""

    thread: str


class OnEntry(Record, frozen=True, kw_only=True):
    """An entry of a thread."""

    thread: str
    entry: str


async def fork(visit: Visit, asked: OnEntry) -> Done:
    """Create a thread that shares the entries up to this one."""
    source = await visit.journal.thread(asked.thread)
    title = one_line(f"{title_of(source, visit.now)} (fork)", 200)
    made = await visit.journal.fork(source.id, at=asked.entry, title=title)
    shared = plural(made.entries, "entry", "entries")
    undo = Undo(path=thread_url(made.id, "/archive"), body={"is_archived": True})
    return Done(said=f"Forked: the new thread shares {shared}.", undo=undo, go=thread_url(made.id))


async def rewind(visit: Visit, asked: OnEntry) -> Done:
    """Move the head back to an entry; what comes after it stays on a branch."""
    before = await _free(visit, asked.thread)
    entry = await visit.journal.entry(before.id, asked.entry)
    after = await visit.journal.rewind(before.id, asked.entry)
    kept = before.entries - after.entries
    words = words_of(entry, before.workspace, _SHORT)
    rest = f" {plural(kept, 'entry', 'entries')} kept on a branch." if kept > 0 else ""
    return Done(
        said=f"Rewound to “{words}”.{rest}", undo=Undo(path=thread_url(before.id, "/undo")), go=thread_url(before.id)
    )


async def undo(visit: Visit, asked: OnThread) -> Done:
    """Take the last move of the head back."""
    await _free(visit, asked.thread)
    await visit.journal.undo(asked.thread)
    back = Undo(path=thread_url(asked.thread, "/redo"))
    return Done(said="Undone: the head is where it was.", undo=back, go=thread_url(asked.thread))


async def redo(visit: Visit, asked: OnThread) -> Done:
    """Take the last undo back."""
    await _free(visit, asked.thread)
    await visit.journal.redo(asked.thread)
    back = Undo(path=thread_url(asked.thread, "/undo"))
    return Done(said="Redone.", undo=back, go=thread_url(asked.thread))


class LabelAsked(Record, frozen=True, kw_only=True):
    """A name for an entry; an empty one removes its label."""

    thread: str
    entry: str
    name: Name = ""


async def label(visit: Visit, asked: LabelAsked) -> Done:
    """Name an entry."""
    labels = await visit.journal.labels(asked.thread)
    before = next((name for name, target in labels.items() if target == asked.entry), "")
    await visit.journal.label(asked.thread, asked.entry, asked.name.strip())
    said = f"Labelled “{for_terminal(asked.name.strip())}”." if asked.name.strip() else "The label is gone."
    body = {"entry": asked.entry, "name": before}
    return Done(said=said, undo=Undo(path=thread_url(asked.thread, "/label"), body=body))


class RenameAsked(Record, frozen=True, kw_only=True):
    """A title for a thread."""

    thread: str
    title: Title


async def rename(visit: Visit, asked: RenameAsked) -> Done:
    """Give a thread another title."""
    before = await visit.journal.thread(asked.thread)
    await visit.journal.update_thread(asked.thread, title=asked.title.strip())
    body = {"title": before.title}
    return Done(said="Renamed.", undo=Undo(path=thread_url(asked.thread, "/rename"), body=body))


class TagsAsked(Record, frozen=True, kw_only=True):
    """All tags of a thread."""

    thread: str
    tags: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()


async def tags(visit: Visit, asked: TagsAsked) -> Done:
    """Replace the tags of a thread."""
    before = await visit.journal.thread(asked.thread)
    kept = tuple(dict.fromkeys(name.strip() for name in asked.tags if name.strip()))
    await visit.journal.update_thread(asked.thread, tags=kept)
    body = {"tags": list(before.tags)}
    return Done(
        said=f"Tags: {for_terminal(', '.join(kept)) or 'none'}.",
        undo=Undo(path=thread_url(asked.thread, "/tags"), body=body),
    )


class ArchiveAsked(Record, frozen=True, kw_only=True):
    """Whether a thread is archived."""

    thread: str
    is_archived: bool = True


async def archive(visit: Visit, asked: ArchiveAsked) -> Done:
    """Archive a thread, or bring it back."""
    await visit.journal.update_thread(asked.thread, is_archived=asked.is_archived)
    said = "Archived: the thread is under its own filter now." if asked.is_archived else "Brought back."
    body = {"is_archived": not asked.is_archived}
    return Done(said=said, undo=Undo(path=thread_url(asked.thread, "/archive"), body=body))


class CompactAsked(Record, frozen=True, kw_only=True):
    """A compaction; with ``is_preview`` nothing is changed."""

    thread: str
    is_preview: bool = True


class Compacted(Record, frozen=True, kw_only=True):
    """What a compaction did, or would do."""

    said: str
    result: CompactionResult
    undo: Undo | None = None
    go: str = ""


async def compact(visit: Visit, asked: CompactAsked) -> Compacted:
    """Replace the older part of the context by a summary; no entry is deleted."""
    if not asked.is_preview:
        await _free(visit, asked.thread)
    result = await visit.journal.compact(asked.thread, dry_run=asked.is_preview)
    sizes = f"{count(result.tokens_before, is_estimate=True)} → {count(result.tokens_after, is_estimate=True)} tokens"
    if result.status == "planned":
        said = f"{plural(result.removed_messages, 'message')} would become a summary: {sizes}."
    elif result.status == "installed":
        said = f"Compacted: {sizes}."
    else:
        why = result.note or result.failure
        said = f"Nothing to compact: {why}." if why else "Nothing to compact."
    done = result.status == "installed"
    undo = Undo(path=thread_url(asked.thread, "/uncompact")) if done else None
    return Compacted(said=said, result=result, undo=undo, go=thread_url(asked.thread) if done else "")


async def uncompact(visit: Visit, asked: OnThread) -> Done:
    """Take the last compaction back."""
    await _free(visit, asked.thread)
    await visit.journal.uncompact(asked.thread)
    return Done(said="The model sees the whole conversation again.", go=thread_url(asked.thread))


class RestoreAsked(Record, frozen=True, kw_only=True):
    """The files of a checkpoint. Without ``is_confirmed`` nothing is written: the answer is the plan.

    ``paths`` are those to restore alone.
    """

    thread: str
    entry: str
    is_confirmed: bool = False
    conflicts: Conflicts = "stop"
    paths: Annotated[tuple[str, ...], Meta(max_length=100_000)] | None = None


class Restored(Record, frozen=True, kw_only=True):
    """What a restore does, or did."""

    said: str
    plan: RestorePlan
    undo: Undo | None = None


async def restore(visit: Visit, asked: RestoreAsked) -> Restored:
    """Restore the files of a checkpoint; the plan first."""
    entry = await visit.journal.entry(asked.thread, asked.entry)
    if not isinstance(entry.payload, Checkpoint):
        raise InvalidInputError("only the files of a checkpoint can be restored; choose a checkpoint")
    workspace, root = visit.journal.workspace, entry.payload.root
    if not asked.is_confirmed:
        plan = await workspace.plan(asked.thread, entry.id, root, conflicts=asked.conflicts, paths=asked.paths)
        return Restored(said="Nothing is written yet.", plan=plan)
    plan = await workspace.restore(asked.thread, entry.id, root, conflicts=asked.conflicts, paths=asked.paths)
    body = {"entry": plan.before, "is_confirmed": True, "conflicts": "force", "paths": asked.paths}
    undo = Undo(path=thread_url(asked.thread, "/restore"), body=body) if plan.before else None
    return Restored(said=f"{plural(len(plan.steps), 'file')} restored.", plan=plan, undo=undo)


class EraseAsked(Record, frozen=True, kw_only=True):
    """An entry to erase for good. ``title`` must be that of the thread: it is the answer to a question."""

    thread: str
    entry: str
    title: Title = ""


async def erase(visit: Visit, asked: EraseAsked) -> Done:
    """Erase the contents of an entry and of the results of its calls. This cannot be undone."""
    thread = await visit.journal.thread(asked.thread)
    if asked.title.strip() != title_of(thread, visit.now):
        raise InvalidInputError("type the title of the thread to erase an entry of it for good")
    outline = await visit.site.outlines.of(thread)
    names = [asked.entry, *outline.results.get(asked.entry, ())]
    await visit.journal.erase(thread.id, names)
    visit.site.outlines.forget(thread.id)
    return Done(said=f"Erased for good: {plural(len(names), 'entry', 'entries')}.", go=thread_url(thread.id))


async def _free(visit: Visit, thread_id: str) -> Thread:
    """The thread, if nobody runs a turn on it: moving its head then would pull the rug from under that."""
    lease = await visit.journal.active_lease(thread_id)
    if lease is not None:
        raise ActiveTurnError(thread_id, lease.owner, lease.turn_id, lease.expires_ns)
    return await visit.journal.thread(thread_id)


def _action(name: str, asks: Any, answer: Any, run: Any) -> Action[Any, Any]:
    return Action(path=f"/t/{{thread}}/{name}", about=run.__doc__, asks=asks, answer=answer, run=run)


ACTIONS: tuple[Action[Any, Any], ...] = (
    _action("fork", OnEntry, Done, fork),
    _action("rewind", OnEntry, Done, rewind),
    _action("undo", OnThread, Done, undo),
    _action("redo", OnThread, Done, redo),
    _action("label", LabelAsked, Done, label),
    _action("rename", RenameAsked, Done, rename),
    _action("tags", TagsAsked, Done, tags),
    _action("archive", ArchiveAsked, Done, archive),
    _action("compact", CompactAsked, Compacted, compact),
    _action("uncompact", OnThread, Done, uncompact),
    _action("restore", RestoreAsked, Restored, restore),
    _action("erase", EraseAsked, Done, erase),
)
