"""Two changes of one session at the same time, and the states that they may leave: those of one after the other."""

from __future__ import annotations

import itertools
from contextlib import suppress
from functools import cache

import sessiontree as st
from sessiontree.sessions.simple_store import SimpleStore

CHANGES = ("add", "set_summary", "set_history", "truncate", "undo", "redo", "compact_storage")
PAIRS = tuple(itertools.combinations_with_replacement(CHANGES, 2))
State = tuple[tuple[str, ...], str]


def call(change: str, side: int) -> tuple[str, tuple[object, ...]]:
    """The method and its arguments after the key; ``side`` makes those of the two changes differ."""
    match change:
        case "add":
            return "add_message", ("user", f"added by {side}")
        case "set_summary":
            return "set_summary", (f"summary of {side}",)
        case "set_history":
            return "set_history", ([st.user(f"history of {side}").message],)
        case "truncate":
            return "truncate_history", (2 + side,)
        case _:
            return change, ()


def prepare(store: SimpleStore, key: str) -> None:
    store.set_history(key, [st.user(f"m{number}").message for number in range(8)])
    store.set_summary(key, "first")
    store.truncate_history(key, 5)


def make(store: SimpleStore, key: str, change: str, side: int) -> None:
    method, arguments = call(change, side)
    with suppress(st.NothingToUndoError, st.NothingToRedoError):
        getattr(store, method)(key, *arguments)


def state_of(store: SimpleStore, key: str) -> State:
    return tuple(message.text for message in store.get_history(key)), store.get_summary(key)


@cache
def outcomes(pair: tuple[str, str]) -> frozenset[State]:
    """What the session is after the two changes, in one order and in the other."""
    found = set()
    for order in ((0, 1), (1, 0)):
        with st.open("memory:") as journal:
            store = SimpleStore(journal)
            prepare(store, "k")
            for side in order:
                make(store, "k", pair[side], side)
            found.add(state_of(store, "k"))
    return frozenset(found)
