"""The two drivers: they run an operation against a store, one blocking, one awaiting."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.requests import Call, Operation, Pause, Request, Work
from sessiontree.stores.protocol import AsyncStore, Store
from sessiontree.stores.queries import Query

__all__ = ["drive", "drive_async", "not_awaitable"]


T = TypeVar("T")


def drive(operation: Operation[T], store: Store) -> T:
    try:
        request = next(operation)
        while True:
            try:
                reply = _answer(request, store)
            except BaseException as error:  # noqa: BLE001  the operation decides what an error or interrupt means
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


async def drive_async(operation: Operation[T], store: AsyncStore) -> T:
    try:
        request = next(operation)
        while True:
            try:
                reply = await _answer_async(request, store)
            except BaseException as error:  # noqa: BLE001  the operation decides what an error or interrupt means
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


def not_awaitable(reply: T) -> T:
    """The reply of a caller's function, unless nobody here could await it: then it would never run, and say nothing."""
    if not isinstance(reply, Awaitable):
        return reply
    if isinstance(reply, Coroutine):
        reply.close()
    raise InvalidInputError(
        f"a function gave something to await ({reply!r}) where nothing is awaited; use AsyncJournal or AsyncSessionManager"
    )


def _answer(request: Request, store: Store) -> Any:
    match request:
        case Query():
            return store.read(request)
        case Call(function=function, arguments=arguments) | Work(function=function, arguments=arguments):
            return not_awaitable(function(*arguments))
        case Pause(seconds=seconds):
            time.sleep(seconds)
            return None
        case _:
            return store.commit(request)


def _answer_async(request: Request, store: AsyncStore) -> Awaitable[Any]:
    """Not a coroutine itself: one layer less for every append to climb through."""
    match request:
        case Query():
            return store.aread(request)
        case Call(function=function, arguments=arguments):
            return _called(function, arguments)
        case Work(function=function, arguments=arguments):
            return _to_the_end(function, arguments)
        case Pause(seconds=seconds):
            import asyncio  # noqa: PLC0415  only an event loop comes here

            return asyncio.sleep(seconds)
        case _:
            return store.acommit(request)


async def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    reply = function(*arguments)
    return await reply if isinstance(reply, Awaitable) else reply


async def _to_the_end(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """In a thread. A cancelled caller waits for it: what the thread works on must not be closed under its hands."""
    import asyncio  # noqa: PLC0415  only an event loop comes here

    work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    is_cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError from work.exception()
    return work.result()
