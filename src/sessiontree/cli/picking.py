"""A picker for people who gave no id: type a number, or letters of the title in order."""

from __future__ import annotations

import sys

from sessiontree.cli.addresses import short, thread_of
from sessiontree.cli.exits import UsageError
from sessiontree.cli.world import World
from sessiontree.harmless import one_line
from sessiontree.model import Thread

__all__ = ["is_fuzzy_match", "pick_thread", "thread_for"]

_SHOWN = 15
_CONSIDERED = 500


def thread_for(world: World, address: str | None) -> Thread:
    """The thread of an address; without one a person may pick, and a script is told what is missing."""
    if address is not None:
        return thread_of(world.journal, address)
    if not world.can_ask:
        raise UsageError("which thread? give an id, a part of one, or @ for the thread that changed last")
    return pick_thread(world)


def pick_thread(world: World) -> Thread:
    threads = world.journal.list_threads(limit=_CONSIDERED).threads
    if not threads:
        raise UsageError("there is no thread to pick; start one with: sessiontree new")
    shown = threads[:_SHOWN]
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
        shown = tuple(found[:_SHOWN]) or shown


def is_fuzzy_match(letters: str, text: str) -> bool:
    """Whether the letters stand in the text in this order, perhaps apart.

    >>> is_fuzzy_match("fxbg", "Fix the bug")
    True
    """
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold() if not letter.isspace())
