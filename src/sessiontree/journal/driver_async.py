# mypy: no-warn-unreachable
"""The driver: runs an operation on a store by answering its requests until it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.requests import Call, Operation, Pause, Request, Work
from sessiontree.stores.protocol import AsyncStore
from sessiontree.stores.queries import Query

__all__ = ["drive"]


T = TypeVar("T")


async def drive(operation: Operation[T], store: AsyncStore) -> T:
    """Run an operation and return its answer. Errors of a request are raised inside the operation first."""
    try:
        request = next(operation)
        while True:
            try:
                reply = await _answer(request, store)
            except BaseException as error:  # noqa: BLE001  the operation decides what an error or interrupt means
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


def _answer(request: Request, store: AsyncStore) -> Any:
    # Under asyncio this returns what to await: as a coroutine itself it would make every request slower.
    match request:
        case Query():
            return store.aread(request)
        case Call(function=function, arguments=arguments):
            return _call(function, arguments)
        case Work(function=function, arguments=arguments):
            return _work(function, arguments)
        case Pause(seconds=seconds):
            return asyncio.sleep(seconds)
        case _:
            return store.acommit(request)


async def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    reply = function(*arguments)
    if True:  # ASYNC
        return await reply if isinstance(reply, Awaitable) else reply
    else:
        if not isinstance(reply, Awaitable):
            return reply
        if isinstance(reply, Coroutine):
            reply.close()
        name = getattr(function, "__qualname__", repr(function))
        raise InvalidInputError(
            f"{name} returned an awaitable ({reply!r}), which a blocking journal cannot await; pass a plain function,"
            " or use AsyncJournal or AsyncSessionManager"
        )


async def _work(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    if True:  # ASYNC
        work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
        is_cancelled = False
        # A cancelled caller waits for the thread: the caller may close the files that the thread works on.
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                is_cancelled = True
        if is_cancelled:
            raise asyncio.CancelledError from work.exception()
        return work.result()
    else:
        return function(*arguments)
