"""Two changes of one managed session at the same time, and the states that they may leave: those of one after the other."""

from __future__ import annotations

import itertools
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import sessiontree as st
from sessiontree.sessions import SessionManager

CHANGES = (
    "add", "set_summary", "set_title", "add_tag", "remove_tag", "set_custom", "set_max_tokens", "set_system_prompt",
    "suspend", "compact", "uncompact", "reset", "new", "archive",
)  # fmt: skip
PAIRS = tuple(itertools.combinations_with_replacement(CHANGES, 2))
POLICY = st.CompactionPolicy(window_tokens=2_000, keep_recent_tokens=60, summary_tokens=50)


class State(NamedTuple):
    """What the callers of a manager see of a session."""

    conversations: tuple[tuple[int, str, tuple[str, ...]], ...]
    prompt: str
    summary: str
    compactions: int
    title: str
    tags: frozenset[str]
    custom: tuple[tuple[str, object], ...]
    max_tokens: int
    has_every_token: bool


def manager_of(journal: st.Journal) -> SessionManager:
    def summarize(request: st.SummaryRequest) -> str:
        said = " ".join(message.text.split()[0] for message in request.messages)
        return " ".join(part for part in (request.previous_summary, said) if part)

    return SessionManager(journal, summarize=summarize, policy=POLICY, auto_compact="off", system_prompt="Be kind.")


def key_of(name: str) -> st.SessionKey:
    return st.SessionKey(agent="bot", channel="web", peer=name)


def prepare(manager: SessionManager, name: str) -> None:
    key = key_of(name)
    for number in range(6):
        manager.add_message(key, st.user(f"m{number} " + "words " * 20))
    manager.set_summary(key, "first")
    manager.add_tag(key, "old")


def make(manager: SessionManager, name: str, change: str, side: int) -> None:
    """Make a change; ``side`` makes those of two changes differ."""
    key = key_of(name)
    match change:
        case "add":
            manager.add_message(key, st.user(f"added by {side}"))
        case "set_summary":
            manager.set_summary(key, f"summary of {side}")
        case "set_title":
            manager.set_title(key, f"title of {side}")
        case "add_tag":
            manager.add_tag(key, f"tag of {side}")
        case "remove_tag":
            manager.remove_tag(key, "old")
        case "set_custom":
            manager.set_custom(key, f"name of {side}", side)
        case "set_max_tokens":
            manager.set_max_tokens(key, 1_000 + side)
        case "set_system_prompt":
            manager.set_system_prompt(key, f"prompt of {side}")
        case "suspend":
            with suppress(st.InvalidTransitionError):
                manager.suspend(key)
        case "compact":
            _compact(manager, key)
        case "uncompact":
            with suppress(st.NothingToUncompactError):
                manager.uncompact(key)
        case "reset":
            with suppress(st.InvalidTransitionError):
                manager.reset(key)
        case "new":
            manager.new(key)
        case "archive":
            manager.archive(key)


def _compact(manager: SessionManager, key: st.SessionKey) -> None:
    while True:
        with suppress(st.CompactionClaimedError):
            manager.compact(key, force=True)
            return


def state_of(manager: SessionManager, name: str) -> State:
    key = key_of(name)
    info = manager.info(key)
    found = manager.list(peer=name)
    return State(
        conversations=tuple(
            sorted((each.generation, each.state, _texts(manager.journal, each.thread_id)) for each in found)
        ),
        prompt=manager.get_system_prompt(key),
        summary=info.summary,
        compactions=info.compactions,
        title=info.title,
        tags=frozenset(info.tags),
        custom=tuple(sorted(info.custom.items())),
        max_tokens=info.max_tokens,
        has_every_token=info.tokens == manager.journal.context(info.thread_id).estimate,
    )


def _texts(journal: st.Journal, thread_id: str) -> tuple[str, ...]:
    return tuple(message.text[:40] for message in journal.context(thread_id).messages)


@cache
def outcomes(pair: tuple[str, str]) -> frozenset[State]:
    """What the session is after the two changes, in one order and in the other."""
    found = set()
    # Of two new conversations at once there is only one.
    orders = ((0,),) if pair == ("new", "new") else ()
    for order in ((0, 1), (1, 0), *orders):
        with st.open("memory:") as journal:
            manager = manager_of(journal)
            prepare(manager, "k")
            for side in order:
                make(manager, "k", pair[side], side)
            found.add(state_of(manager, "k"))
    assert all(state.has_every_token for state in found), pair
    return frozenset(found)
