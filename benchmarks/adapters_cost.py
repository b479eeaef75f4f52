"""What LangGraph's calls take with our saver and with its own, alternating in one run, on SQLite and PostgreSQL.

Run it in the environment of the adapters: ``.venv-adapters/bin/python -m benchmarks.adapters_cost``. ``measure`` is for a
runner; every case is a pair of functions that do the same through the framework's own API.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from sessiontree.adapters.langgraph import SessionTreeSaver

TEXT = "It is a long message about leeks, potatoes and cream, as a cook would write it. " * 6
ROUNDS = 9
VERBS = ("append", "read all", "list 5", "fork")


class Conversation:
    """A thread of a graph with one list of messages, written through a saver."""

    def __init__(self, saver: BaseCheckpointSaver[str], name: str, messages: int) -> None:
        self.saver = saver
        self.name = name
        self.messages: list[Any] = []
        self.config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self.version: str | None = None
        self.forks = 0
        self._put(messages - 25)
        for _ in range(25):
            self._put(1)

    def _put(self, count: int) -> None:
        first = len(self.messages)
        kinds = (HumanMessage, AIMessage)
        new = [kinds[number % 2](TEXT, id=f"m{number}") for number in range(first, first + count)]
        self.messages = [*self.messages, *new]
        self.version = self.saver.get_next_version(self.version, None)
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"messages": self.messages}}
        checkpoint["channel_versions"] = {"messages": self.version}
        self.config = self.saver.put(self.config, checkpoint, {"step": first}, {"messages": self.version})

    def run(self, verb: str) -> None:
        """Run one of VERBS once."""
        thread: Any = {"configurable": {"thread_id": self.name, "checkpoint_ns": ""}}
        match verb:
            case "append":
                self._put(1)
            case "read all":
                found = self.saver.get_tuple(thread)
                assert found is not None
                assert len(found.checkpoint["channel_values"]["messages"]) == len(self.messages)
            case "list 5":
                assert len(list(self.saver.list(thread, limit=5))) == 5
            case "fork":
                self._fork(thread)

    def _fork(self, thread: Any) -> None:
        """A new thread that begins with this one; LangGraph's savers have to write the state again."""
        self.forks += 1
        name = f"{self.name} fork {self.forks}"
        if isinstance(self.saver, SessionTreeSaver):
            self.saver.fork(self.name, name)
            return
        found = self.saver.get_tuple(thread)
        assert found is not None
        target: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        versions: Any = found.checkpoint["channel_versions"]
        self.saver.put(target, found.checkpoint, found.metadata, versions)


def measure(
    ours: BaseCheckpointSaver[str], theirs: BaseCheckpointSaver[str], messages: int
) -> Iterator[tuple[str, float, float]]:
    """Return the median milliseconds of each verb with both savers."""
    pair = [Conversation(saver, f"chat {messages}", messages) for saver in (ours, theirs)]
    for verb in VERBS:
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS):
            for side in (0, 1) if number % 2 else (1, 0):
                times[side].append(timed(partial(pair[side].run, verb)))
        yield verb, *(1_000 * statistics.median(side) for side in times)


def timed(function: Callable[[], None]) -> float:
    """Return the seconds that a call took."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@contextmanager
def savers(kind: str, folder: Path) -> Iterator[tuple[SessionTreeSaver, BaseCheckpointSaver[str]]]:
    """Open our saver and LangGraph's own on one kind of database."""
    with ExitStack() as stack:
        theirs: BaseCheckpointSaver[str]
        if kind == "sqlite":
            connection = sqlite3.connect(folder / "theirs.db", check_same_thread=False)
            stack.callback(connection.close)
            connection.execute("PRAGMA synchronous = FULL")  # both survive a power loss
            theirs, url = SqliteSaver(connection), f"sqlite:///{folder}/ours.db"
        else:
            sys.path.append(str(Path(__file__).parents[1] / "tests"))
            from postgres_server import new_database  # noqa: PLC0415  starts a server

            url = new_database()
            saver = stack.enter_context(PostgresSaver.from_conn_string(new_database()))
            saver.setup()
            theirs = saver
        yield stack.enter_context(SessionTreeSaver(url)), theirs


def main() -> None:
    """Print a table."""
    print("| store | messages | call | ours ms | theirs ms | theirs / ours |\n|---|---|---|---|---|---|")
    for kind in ("sqlite", "postgres"):
        with tempfile.TemporaryDirectory() as folder, savers(kind, Path(folder)) as pair:
            for messages in (100, 5_000):
                for verb, ours, theirs in measure(*pair, messages):
                    print(
                        f"| {kind} | {messages} | {verb} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
