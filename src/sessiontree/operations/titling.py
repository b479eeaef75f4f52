"""The verb that gives a thread a title of its own accord."""

from __future__ import annotations

from sessiontree.errors import StaleVersionError
from sessiontree.model import Entry, Thread, ThreadFields
from sessiontree.operations.requests import Call, Operation, Sources
from sessiontree.operations.threads import update_thread
from sessiontree.queries import ReadPath, ReadThread
from sessiontree.titles import Titler, first_user_text, title_from

__all__ = ["suggest_title"]


def suggest_title(sources: Sources, thread_id: str, titler: Titler | None, limit: int) -> Operation[Thread]:
    """A title for a thread that has none; one that somebody gave meanwhile stays.

    A titler that fails is written down as such, and the user's own words serve as the title.
    """
    thread: Thread = yield ReadThread(thread_id=thread_id)
    if thread.title:
        return thread
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    text = first_user_text(path)
    if not text:
        return thread
    fields = yield from _titled(text, titler, limit)
    fields["title_updated_ns"] = sources.clock()
    try:
        return (yield from update_thread(sources, thread_id, thread.version, fields))
    except StaleVersionError:
        changed: Thread = yield ReadThread(thread_id=thread_id)
        if changed.title:
            return changed
        return (yield from update_thread(sources, thread_id, None, fields))


def _titled(text: str, titler: Titler | None, limit: int) -> Operation[ThreadFields]:
    fallback = title_from(text, limit)
    if titler is None:
        return ThreadFields(title=fallback, title_status="ready", title_source="host", title_error="")
    try:
        answer = yield Call(function=titler, arguments=(text,))
        title = title_from(answer if isinstance(answer, str) else "", limit)
    except Exception as error:  # noqa: BLE001  whatever a caller's function raises is written down
        return _failed(fallback, f"{type(error).__name__}: {error}")
    if not title:
        return _failed(fallback, "the titler gave no text")
    return ThreadFields(title=title, title_status="ready", title_source="provider", title_error="")


def _failed(fallback: str, problem: str) -> ThreadFields:
    return ThreadFields(title=fallback, title_status="failed", title_source="host", title_error=problem)
