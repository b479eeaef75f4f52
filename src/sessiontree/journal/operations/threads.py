"""Verbs about threads: create, read, change, delete, list, fork, give a title."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar, cast, get_origin, get_type_hints

from msgspec import UNSET, UnsetType, ValidationError, to_builtins
from msgspec.structs import astuple, replace

from sessiontree.compaction.titles import Titler, first_user_text
from sessiontree.errors import (
    InvalidInputError,
    StaleLeafError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations.entries import (
    Content,
    append_many,
    checked_id,
    checked_time,
    draft_as_given,
    draft_of,
    has_replacement,
)
from sessiontree.journal.operations.requests import Call, Operation, Runtime, Work
from sessiontree.model import Entry, Lease, Page, SessionKey, Thread, ThreadFields, ThreadFilters, ThreadQuery
from sessiontree.model._base import Record, json_decoder
from sessiontree.model.codec import check_finite, check_number, encode_record
from sessiontree.model.titles import FIRST_MESSAGE, title_from
from sessiontree.stores.commands import (
    Append,
    CreateThread,
    Deleted,
    DeleteThread,
    Fork,
    OnDuplicate,
    PositionedDraft,
    UpdateThread,
)
from sessiontree.stores.queries import ListThreads, ReadEntries, ReadPath, ReadThread
from sessiontree.stores.rules.threads import INHERITED_BY_FORKS
from sessiontree.workspace.location import is_path, workspace_path

__all__ = [
    "append_and_update",
    "change_thread",
    "change_unused_thread",
    "checked_record",
    "checked_thread",
    "create_thread",
    "delete_thread",
    "fork",
    "fork_all",
    "list_threads",
    "open_thread",
    "suggest_title",
    "thread",
    "update_command",
    "update_thread",
]


R = TypeVar("R", bound=Record)

_FIELDS = frozenset(ThreadFields.__annotations__)


def create_thread(
    runtime: Runtime,
    thread_id: str | None,
    created_ns: int | None,
    fields: ThreadFields,
    *,
    contents: Iterable[Content] = (),
) -> Operation[Thread]:
    """Create a thread, and its first entries in the same commit."""
    fields = yield from _with_real_workspace(fields)
    drafts = tuple([draft_of(runtime, content) for content in contents])
    if has_replacement(drafts):
        from sessiontree.journal.operations.replacements import counted  # noqa: PLC0415  only these need a context

        drafts = counted((), drafts)
    thread: Thread = yield CreateThread(thread=_new_thread(runtime, thread_id, created_ns, fields), drafts=drafts)
    return thread


def thread(thread_id: str) -> Operation[Thread]:
    """Return a thread."""
    found: Thread = yield ReadThread(thread_id=thread_id)
    return found


def open_thread(
    runtime: Runtime, id_or_key: str | SessionKey | None, fields: ThreadFields, *, create: bool
) -> Operation[Thread]:
    """Return the thread of an id or key; with ``create``, a new one if there is none."""
    if id_or_key is None:
        return (yield from create_thread(runtime, None, None, fields))
    try:
        if isinstance(id_or_key, SessionKey):
            return (yield from _current_of(id_or_key))
        return (yield from thread(id_or_key))
    except ThreadNotFoundError:
        if not create:
            raise
    if isinstance(id_or_key, SessionKey):
        # All processes choose the same id, so only one of them can create it.
        name, fields = _id_for(id_or_key), ThreadFields(**{**fields, "key": id_or_key})
    else:
        name = id_or_key
    try:
        return (yield from create_thread(runtime, name, None, fields))
    except ThreadExistsError:
        return (yield from thread(name))


def _current_of(key: SessionKey) -> Operation[Thread]:
    for is_archived in (False, True):
        query = ThreadQuery(
            agent=key.agent, channel=key.channel, peer=key.peer, key_thread=key.thread, is_archived=is_archived, limit=1
        )
        page: Page = yield ListThreads(query=query)
        for found in page:
            return found
    raise ThreadNotFoundError(_id_for(key))


def _id_for(key: SessionKey) -> str:
    from urllib.parse import quote  # noqa: PLC0415  slow to import, and few threads have keys

    return "key:" + ":".join(quote(part, safe="@ ") for part in (key.agent, key.channel, key.peer, key.thread))


def update_thread(
    runtime: Runtime, thread_id: str, expect_version: int | None, fields: ThreadFields
) -> Operation[Thread]:
    """Change the metadata of a thread."""
    fields = yield from _with_real_workspace(fields)
    changed: Thread = yield update_command(runtime, thread_id, expect_version, fields)
    return changed


def update_command(runtime: Runtime, thread_id: str, expect_version: int | None, fields: ThreadFields) -> UpdateThread:
    """Return the command that changes metadata: alone, or with an append or a leaf move in the same commit."""
    blank = Thread(id=thread_id, tree=thread_id, created_ns=0, updated_ns=0)
    return UpdateThread(
        thread_id=thread_id,
        changed=_with_fields(blank, fields),
        fields=tuple(fields),
        expect_version=expect_version,
        at_ns=runtime.clock(),
    )


def change_thread(
    runtime: Runtime, thread_id: str, changes: Callable[[Thread], ThreadFields | None]
) -> Operation[Thread]:
    """Change metadata depending on what it is; ``changes`` is called again if another writer was faster.

    Nothing is written if it returns ``None``.
    """
    while True:
        current = yield from thread(thread_id)
        fields = changes(current)
        if fields is None:
            return current
        try:
            return (yield from update_thread(runtime, thread_id, current.version, fields))
        except StaleVersionError:
            continue


def change_unused_thread(
    runtime: Runtime, thread_id: str, changes: Callable[[Thread], ThreadFields | None]
) -> Operation[Thread]:
    """As ``change_thread``, and ``changes`` is called again if the leaf has moved, such as by a new message."""
    while True:
        current = yield from thread(thread_id)
        fields = changes(current)
        if fields is None:
            return current
        update = update_command(runtime, thread_id, current.version, fields)
        try:
            yield Append(thread_id=thread_id, drafts=(), expect_leaf=current.leaf, update=update)
        except (StaleLeafError, StaleVersionError):
            continue
        return (yield from thread(thread_id))


def append_and_update(
    runtime: Runtime,
    thread_id: str,
    contents: Iterable[Content],
    *,
    fields: ThreadFields,
    expect_version: int | None,
    create: bool,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    expect_live: bool = False,
    on_duplicate: OnDuplicate = "fail",
    moves_leaf: bool = True,
) -> Operation[list[Entry]]:
    """Append entries and change metadata in one commit; with ``create``, to a new thread if there is none."""
    fields = yield from _with_real_workspace(fields)
    is_update = bool(fields) or expect_version is not None
    return (
        yield from append_many(
            runtime,
            thread_id,
            contents,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            expect_live=expect_live,
            update=update_command(runtime, thread_id, expect_version, fields) if is_update else None,
            create=_new_thread(runtime, thread_id, None, fields) if create else None,
            on_duplicate=on_duplicate,
            moves_leaf=moves_leaf,
        )
    )


def delete_thread(
    thread_id: str,
    expect_version: int | None = None,
    expect_match: ThreadQuery | None = None,
    expect_leaf: str | UnsetType | None = UNSET,
) -> Operation[Deleted]:
    """Delete a thread."""
    match = None if expect_match is None else (yield from _asked(expect_match, {}))
    report: Deleted = yield DeleteThread(
        thread_id=thread_id, expect_version=expect_version, expect_match=match, expect_leaf=expect_leaf
    )
    return report


def list_threads(query: ThreadQuery | None, filters: ThreadFilters) -> Operation[Page]:
    """Return one page of threads."""
    page: Page = yield ListThreads(query=(yield from _asked(query or ThreadQuery(), filters)))
    return page


def fork(
    runtime: Runtime,
    source_id: str,
    *,
    at: str | None,
    before: str | None,
    new_id: str | None,
    created_ns: int | None,
    fields: ThreadFields,
    history: Iterable[PositionedDraft] = (),
    expect_leaf: str | UnsetType | None = UNSET,
    expect_new: bool = False,
) -> Operation[Thread]:
    """Create a thread that shares the beginning of another one, and its own entries in the same commit."""
    if at is not None and before is not None:
        raise InvalidInputError("fork takes at= or before=, not both")
    fields = yield from _with_real_workspace(fields)
    forked: Thread = yield Fork(
        source_id=source_id,
        thread=_new_thread(runtime, new_id, created_ns, fields),
        entry_id=before if before is not None else at,
        position="before" if before is not None else "at",
        fields=tuple(fields),
        history=tuple(history),
        expect_leaf=expect_leaf,
        expect_new=expect_new,
    )
    return forked


def fork_all(
    runtime: Runtime, source_id: str, *, new_id: str | None, created_ns: int | None, fields: ThreadFields
) -> Operation[Thread]:
    """Create a thread with a copy of all entries that another one sees, on every branch."""
    fields = yield from _with_real_workspace(fields)
    source: Thread = yield ReadThread(thread_id=source_id)
    entries: list[Entry] = yield ReadEntries(thread_id=source_id)
    path: list[Entry] = yield ReadPath(thread_id=source_id, leaf=source.leaf)
    on_path = {entry.id for entry in path}
    inherited = {name: getattr(source, name) for name in INHERITED_BY_FORKS}
    thread = _new_thread(runtime, new_id, created_ns, cast("ThreadFields", {**inherited, **fields}))
    forked: Thread = yield CreateThread(
        thread=replace(
            thread,
            parent_thread=thread.parent_thread or source_id,
            forked_from_thread=source_id,
            forked_from_entry=source.leaf or "",
        ),
        history=tuple(_copied(entry, is_aside=entry.id not in on_path) for entry in entries),
    )
    return forked


def _copied(entry: Entry, *, is_aside: bool) -> PositionedDraft:
    draft = draft_as_given(entry.id, entry.payload, entry.created_ns, entry.turn_id, ())
    return PositionedDraft(parent=entry.parent, draft=draft, is_aside=is_aside)


def _asked(query: ThreadQuery, filters: ThreadFilters) -> Operation[ThreadQuery]:
    asked = _with_filters(query, filters)
    if asked.workspace is None:
        return asked
    return replace(asked, workspace=(yield from _real(asked.workspace)))


def _with_real_workspace(fields: ThreadFields) -> Operation[ThreadFields]:
    text = fields.get("workspace")
    return {**fields, "workspace": (yield from _real(text))} if isinstance(text, str) else fields


def _real(text: str) -> Operation[str]:
    """The real path of a workspace that is written as a path. Other texts stay as they are."""
    if not is_path(text):
        return text
    path: str = yield Work(function=workspace_path, arguments=(text,))
    return path


def checked_thread(thread: Thread) -> Thread:
    """Check a thread of another program or another store, which has its id and times already."""
    checked_id(thread.id, "thread id")
    stored = checked_record(thread, f"thread {thread.id!r}", Thread)
    return _with_fields(stored, cast("ThreadFields", {name: getattr(thread, name) for name in _FIELDS}))


def _new_thread(runtime: Runtime, thread_id: str | None, created_ns: int | None, fields: ThreadFields) -> Thread:
    name = runtime.ids.new() if thread_id is None else checked_id(thread_id, "thread id")
    now = runtime.clock() if created_ns is None else checked_time(created_ns, "created_ns")
    return _with_fields(Thread(id=name, tree=name, created_ns=now, updated_ns=now), fields)


def _with_fields(thread: Thread, fields: ThreadFields) -> Thread:
    """Return the thread with these fields. Raises InvalidInputError for what cannot be stored."""
    if not fields.keys() <= _FIELDS:
        unknown = sorted(fields.keys() - _FIELDS)
        raise InvalidInputError(f"unknown thread fields {unknown}; a thread has {sorted(_FIELDS)}")
    values = {name: _checked_field(name, value) for name, value in fields.items()}
    return replace(thread, **_as_stored(values, f"thread {thread.id!r}"))


def _as_stored(values: dict[str, Any], what: str) -> ThreadFields:
    stored: ThreadFields = _read_back(values, what, ThreadFields)
    for value in stored.values():
        if type(value) is int:
            check_number(value)
    return stored


def _checked_field(name: str, value: Any) -> Any:
    # Before the conversion to JSON, which would turn bytes into text and leave UNSET out.
    if name == "tags" and isinstance(value, Iterable) and not isinstance(value, str):
        value = tuple(value)
    kind = _field_types()[name]
    if not isinstance(value, kind) or not all(isinstance(item, str) for item in _items_of(value)):
        items = " of str" if kind is tuple else ""
        raise InvalidInputError(f"the {name} of a thread must be a {kind.__name__}{items}, not {value!r}")
    return value


def _items_of(value: Any) -> tuple[Any, ...]:
    match value:
        case SessionKey():
            return astuple(value)
        case tuple():
            return value
        case _:
            return ()


@cache
def _field_types() -> dict[str, type]:
    return {name: get_origin(kind) or kind for name, kind in get_type_hints(ThreadFields).items()}


def _with_filters(query: ThreadQuery, filters: ThreadFilters) -> ThreadQuery:
    unknown = set(filters) - set(ThreadQuery.__struct_fields__)
    if unknown:
        raise InvalidInputError(
            f"unknown filters {sorted(unknown)}; threads can be listed by {sorted(ThreadQuery.__struct_fields__)}"
        )
    asked = checked_record(replace(query, **filters), "the query", ThreadQuery)
    check_number((asked.limit or 0) + 1)
    return asked


def checked_record(record: R, what: str, kind: type[R]) -> R:
    """Return the record as a reader will see it. Raises InvalidInputError for a value that the field cannot have."""
    stored: R = _read_back(record, what, kind)
    for value in astuple(stored):
        if type(value) is int:
            check_number(value)
    return stored


def _read_back(value: Any, what: str, kind: Any) -> Any:
    try:
        stored = json_decoder(kind).decode(encode_record(value, what))
    except ValidationError as error:
        raise InvalidInputError(f"{what}: {error}") from error
    if stored != value:
        check_finite(to_builtins(value))
    return stored


def suggest_title(runtime: Runtime, thread_id: str, titler: Titler | None, limit: int) -> Operation[Thread]:
    """Give a thread that has no title one; a title that was set in the meantime is kept.

    A title that the thread got by itself is replaced.

    If the titler fails, the failure is recorded and the first words of the user become the title.
    """
    thread: Thread = yield ReadThread(thread_id=thread_id)
    if _has_given_title(thread):
        return thread
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    text = first_user_text(path)
    if not text:
        return thread
    fields = yield from _titled(text, titler, limit)
    fields["title_updated_ns"] = runtime.clock()
    try:
        return (yield from update_thread(runtime, thread_id, thread.version, fields))
    except StaleVersionError:
        changed: Thread = yield ReadThread(thread_id=thread_id)
        if _has_given_title(changed):
            return changed
        return (yield from update_thread(runtime, thread_id, None, fields))


def _has_given_title(thread: Thread) -> bool:
    return bool(thread.title) and thread.title_source != FIRST_MESSAGE


def _titled(text: str, titler: Titler | None, limit: int) -> Operation[ThreadFields]:
    fallback = title_from(text, limit)
    if titler is None:
        return ThreadFields(title=fallback, title_status="ready", title_source="host", title_error="")
    try:
        answer = yield Call(function=titler, arguments=(text,))
        title = title_from(answer if isinstance(answer, str) else "", limit)
    except Exception as error:  # noqa: BLE001  whatever a caller's function raises is recorded
        return _failed(fallback, f"{type(error).__name__}: {error}")
    if not title:
        return _failed(fallback, "the titler returned no text")
    return ThreadFields(title=title, title_status="ready", title_source="provider", title_error="")


def _failed(fallback: str, problem: str) -> ThreadFields:
    return ThreadFields(title=fallback, title_status="failed", title_source="host", title_error=problem)
