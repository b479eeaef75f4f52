"""Addresses of threads and entries, written as in git, and a picker for users who give none.

3fa9c0de            the thread whose id starts or ends with this; as an entry, its leaf
3fa9c0de:b21c       one of its entries        3fa9c0de:good       the entry with the label "good"
3fa9c0de~3          three before the leaf     3fa9c0de:b21c~1     the parent of an entry
3fa9c0de@{-1}       where the leaf was before its last move; @{1}, as in git, means the same
@                   the leaf of the thread that changed last

Steps count the entries that `log` shows: turn markers and the like are skipped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.render.text import is_bookkeeping
from sessiontree.errors import NotFoundError
from sessiontree.model import Record, Thread
from sessiontree.model.sanitize import one_line

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = [
    "Address",
    "AddressError",
    "is_fuzzy_match",
    "pick_thread",
    "resolve",
    "resolve_thread",
    "short",
    "thread_or_pick",
]


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STEPS = re.compile(r"(?:~\d*|\^)+$", re.ASCII)
_STEP = re.compile(r"~(\d*)|\^", re.ASCII)
_REFLOG = re.compile(r"@\{-?(\d+)\}")
_SIGNS = ":@~^"
_SHOWN = 8


class AddressError(NotFoundError):
    """No thread or entry has this address."""


class Address(Record, frozen=True, kw_only=True):
    """A thread and one of its entries; ``entry_id`` is None before the first one."""

    thread: Thread
    entry_id: str | None


def short(name: str) -> str:
    """Return the part of an id that people type: the random end of a UUID; other ids are returned unchanged.

    >>> short("018bcfe5-6800-7000-8000-00003fa9c0de")
    '3fa9c0de'
    >>> short("notes")
    'notes'
    """
    return name[-_SHOWN:] if _UUID.fullmatch(name) else name


def resolve_thread(journal: Journal, address: str) -> Thread:
    """Return the thread of an address; raise AddressError if there is none, UsageError if it is ambiguous."""
    return _split(journal, address)[0]


def resolve(journal: Journal, address: str) -> Address:
    """Return the thread and the entry of an address; raises as ``resolve_thread`` does."""
    thread, rest = _split(journal, address)
    return Address(thread=thread, entry_id=_entry(journal, thread, rest))


def _split(journal: Journal, address: str) -> tuple[Thread, str]:
    """Split an address into its thread and the part about an entry. Ids may contain any character, so try whole ids first."""
    if not address:
        raise UsageError("the address is empty; `sessiontree ls` lists threads, @ is the one that changed last")
    is_latest = address[0] in _SIGNS
    for end in _possible_ends(address):
        part = address[:end]
        found = journal.thread_ids(part, limit=6) if part != "@" else []
        if found == [part] or (len(found) == 1 and not is_latest):
            return journal.thread(found[0]), address[end:]
        if found and not is_latest:
            raise UsageError(_ambiguous("thread", part, found))
    if is_latest:
        return _latest(journal), address.removeprefix("@") if address.startswith("@:") else address
    raise AddressError(f"no thread {address!r} in this store; `sessiontree ls` lists the threads")


def _possible_ends(address: str) -> list[int]:
    """Where the id of the thread may end: at the end, or before a sign that starts the part about an entry."""
    signs = [at for at, sign in enumerate(address) if at and sign in _SIGNS]
    return [len(address), *reversed(signs)]


def _latest(journal: Journal) -> Thread:
    page = journal.list_threads(limit=1)
    if not page.threads:
        raise AddressError(
            "@ is the thread that changed last, but the store has no threads yet; start one with: sessiontree new"
        )
    return page.threads[0]


def _entry(journal: Journal, thread: Thread, rest: str) -> str | None:
    """The entry of an address. Labels may contain any sign, so a whole label is tried first."""
    text = rest.removeprefix(":")
    labels = journal.labels(thread.id) if rest.startswith(":") else {}
    if text in labels:
        return labels[text]
    steps = _STEPS.search(text)
    entry_id = _base(journal, thread, text[: steps.start()] if steps else text, labels)
    if steps is None:
        return entry_id
    return _upwards(journal, thread, entry_id, sum(_number(step[1] or "1") for step in _STEP.finditer(steps[0])))


def _base(journal: Journal, thread: Thread, text: str, labels: Mapping[str, str]) -> str | None:
    reflog = _REFLOG.fullmatch(text)
    if reflog:
        return _moved_from(journal, thread, _number(reflog[1]))
    if text in {"", "@"}:
        return thread.leaf
    found = journal.entry_ids(thread.id, text, limit=6)
    if found == [text]:
        return text
    if text in labels:
        return labels[text]
    if not found:
        name = short(thread.id)
        raise AddressError(f"thread {name} has no entry or label {text!r}; `sessiontree tree {name}` shows its entries")
    if len(found) > 1:
        raise UsageError(_ambiguous("entry", text, found))
    return found[0]


def _number(digits: str) -> int:
    """Cut absurdly long numbers: Python refuses to convert them, and no thread has that many entries."""
    return int(digits[:18])


def _upwards(journal: Journal, thread: Thread, entry_id: str | None, count: int) -> str | None:
    if entry_id is None:
        raise AddressError(f"thread {short(thread.id)} has no entries here, so there is nothing before it")
    shown = [entry for entry in journal.path(thread.id, entry_id) if not is_bookkeeping(entry)]
    if len(shown) > count:
        return shown[-1 - count].id
    if len(shown) == count:
        return None
    raise AddressError(f"~{count} goes past the beginning: there are only {len(shown)} entries up to {short(entry_id)}")


def _moved_from(journal: Journal, thread: Thread, count: int) -> str | None:
    moves = journal.reflog(thread.id)
    if count == 0:
        return thread.leaf
    if not 1 <= count <= len(moves):
        raise AddressError(
            f"no @{{-{count}}}: the leaf of thread {short(thread.id)} has moved {len(moves)} times so far"
        )
    return moves[-count].from_entry


def _ambiguous(what: str, part: str, found: list[str]) -> str:
    shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
    return f"{part!r} is the start or end of more than one {what} id; use a longer part: {shown}"


_PICKER_ROWS = 15
_CONSIDERED = 500


def thread_or_pick(cli: CliContext, address: str | None) -> Thread:
    """Return the thread of an address; without an address, let the user pick one."""
    if address is not None:
        return resolve_thread(cli.journal, address)
    if not cli.can_ask:
        raise UsageError("which thread? give an id, a part of one, or @ for the thread that changed last")
    return pick_thread(cli)


def pick_thread(cli: CliContext) -> Thread:
    """Ask the user for a thread: by its number in a list, or by letters of its title in order."""
    threads = cli.journal.list_threads(limit=_CONSIDERED).threads
    if not threads:
        raise UsageError("the store has no threads to pick from; start one with: sessiontree new")
    shown = threads[:_PICKER_ROWS]
    while True:
        for number, thread in enumerate(shown, start=1):
            sys.stderr.write(f"{number:3}  {short(thread.id)}  {one_line(thread.title or '(no title)', 60)}\n")
        sys.stderr.write("thread (number, or letters of the title; empty to stop): ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip()
        if not answer:
            raise UsageError("no thread was picked")
        if answer.isdigit() and 1 <= int(answer) <= len(shown):
            return shown[int(answer) - 1]
        found = [thread for thread in threads if is_fuzzy_match(answer, f"{thread.title} {thread.id}")]
        if len(found) == 1:
            return found[0]
        shown = tuple(found[:_PICKER_ROWS]) or shown


def is_fuzzy_match(letters: str, text: str) -> bool:
    """Whether the text contains the letters in this order, not necessarily next to each other.

    >>> is_fuzzy_match("fxbg", "Fix the bug")
    True
    """
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold() if not letter.isspace())
