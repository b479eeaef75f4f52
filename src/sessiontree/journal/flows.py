"""Longer procedures over a whole journal, written once as generators for ``Journal`` and ``AsyncJournal``.

A step is a function of the journal. Under the async driver whatever it returns is awaited if it can be.

>>> import sessiontree
>>> def flow():
...     thread = yield lambda journal: journal.create_thread(title="demo")
...     return thread.title
>>> with sessiontree.open("memory:") as journal:
...     run_flow(flow(), journal)
'demo'
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model.later import Later

if TYPE_CHECKING:
    from sessiontree.journal import journal_async
else:
    journal_async = Later("sessiontree.journal.journal_async")  # asyncio is slow to import

__all__ = ["Flow", "Step", "run_flow", "run_flow_async"]


T = TypeVar("T")

Step = Callable[[Journal], Any]
Flow = Generator[Step, Any, T]


def run_flow(flow: Flow[T], journal: Journal) -> T:
    try:
        step = next(flow)
        while True:
            try:
                reply = not_awaitable(step(journal))
            except BaseException as error:  # noqa: BLE001  the flow decides, and cleans up when it is cancelled
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as finished:
        return cast("T", finished.value)


def not_awaitable(reply: T) -> T:
    """The reply of a caller's function, unless nobody here could await it: then it would never run, and say nothing."""
    if not isinstance(reply, Awaitable):
        return reply
    if isinstance(reply, Coroutine):
        reply.close()
    raise InvalidInputError(
        f"a function gave something to await ({reply!r}) where nothing is awaited; use AsyncJournal or AsyncSessionManager"
    )


async def run_flow_async(flow: Flow[T], journal: journal_async.AsyncJournal) -> T:
    try:
        step = next(flow)
        while True:
            try:
                reply = step(cast("Journal", journal))
                if inspect.isawaitable(reply):
                    reply = await reply
            except BaseException as error:  # noqa: BLE001  the flow decides, and cleans up when it is cancelled
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as finished:
        return cast("T", finished.value)
