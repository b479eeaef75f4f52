"""Exports of whole threads for other tools, and of rows for training, into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Thread
from sessiontree.transfer.formats._files import ExportTarget, note_other_branches, stem_of
from sessiontree.transfer.formats._raw import raw_document
from sessiontree.transfer.native.losses import losses_of
from sessiontree.transfer.native.place import native_session
from sessiontree.transfer.training import Shape, rows

__all__ = ["write_rows", "write_sessions"]


def write_sessions(
    journal: Journal, threads: Iterable[Thread], target: ExportTarget, format_name: str, leaf: str | None
) -> None:
    """Write a file for each thread: the records that were imported if nothing was added, else a new session."""
    for thread in threads:
        written = raw_document(journal, thread, format_name) if leaf is None else None
        if written is None:
            written = _translated(journal, thread, target, format_name, leaf)
        if written is None:
            continue
        name, body = written
        stem, ending = stem_of(name.rpartition(".")[0]), "." + name.rpartition(".")[2]
        target.write(target.free_stem(stem, ending) + ending, [body])
        target.threads.append(thread.id)
        target.entries += thread.entries


def _translated(
    journal: Journal, thread: Thread, target: ExportTarget, format_name: str, leaf: str | None
) -> tuple[str, bytes] | None:
    try:
        session = native_session(journal, thread.id, format_name, at=leaf)
    except InvalidInputError as error:
        target.note("loss", str(error), thread_id=thread.id)
        return None
    if leaf is None:
        note_other_branches(journal, thread, journal.path(thread.id), target)
    _note_losses(journal, thread, target, leaf)
    ((name, body),) = session.files.items()
    return name.rpartition("/")[2], body


def _note_losses(journal: Journal, thread: Thread, target: ExportTarget, leaf: str | None) -> None:
    for loss in losses_of(journal, thread, leaf):
        target.note("loss", f"{loss} left out", thread_id=thread.id)


def write_rows(journal: Journal, threads: Iterable[Thread], target: ExportTarget, shape: str, leaf: str | None) -> None:
    """Write the rows of all threads into one file."""
    target.write(f"{shape}.jsonl", _lines(journal, threads, target, cast("Shape", shape), leaf))


def _lines(
    journal: Journal, threads: Iterable[Thread], target: ExportTarget, shape: Shape, leaf: str | None
) -> Iterator[bytes]:
    for thread in threads:
        target.threads.append(thread.id)
        _note_losses(journal, thread, target, leaf)
        for row in rows(journal, thread.id, shape, leaf=leaf):
            target.entries += 1
            yield msgspec.json.encode(row) + b"\n"
