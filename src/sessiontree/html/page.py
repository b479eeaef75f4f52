"""The page: the active path from top to bottom, other branches folded in where they left it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sessiontree.html.parts import fold, markdown, message_html, text
from sessiontree.html.style import POLICY, STYLE
from sessiontree.model import (
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    Event,
    Label,
    Memory,
    RunFailure,
    Thread,
    ThreadInfo,
    TurnMarker,
)
from sessiontree.model.record import Record
from sessiontree.progress import Progress, counted

__all__ = ["Conversation", "render_html"]


class Conversation(Record, frozen=True, kw_only=True):
    """A thread, all entries that it sees in the order of their commits, and its labels (name to entry id)."""

    thread: Thread
    entries: tuple[Entry, ...]
    labels: Mapping[str, str] = {}


def render_html(conversation: Conversation, progress: Progress | None = None) -> str:
    """One self-contained file. ``progress`` hears how many entries of the active path are written.

    >>> import sessiontree as st
    >>> with st.open("memory:") as journal:
    ...     thread = journal.create_thread(title="<script>alert(1)</script>")
    ...     _ = journal.append(thread.id, st.user("hello *you*"))
    ...     entries = tuple(journal.entries(thread.id))
    ...     page = render_html(Conversation(thread=journal.thread(thread.id), entries=entries))
    >>> "<script" in page, "<em>you</em>" in page
    (False, True)
    """
    return "".join(_pieces(conversation, progress))


def _pieces(conversation: Conversation, progress: Progress | None) -> Iterator[str]:
    thread = conversation.thread
    title = text(thread.title or "(no title)")
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
    yield f'<header><h1 dir="auto">{title}</h1><p>{text(thread.id)} · {thread.messages} messages · '
    yield f"about {thread.tokens} tokens · {thread.created_at:%Y-%m-%d} to {thread.updated_at:%Y-%m-%d}</p></header><main>"
    yield from _path(conversation, progress)
    yield "</main></body></html>\n"


def _path(conversation: Conversation, progress: Progress | None) -> Iterator[str]:
    by_id = {entry.id: entry for entry in conversation.entries}
    children: dict[str | None, list[Entry]] = {}
    for entry in conversation.entries:
        children.setdefault(entry.parent if entry.parent in by_id else None, []).append(entry)
    names: dict[str, list[str]] = {}
    for name, target in conversation.labels.items():
        names.setdefault(target, []).append(name)
    path = _upwards(by_id, conversation.thread.leaf)
    on_path = {entry.id for entry in path}
    for parent in counted((None, *path), progress):
        if parent is not None:
            yield _entry(parent, names.get(parent.id, ()))
        for side in children.get(parent.id if parent else None, ()):
            if side.id not in on_path:
                yield from _branch(side, children, names)


def _branch(
    start: Entry, children: Mapping[str | None, Sequence[Entry]], names: Mapping[str, list[str]]
) -> Iterator[str]:
    """A branch that was left, with all its own branches, folded."""
    entries: list[Entry] = []
    stack = [start]
    while stack:
        entries.append(stack.pop())
        stack += reversed(children.get(entries[-1].id, ()))
    shown = [piece for entry in entries if (piece := _entry(entry, names.get(entry.id, ())))]
    if shown:
        yield f'<details class="branch"><summary>another branch, {len(shown)} entries</summary>'
        yield from shown
        yield "</details>"


def _upwards(by_id: Mapping[str, Entry], leaf: str | None) -> list[Entry]:
    path: list[Entry] = []
    entry = by_id.get(leaf) if leaf else None
    while entry is not None:
        path.append(entry)
        entry = by_id.get(entry.parent) if entry.parent else None
    path.reverse()
    return path


def _entry(entry: Entry, labels: Sequence[str]) -> str:
    kind, heading, body = _content(entry)
    if not body:
        return ""
    marks = "".join(f' <span class="label">{text(name)}</span>' for name in labels)
    when = f"{entry.created_at:%Y-%m-%d %H:%M} UTC"
    return f'<article class="{kind}" id="e-{text(entry.id)}"><h2>{heading}{marks} <time>{when}</time></h2>{body}</article>\n'


def _content(entry: Entry) -> tuple[str, str, str]:
    """Class, heading and body; an empty body leaves the entry out."""
    if entry.message is not None:
        role = entry.message.role
        return role, role, message_html(entry.message)
    match entry.payload:
        case Compaction(summary=summary) if summary:
            return "note", "compaction", fold("summary of what came before", markdown(summary))
        case BranchSummary(summary=said) if said:
            return "note", "summary of a branch", markdown(said)
        case RunFailure(error=error):
            return "failure", "failed", f"<p>{text(error)}</p>"
        case TurnMarker(status="failed" | "aborted" as status, reason=reason):
            return "failure", f"turn {status}", f"<p>{text(reason) or status}</p>"
        case Memory(text=said) | ThreadInfo(text=said) if said:
            return "note", "note", markdown(said)
        case Checkpoint(files=files, root=root):
            return "note", "checkpoint", f"<p>{files} files of {text(root)}</p>"
        case Custom(name=name) if name:
            return "note", "custom", f"<p>{text(name)}</p>"
        case Label() | Event() | _:
            return "", "", ""
