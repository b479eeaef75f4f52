"""Addresses, as in git: THREAD, THREAD:ENTRY, @, ~3, @{-1}, labels, and any part of an id that is enough.

3fa9c0de            the thread whose id begins or ends so; its leaf where an entry is wanted
3fa9c0de:b21c       an entry of it            3fa9c0de:good       the entry with the label "good"
3fa9c0de~3          three before the leaf     3fa9c0de:b21c~1     the parent of an entry
3fa9c0de@{-1}       where the leaf was before its last move; @{1} as git has it means the same
@                   the leaf of the thread that changed last

Steps count entries as `log` shows them: turn markers and the like are passed over.

A picker for people who gave no id: type a number, or letters of the title in order.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.render.text import is_bookkeeping
from sessiontree.errors import NotFoundError
from sessiontree.journal import Journal
from sessiontree.model import Thread
from sessiontree.model._base import Record
from sessiontree.model.sanitize import one_line

__all__ = ["Address", "AddressError", "is_fuzzy_match", "pick_thread", "place_of", "short", "thread_for", "thread_of"]


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STEPS = re.compile(r"(?:~\d*|\^)+$", re.ASCII)
_STEP = re.compile(r"~(\d*)|\^", re.ASCII)
_REFLOG = re.compile(r"@\{-?(\d+)\}")
_SIGNS = ":@~^"
_SHOWN = 8


class AddressError(NotFoundError):
    """An address leads nowhere."""


class Address(Record, frozen=True, kw_only=True):
    """A thread and one of its entries; ``entry_id`` None is before the first one."""

    thread: Thread
    entry_id: str | None


def short(name: str) -> str:
    """What people type: the random end of a time-ordered id, other ids as they are.

    >>> short("018bcfe5-6800-7000-8000-00003fa9c0de")
    '3fa9c0de'
    >>> short("notes")
    'notes'
    """
    return name[-_SHOWN:] if _UUID.fullmatch(name) else name


def thread_of(journal: Journal, address: str) -> Thread:
    """The thread that an address is about."""
    return _split(journal, address)[0]


def place_of(journal: Journal, address: str) -> Address:
    thread, rest = _split(journal, address)
    return Address(thread=thread, entry_id=_entry(journal, thread, rest))


def _split(journal: Journal, address: str) -> tuple[Thread, str]:
    """The thread, and what of the address is about an entry. An id may hold any character, so whole ids go first."""
    if not address:
        raise UsageError("the address is empty; `sessiontree ls` shows threads, @ is the one that changed last")
    is_about_the_latest = address[0] in _SIGNS
    for end in _possible_ends(address):
        part = address[:end]
        found = journal.thread_ids(part, limit=6) if part != "@" else []
        if found == [part] or (len(found) == 1 and not is_about_the_latest):
            return journal.thread(found[0]), address[end:]
        if found and not is_about_the_latest:
            raise UsageError(_ambiguous("thread", part, found))
    if is_about_the_latest:
        return _latest(journal), address.removeprefix("@") if address.startswith("@:") else address
    raise AddressError(f"no thread {address!r} in this store; `sessiontree ls` shows what is there")


def _possible_ends(address: str) -> list[int]:
    """Where the thread's part may end: at the end, or before each sign that starts an entry's part."""
    signs = [at for at, sign in enumerate(address) if at and sign in _SIGNS]
    return [len(address), *reversed(signs)]


def _latest(journal: Journal) -> Thread:
    page = journal.list_threads(limit=1)
    if not page.threads:
        raise AddressError(
            "@ is the thread that changed last, but there is no thread yet; start one with: sessiontree new"
        )
    return page.threads[0]


def _entry(journal: Journal, thread: Thread, rest: str) -> str | None:
    """A name after a colon is first taken as it stands: labels may hold any sign."""
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
        raise AddressError(f"{name} has no entry and no label {text!r}; `sessiontree tree {name}` shows what is there")
    if len(found) > 1:
        raise UsageError(_ambiguous("entry", text, found))
    return found[0]


def _number(digits: str) -> int:
    """No thread is long enough for more digits than these."""
    return int(digits[:18])


def _upwards(journal: Journal, thread: Thread, entry_id: str | None, count: int) -> str | None:
    if entry_id is None:
        raise AddressError(f"thread {short(thread.id)} is empty here; there is nothing before its beginning")
    shown = [entry for entry in journal.path(thread.id, entry_id) if not is_bookkeeping(entry)]
    if len(shown) > count:
        return shown[-1 - count].id
    if len(shown) == count:
        return None
    raise AddressError(
        f"~{count} goes beyond the beginning: there are only {len(shown)} entries up to {short(entry_id)}"
    )


def _moved_from(journal: Journal, thread: Thread, count: int) -> str | None:
    moves = journal.reflog(thread.id)
    if count == 0:
        return thread.leaf
    if not 1 <= count <= len(moves):
        raise AddressError(
            f"@{{-{count}}} is not there: the leaf of {short(thread.id)} moved {len(moves)} times so far"
        )
    return moves[-count].from_entry


def _ambiguous(what: str, part: str, found: list[str]) -> str:
    shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
    return f"{part!r} is the start or end of more than one {what} id; give more of it: {shown}"


_PICKER_ROWS = 15
_CONSIDERED = 500


def thread_for(world: CliContext, address: str | None) -> Thread:
    """The thread of an address; without one a person may pick, and a script is told what is missing."""
    if address is not None:
        return thread_of(world.journal, address)
    if not world.can_ask:
        raise UsageError("which thread? give an id, a part of one, or @ for the thread that changed last")
    return pick_thread(world)


def pick_thread(world: CliContext) -> Thread:
    threads = world.journal.list_threads(limit=_CONSIDERED).threads
    if not threads:
        raise UsageError("there is no thread to pick; start one with: sessiontree new")
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
    """Whether the letters stand in the text in this order, perhaps apart.

    >>> is_fuzzy_match("fxbg", "Fix the bug")
    True
    """
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold() if not letter.isspace())
