"""Commands and reads for the tests of the JSONL store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET, UnsetType

from sessiontree.model import Payload, Thread, ThreadQuery
from sessiontree.model.builders import user
from sessiontree.model.codec import validate_and_encode
from sessiontree.stores.commands import Append, Command, CreateThread, Deleted, DeleteThread, Draft, Fork, Result
from sessiontree.stores.protocol import Backend
from sessiontree.stores.queries import ReadEntries, ReadPath

EVERYTHING = ThreadQuery(is_archived=None, limit=100_000)


def draft(entry_id: str, text: str | Payload = "", at: int = 10) -> Draft:
    payload, body = validate_and_encode(user(text or f"text of {entry_id}") if isinstance(text, str) else text)
    return Draft(id=entry_id, payload=payload, body=body, created_ns=at, messages=1, tokens=3)


def create(thread_id: str, at: int = 1, title: str = "") -> CreateThread:
    return CreateThread(thread=Thread(id=thread_id, tree=thread_id, created_ns=at, updated_ns=at, title=title))


def append(thread_id: str, *drafts: Draft | str, parent: str | UnsetType | None = UNSET) -> Append:
    made = tuple(draft(item) if isinstance(item, str) else item for item in drafts)
    return Append(thread_id=thread_id, drafts=made, parent=parent)


def fork(source: str, new: str, entry_id: str | None = None, at: int = 5) -> Fork:
    return Fork(source_id=source, entry_id=entry_id, thread=Thread(id=new, tree=new, created_ns=at, updated_ns=at))


def delete(thread_id: str) -> DeleteThread:
    return DeleteThread(thread_id=thread_id)


def do(backend: Backend, *commands: Command) -> Result:
    """Run the commands as one batch and return the result of the last one."""
    outcomes = backend.write(commands)
    if any(isinstance(outcome, Deleted) for outcome in outcomes):
        backend.erase_copies()
    last: Result = None
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
        last = outcome
    return last


def ids(backend: Backend, thread_id: str) -> list[str]:
    return [entry.id for entry in backend.path(ReadPath(thread_id=thread_id))]


def portrait(backend: Backend) -> object:
    """Everything that can be read from a store."""
    threads = backend.threads(EVERYTHING).threads
    return [
        (
            thread,
            backend.thread(thread.id),
            backend.entries(ReadEntries(thread_id=thread.id)),
            backend.path(ReadPath(thread_id=thread.id)),
            backend.children(thread.id, None),
            list(backend.moves(thread.id)),
            backend.lease(thread.id),
        )
        for thread in threads
    ]


def tree_file(folder: Path) -> Path:
    """The only tree file of a store."""
    (found,) = (folder / "trees").glob("*.jsonl")
    return found


def torn_bytes(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "torn").iterdir())]


def all_bytes(folder: Path) -> bytes:
    """Names and contents of everything below a folder."""
    files: Sequence[Path] = sorted(folder.rglob("*"))
    return b"\n".join(str(path.relative_to(folder)).encode() + b"\n" + _content(path) for path in files)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


__all__ = [
    "EVERYTHING",
    "Deleted",
    "all_bytes",
    "append",
    "create",
    "delete",
    "do",
    "draft",
    "fork",
    "ids",
    "portrait",
    "torn_bytes",
    "tree_file",
]
