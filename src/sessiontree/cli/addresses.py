"""Addresses of threads and entries, written as in git.

3a19             the thread whose id starts or ends with this, or contains it; as an entry, its leaf
3a19:b21c        one of its entries        3a19:good       the entry with the label "good"
3a19~3           three before the leaf     3a19:b21c~1     the parent of an entry
3a19@:b21c       the same as 3a19:b21c, where a thread is called "3a19:b21c"; so is 3a19@{0}:b21c
3a19@{-1}        where the leaf was before its last move; @{1}, as in git, means the same
@                the leaf of the thread that changed last

Ids and labels may contain any of these signs: one that is exactly what was typed wins over what the signs mean.
Steps count the entries that `log` shows: turn markers and the like are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import MissingError, UsageError
from sessiontree.cli.screen.lines import DIM, ID, Line
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.cli.summaries import title
from sessiontree.model import Entry, Record, Thread
from sessiontree.render.cells import cell_width, pad
from sessiontree.render.entries import words_of
from sessiontree.render.ids import ShortIds, runs_in
from sessiontree.render.names import SIGNS, entries_named, has_entry, printed_as, splits, threads_named
from sessiontree.render.turns import is_bookkeeping

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = [
    "Address",
    "address_or_pick",
    "entry_or_pick",
    "last_shown",
    "resolve",
    "resolve_entry",
    "resolve_thread",
    "thread_or_pick",
]


_STEPS = re.compile(r"(?:~\d*|\^)+$", re.ASCII)
_STEP = re.compile(r"~(\d*)|\^", re.ASCII)
_REFLOG = re.compile(r"@\{-?(\d+)\}")
_LEAF = re.compile(r"^(?:@+|@\{0+\})(?=:)")
_MOST = 1_000_000
_CANDIDATES = 5


class Address(Record, frozen=True, kw_only=True):
    """A thread and one of its entries; ``entry_id`` is None before the first one."""

    thread: Thread
    entry_id: str | None


def resolve_thread(cli: CliContext, address: str) -> Thread:
    """Return the thread of an address; raise MissingError if there is none, UsageError if it is ambiguous or an entry."""
    thread, rest = _split(cli, address)
    if rest not in {"", "@"}:
        advice = did_you_mean([(cli.threads[thread.id], title(cli, thread))])
        raise UsageError(f"“{address}” is an entry, but this command is about a whole thread.", advice)
    return thread


def resolve(cli: CliContext, address: str) -> Address:
    """Return the thread and the entry of an address; raises as ``resolve_thread`` does."""
    thread, rest = _split(cli, address)
    return Address(thread=thread, entry_id=_entry(cli, thread, rest))


def resolve_entry(cli: CliContext, thread: Thread, name: str) -> str | None:
    """Return the entry of a thread that a name means; raises as ``resolve_thread`` does."""
    return _entry(cli, thread, f":{name}")


def last_shown(cli: CliContext, found: Address) -> str | None:
    """Return the entry of an address, or the message before it if it is a turn marker or the like."""
    return None if found.entry_id is None else _upwards(cli, found.thread, found.entry_id, 0)


def thread_or_pick(cli: CliContext, address: str | None, verb: str) -> Thread:
    """Return the thread of an address; without an address, let the user pick one."""
    if address is not None:
        return resolve_thread(cli, address)
    if not _can_pick(cli):
        advice = [Line(("  the newest:  ", DIM), f"sessiontree {verb} @")]
        raise UsageError("Which thread? Nobody is there to choose one.", advice)
    from sessiontree.cli.picker import pick_thread  # noqa: PLC0415  only needed on a terminal

    return pick_thread(cli, verb)


def address_or_pick(cli: CliContext, address: str | None, verb: str) -> Address:
    """Return the thread and the entry of an address; without an address, those of a thread that the user picks."""
    return resolve(cli, address if address is not None else thread_or_pick(cli, None, verb).id)


def entry_or_pick(cli: CliContext, address: str | None, verb: str) -> Address:
    """Return the entry of an address. If none is named, let the user pick one; without a user, it is the leaf.

    Without an address the thread is picked first.
    """
    if address is not None and (not _can_pick(cli) or _split(cli, address)[1]):
        return resolve(cli, address)
    thread = thread_or_pick(cli, address, verb)
    from sessiontree.cli.picker import pick_entry  # noqa: PLC0415  only needed on a terminal

    return Address(thread=thread, entry_id=pick_entry(cli, thread, verb))


def _can_pick(cli: CliContext) -> bool:
    return cli.can_ask and not cli.out.is_dumb


def _split(cli: CliContext, address: str) -> tuple[Thread, str]:
    """Split an address into its thread and the part about an entry. Whole ids are tried first, then parts of one."""
    if not address:
        raise UsageError("The address is empty. `sessiontree ls` lists threads; @ is the one that changed last.")
    parts = splits(address)
    found = {part: threads_named(cli.journal, part, limit=_CANDIDATES + 1) for part in parts}
    for part, rest in parts.items():
        if found[part] == [part]:
            return cli.journal.thread(part), rest
    if address[0] in SIGNS:
        return _latest(cli.journal), address
    for part, rest in parts.items():
        if found[part]:
            return cli.journal.thread(_only_thread(cli, part, found[part])), rest
    return _containing(cli, parts)


def _only_thread(cli: CliContext, part: str, found: list[str]) -> str:
    if len(found) > 1:
        raise _ambiguous(part, found, cli.threads, "thread", lambda name: title(cli, cli.journal.thread(name)))
    return found[0]


def _containing(cli: CliContext, parts: Mapping[str, str]) -> tuple[Thread, str]:
    """The only thread that is printed like this, or whose id contains a run of at least four characters."""
    known = cli.journal.thread_ids("", limit=_MOST)
    for find in (printed_as, lambda part, names: runs_in(names, part)):
        for part, rest in parts.items():
            found = find(part, known)
            if len(found) == 1:
                return cli.journal.thread(found[0]), rest
    address = next(iter(parts))
    part = re.split(f"[{SIGNS}]", address, maxsplit=1)[0] or address
    names = {cli.threads[name]: name for name in known}
    rows = [(name, title(cli, cli.journal.thread(names[name]))) for name in similar(part, names)]
    advice = did_you_mean(rows) or [Line(("  all threads:  ", DIM), "sessiontree ls")]
    raise MissingError(f"No thread is called “{part}”.", advice)


def _latest(journal: Journal) -> Thread:
    page = journal.list_threads(limit=1)
    if not page.threads:
        advice = [Line(("  start one:  ", DIM), 'sessiontree new "…"')]
        raise MissingError("@ is the thread that changed last, but there are no threads yet.", advice)
    return page.threads[0]


def _entry(cli: CliContext, thread: Thread, rest: str) -> str | None:
    """The entry of an address. A whole id or label wins over the signs in it."""
    rest = _LEAF.sub("", rest)
    text = rest.removeprefix(":")
    is_name = rest.startswith(":") and has_entry(cli.journal, thread.id, text)
    steps = None if is_name else _STEPS.search(text)
    entry_id = _base(cli, thread, text[: steps.start()] if steps else text, is_name=is_name)
    if steps is None:
        return entry_id
    return _upwards(cli, thread, entry_id, sum(_number(step[1] or "1") for step in _STEP.finditer(steps[0])))


def _base(cli: CliContext, thread: Thread, text: str, *, is_name: bool) -> str | None:
    journal = cli.journal
    reflog = None if is_name else _REFLOG.fullmatch(text)
    if reflog:
        return _moved_from(cli, thread, _number(reflog[1]))
    if text in {"", "@"} and not is_name:
        return thread.leaf
    found = entries_named(journal, thread.id, text, limit=_CANDIDATES + 1)
    if not found:
        found = runs_in(journal.entry_ids(thread.id, "", limit=_MOST), text)
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(text, found, cli.entries(thread.id), "entry", lambda name: _words(journal, thread, name))
    raise _no_entry(cli, thread, text, journal.labels(thread.id))


def _no_entry(cli: CliContext, thread: Thread, text: str, labels: Mapping[str, str]) -> MissingError:
    short = cli.entries(thread.id)
    names = {short[name]: name for name in cli.journal.entry_ids(thread.id, "", limit=_MOST)}
    close = similar(text, [*labels, *names])
    rows = [(name, _words(cli.journal, thread, labels.get(name) or names[name])) for name in close]
    shown = cli.threads[thread.id]
    advice = did_you_mean(rows) or [Line(("  all of them:  ", DIM), f"sessiontree tree {cli.typed(thread.id)}")]
    return MissingError(f"Thread {shown} has no entry or label “{text}”.", advice)


def _words(journal: Journal, thread: Thread, entry_id: str) -> str:
    entry: Entry = journal.entry(thread.id, entry_id)
    return words_of(entry, thread.workspace, 200)


def _number(digits: str) -> int:
    """Cut absurdly long numbers: Python refuses to convert them, and no thread has that many entries."""
    return int(digits[:18])


def _upwards(cli: CliContext, thread: Thread, entry_id: str | None, count: int) -> str | None:
    if entry_id is None:
        raise MissingError(f"Thread {cli.threads[thread.id]} has no entries here, so there is nothing before it.")
    shown = [entry for entry in cli.journal.path(thread.id, entry_id) if not is_bookkeeping(entry)]
    if len(shown) > count:
        return shown[-1 - count].id
    if len(shown) == count:
        return None
    raise MissingError(f"~{count} goes past the beginning: there are only {len(shown)} entries up to that one.")


def _moved_from(cli: CliContext, thread: Thread, count: int) -> str | None:
    moves = cli.journal.reflog(thread.id)
    if count == 0:
        return thread.leaf
    if not 1 <= count <= len(moves):
        times = f"{len(moves)} time{'s' * (len(moves) != 1)}"
        raise MissingError(f"No @{{-{count}}}: the head of thread {cli.threads[thread.id]} has moved {times} so far.")
    return moves[-count].from_entry


def _ambiguous(part: str, found: list[str], short: ShortIds, what: str, words: Callable[[str], str]) -> UsageError:
    number = f"{len(found)}" if len(found) <= _CANDIDATES else f"more than {_CANDIDATES}"
    nouns = "threads" if what == "thread" else "entries"
    shown = [(short[name], words(name)) for name in found[:_CANDIDATES]]
    widest = max(cell_width(name) for name, _ in shown)
    advice = [Line("    ", (pad(name, widest), ID), "  ", about) for name, about in shown]
    return UsageError(f"“{part}” fits {number} {nouns}; a longer part tells them apart.", advice)
