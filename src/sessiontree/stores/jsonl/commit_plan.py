"""Commits that change several files: trees and documents.

Files cannot be changed at one moment. So what is to be done is written to one file first, ``commit.json``. With it the commit
has happened; then it is carried out and the file is removed. If the process dies in between, the next one that opens the
store or writes to it carries the plan out again from the start: every step leaves alone what is done already.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from sessiontree.errors import DamagedDataError
from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.model.documents import StoredDocument
from sessiontree.stores._io import Files, syncing
from sessiontree.stores.commands import ChangeResult, DeleteDocument, Joinable, SetDocument
from sessiontree.stores.jsonl.batch import Batch, PendingLines
from sessiontree.stores.jsonl.documents import DocumentFolder
from sessiontree.stores.jsonl.layout import Count, Layout, TreeName, is_there
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.repair import lines_without, new_path, stage
from sessiontree.stores.rules.documents import delete_document, set_document
from sessiontree.stores.rules.state import DropDocument, PutDocument

__all__ = ["CommitPlan", "PlannedCommit", "PlannedLines", "carry_out", "planned"]


class PlannedLines(Record, frozen=True, kw_only=True):
    """Lines to append to a tree file that ends at ``offset``."""

    tree: TreeName
    offset: Count
    text: bytes


class CommitPlan(Record, frozen=True, kw_only=True):
    """What a commit does to files. ``rewritten`` trees have their new content beside them, ``removed`` ones go."""

    lines: tuple[PlannedLines, ...] = ()
    rewritten: tuple[TreeName, ...] = ()
    removed: tuple[TreeName, ...] = ()
    documents: tuple[StoredDocument, ...] = ()
    dropped_documents: tuple[tuple[str, str], ...] = ()
    artifacts: tuple[str, ...] = ()
    """Artifacts that entries refer to from now on."""


class PlannedCommit:
    """Decides commands one after the other, each on what those before it leave, and writes the plan of their commit."""

    def __init__(self, batch: Batch, documents: DocumentFolder) -> None:
        self.batch = batch
        self._folder = documents
        self._documents: dict[tuple[str, str], StoredDocument | None] = {}

    def run(self, command: Joinable) -> ChangeResult:
        """Decide a command; return its result or raise the refusal."""
        match command:
            case SetDocument():
                decision = set_document(command, self)
            case DeleteDocument():
                decision = delete_document(command, self)
            case _:
                return self.batch.run(command)
        for fact in decision.facts:
            match fact:
                case PutDocument(document=document):
                    self._documents[document.scope, document.key] = document
                case DropDocument(scope=scope, key=key):
                    self._documents[scope, key] = None
        return decision.result

    def document(self, scope: str, key: str) -> StoredDocument | None:
        """A document as the commands before leave it."""
        if (scope, key) in self._documents:
            return self._documents[scope, key]
        return self._folder.document(scope, key)

    def write(self, layout: Layout, files: Files) -> CommitPlan:
        """Write the plan durably: then the commit has happened."""
        changed = [one for one in self.batch.pending if one.texts or one.removals]
        rewritten = [one for one in changed if one.removals and one.tree.end and _is_left(one)]
        for pending in rewritten:
            stage(pending.tree.path, [*lines_without(pending.tree, pending.removals), *pending.texts], files)
        plan = CommitPlan(
            lines=tuple(_lines_of(one) for one in changed if one.texts and one not in rewritten and _is_left(one)),
            rewritten=tuple(one.tree.name for one in rewritten),
            removed=tuple(one.tree.name for one in changed if not _is_left(one)),
            documents=tuple(document for document in self._documents.values() if document is not None),
            dropped_documents=tuple(place for place, document in self._documents.items() if document is None),
            artifacts=tuple(sorted(self.batch.artifacts)),
        )
        if rewritten:
            with syncing():
                files.sync_folder(layout.trees)
        files.put(layout.plan, msgspec.json.encode(plan) + b"\n")
        return plan


def planned(layout: Layout) -> CommitPlan | None:
    """The commit that was not carried out to its end; None if there is none."""
    if not is_there(layout.plan):
        return None
    try:
        return json_decoder(CommitPlan).decode(layout.plan.read_bytes())
    except UNREADABLE as error:
        raise DamagedDataError(str(layout.plan), 0, f"cannot read the commit: {error}") from error


def carry_out(plan: CommitPlan, layout: Layout, files: Files, documents: DocumentFolder, packs: PackFolder) -> None:
    """Do what a plan says, and remove it. The caller holds the process lock."""
    packs.drop_pending(plan.artifacts)
    for lines in plan.lines:
        _append(lines, layout, files)
    for name in (*plan.rewritten, *plan.removed):
        for path in layout.leftovers(name):
            files.remove(path)
    for name in plan.rewritten:
        path = layout.tree(name)
        if new_path(path).exists():
            files.replace(new_path(path), path)
    for name in plan.removed:
        with suppress(FileNotFoundError):
            files.remove(layout.tree(name))
    for document in plan.documents:
        documents.apply(PutDocument(document))
    for scope, key in plan.dropped_documents:
        documents.apply(DropDocument(scope, key))
    files.remove(layout.plan)


def _is_left(pending: PendingLines) -> bool:
    """Whether the tree has threads after the commit."""
    return bool(pending.tree.state.states)


def _lines_of(pending: PendingLines) -> PlannedLines:
    return PlannedLines(tree=pending.tree.name, offset=pending.tree.end, text=b"".join(pending.texts))


def _append(lines: PlannedLines, layout: Layout, files: Files) -> None:
    """Append lines; once more if they are there, because their sync may have failed.

    A file that was put back from elsewhere since then is left alone.
    """
    file = files.open_append(layout.tree(lines.tree))
    try:
        found = os.pread(file, len(lines.text), lines.offset)
        size = os.fstat(file).st_size
        if lines.offset <= size <= lines.offset + len(lines.text) and lines.text.startswith(found):
            files.truncate(file, lines.offset)
            files.append(file, lines.text)
        with syncing():
            files.sync(file)
            if lines.offset == 0:
                files.sync_folder(layout.trees)
    finally:
        os.close(file)
