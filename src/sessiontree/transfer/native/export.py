"""Exports of whole threads for other tools, and of rows for training, into a folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import msgspec

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Thread
from sessiontree.transfer.formats._files import ExportTarget, note_other_branches, stem_of
from sessiontree.transfer.formats._raw import raw_document
from sessiontree.transfer.native.claude_code import subagent_lines
from sessiontree.transfer.native.conversation import conversation_of
from sessiontree.transfer.native.losses import losses_of
from sessiontree.transfer.native.place import native_session
from sessiontree.transfer.subagents import subagents_of
from sessiontree.transfer.training import Shape, rows

__all__ = ["write_rows", "write_sessions"]


_WITH_SUBAGENTS = "claude-code"


def write_sessions(
    journal: Journal, threads: Iterable[Thread], target: ExportTarget, format_name: str, leaf: str | None
) -> None:
    """Write a file for each thread: the records that were imported if nothing was added, else a new session.

    Subagents of Claude Code go into the folder of the session that started them. A branch is written without them.
    """
    chosen = {thread.id: thread for thread in threads}
    export = _Export(journal, target, format_name, leaf)
    has_subagents = format_name == _WITH_SUBAGENTS and leaf is None
    later: list[Thread] = []
    for thread in chosen.values():
        if has_subagents and thread.parent_thread in chosen and not thread.forked_from_thread:
            later.append(thread)
        elif (session := export.write(thread)) and has_subagents:
            export.write_subagents(thread, session)
    for thread in later:
        export.write(thread)


class _File(NamedTuple):
    """A file of one session."""

    name: str
    session: str
    body: bytes


class _Export:
    """One export; each thread is written once."""

    def __init__(self, journal: Journal, target: ExportTarget, format_name: str, leaf: str | None) -> None:
        self._journal = journal
        self._target = target
        self._format = format_name
        self._leaf = leaf
        self._tried: set[str] = set()

    def write(self, thread: Thread) -> str:
        """Write the file of a session; returns the id of the session, empty if there is nothing to write."""
        if not self._begin(thread):
            return ""
        file = self._as_imported(thread) or self._translated(thread)
        if file is None:
            return ""
        stem, ending = stem_of(file.name.rpartition(".")[0]), "." + file.name.rpartition(".")[2]
        self._put(thread, self._target.free_stem(stem, ending) + ending, file.body)
        return file.session

    def write_subagents(self, thread: Thread, session: str) -> None:
        """Write the subagents of a thread, and theirs, into the folder of the session."""
        for child in subagents_of(self._journal, thread.id):
            if self._begin(child):
                self._write_subagent(child, session)
                self.write_subagents(child, session)

    def _write_subagent(self, thread: Thread, session: str) -> None:
        agent = stem_of(str(thread.custom.get("agent") or thread.id.rpartition(".")[2].removeprefix("agent-")))
        found = raw_document(self._journal, thread, self._format)
        body = found[1] if found else self._subagent(thread, session, agent)
        if not body:
            return
        # A session may have any name; the folder must not lead out of the target.
        folder = stem_of(session).lstrip(".") or "session"
        stem = self._target.free_stem(f"{folder}/subagents/agent-{agent}", ".jsonl", ".meta.json")
        facts = {"agentType": thread.custom.get("agent_type"), "toolUseId": thread.custom.get("call")}
        known = {name: value for name, value in facts.items() if value}
        if known:
            self._target.write(f"{stem}.meta.json", [msgspec.json.encode(known)])
        self._put(thread, f"{stem}.jsonl", body)

    def _subagent(self, thread: Thread, session: str, agent: str) -> bytes:
        conversation = conversation_of(self._journal, thread.id, session_id=session, now_ns=time.time_ns())
        self._note_losses(thread)
        return subagent_lines(conversation, agent)

    def _begin(self, thread: Thread) -> bool:
        is_new = thread.id not in self._tried
        self._tried.add(thread.id)
        return is_new

    def _put(self, thread: Thread, name: str, body: bytes) -> None:
        self._target.write(name, [body])
        self._target.threads.append(thread.id)
        self._target.entries += thread.entries

    def _as_imported(self, thread: Thread) -> _File | None:
        found = raw_document(self._journal, thread, self._format) if self._leaf is None else None
        return _File(found[0], str(thread.origin.get("session", thread.id)), found[1]) if found else None

    def _translated(self, thread: Thread) -> _File | None:
        try:
            session = native_session(self._journal, thread.id, self._format, at=self._leaf)
        except InvalidInputError as error:
            self._target.note("loss", str(error), thread_id=thread.id)
            return None
        self._note_losses(thread)
        ((name, body),) = session.files.items()
        return _File(name.rpartition("/")[2], session.id, body)

    def _note_losses(self, thread: Thread) -> None:
        if self._leaf is None:
            note_other_branches(self._journal, thread, self._journal.path(thread.id), self._target)
        _note_losses(self._journal, thread, self._target, self._leaf)


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
