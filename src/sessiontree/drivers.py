"""The two drivers: they run an operation against a store, one blocking, one awaiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sessiontree.operations.requests import Call, Operation, Request, Work
from sessiontree.queries import Query
from sessiontree.store import AsyncStore, Store

__all__ = ["drive", "drive_async"]

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


def _answer(request: Request, store: Store) -> Any:
    match request:
        case Query():
            return store.read(request)
        case Call(function=function, arguments=arguments) | Work(function=function, arguments=arguments):
            return function(*arguments)
        case _:
            return store.commit(request)


async def _answer_async(request: Request, store: AsyncStore) -> Any:
    match request:
        case Query():
            return await store.aread(request)
        case Call(function=function, arguments=arguments):
            reply = function(*arguments)
            return await reply if isinstance(reply, Awaitable) else reply
        case Work(function=function, arguments=arguments):
            return await _to_the_end(function, arguments)
        case _:
            return await store.acommit(request)


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
