"""Live pages: one follower for each thread that somebody looks at, whatever the number of pages.

A follower waits for commits of any process, renders what is new once, and gives it to every page. It ends with its last page.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessiontree.errors import NotFoundError, SessionTreeError
from sessiontree.model import Lease, Thread
from sessiontree.render.figures import plural
from sessiontree.render.threads import title_of
from sessiontree.web.addresses import id_in
from sessiontree.web.outline import Outline
from sessiontree.web.pages.thread import lease_html
from sessiontree.web.panes.transcript import Transcript, View, articles
from sessiontree.web.panes.tree import marks_of
from sessiontree.web.reading import PAGE, transcript_of
from sessiontree.web.site import Site, Visit

__all__ = ["Followers", "live_routes"]


_BATCH_SECONDS = 0.03
_LOOK_SECONDS = 1.0
_PING_SECONDS = 15.0
_MOST_WAITING = 200
_LIST_SECONDS = 2.0


class Event(NamedTuple):
    """Something to tell a page. ``leaf`` is the head that the page knows then."""

    kind: Literal["entries", "moved", "state", "threads", "gone"]
    data: dict[str, Any] = {}
    leaf: str | None = None

    def lines(self) -> str:
        """The event as it is sent."""
        name = f"id: {quote(self.leaf, safe='')}\n" if self.leaf is not None else ""
        return f"event: {self.kind}\n{name}data: {json.dumps(self.data)}\n\n"


Queue = asyncio.Queue[Event | None]


class _Followed:
    """A thread that pages look at: their queues, the task that follows it, and what they were told last."""

    def __init__(self) -> None:
        self.queues: set[Queue] = set()
        self.task: asyncio.Task[None] | None = None
        self.has_begun = asyncio.Event()
        self.head: str | None = None
        self.state = ""

    def tell(self, event: Event | None) -> None:
        """Give an event to every page, or wake them with None. One that does not read its stream misses it; the next one tells the whole state again."""
        for queue in self.queues:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(event)


class Followers:
    """What is followed for the pages of a site, by thread; "" is the list of threads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._followed: dict[str, _Followed] = {}
        self._is_closed = False

    @property
    def running(self) -> int:
        """How many threads are followed."""
        return len(self._followed)

    async def events(self, name: str, after: str | None) -> AsyncIterator[Event | None]:
        """Yield the events of a thread and of the list, or of the list alone: first what happened since the head was ``after``.

        None comes from time to time, so that a page that is gone is noticed.
        """
        queue: Queue = asyncio.Queue(_MOST_WAITING)
        names = (name, "") if name else ("",)
        for one in names:
            self._join(one, queue)
        try:
            if name and after is not None:
                # Whatever comes after the follower has begun is told by it.
                await self._followed[name].has_begun.wait()
                for event in await self._missed(name, after):
                    yield event
            while not self._is_closed:
                try:
                    yield await asyncio.wait_for(queue.get(), _PING_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            for one in names:
                self._leave(one, queue)

    def close(self) -> None:
        """Stop all followers, and end the streams of their pages."""
        self._is_closed = True
        for followed in self._followed.values():
            followed.tell(None)
            if followed.task is not None:
                followed.task.cancel()
        self._followed.clear()

    def _join(self, name: str, queue: Queue) -> None:
        if name not in self._followed:
            followed = self._followed[name] = _Followed()
            followed.task = asyncio.ensure_future(self._guarded(name, followed))
        self._followed[name].queues.add(queue)

    def _leave(self, name: str, queue: Queue) -> None:
        followed = self._followed.get(name)
        if followed is None:
            return
        followed.queues.discard(queue)
        if not followed.queues:
            del self._followed[name]
            if followed.task is not None:
                followed.task.cancel()

    async def _guarded(self, name: str, followed: _Followed) -> None:
        """A follower goes on after an error of the store; when its thread is gone, it says so and ends."""
        while True:
            try:
                await (self._follow(name, followed) if name else self._follow_list(followed))
            except NotFoundError:
                # A thread of that name may be made again: its pages get a follower of their own.
                self._followed.pop(name, None)
                followed.has_begun.set()
                followed.tell(Event("gone"))
                return
            except SessionTreeError:
                await asyncio.sleep(_LOOK_SECONDS)

    async def _missed(self, name: str, after: str) -> list[Event]:
        """What was committed between the page and its stream, or while the page had none."""
        visit = Visit(site=self._site, now=self._site.now())
        try:
            thread = await visit.journal.thread(name)
            lease = await visit.journal.active_lease(name)
            outline = await visit.site.outlines.of(thread)
            news = [await _news(visit, after or None, thread, outline, lease)] if (thread.leaf or "") != after else []
        except NotFoundError:
            return [Event("gone")]
        return [*news, _state(visit, thread, lease)]

    async def _follow(self, thread_id: str, followed: _Followed) -> None:
        site = self._site
        thread = await site.journal.thread(thread_id)
        outline = await site.outlines.of(thread)
        if not followed.has_begun.is_set():
            followed.head = thread.leaf
            followed.has_begun.set()
        while True:
            await self._wait(thread_id, outline)
            thread = await site.journal.thread(thread_id)
            outline = await site.outlines.of(thread)
            lease = await site.journal.active_lease(thread_id)
            visit = Visit(site=site, now=site.now())
            if thread.leaf != followed.head:
                followed.tell(await _news(visit, followed.head, thread, outline, lease))
                followed.head = thread.leaf
            fresh = f"{thread.title} {lease.owner if lease else ''} {lease.turn_id if lease else ''}"
            if fresh != followed.state:
                followed.state = fresh
                followed.tell(_state(visit, thread, lease))

    async def _wait(self, thread_id: str, outline: Outline) -> None:
        """Wait for a commit, but not longer than a second: leases and moves of the head are looked at then."""
        watch = self._site.journal.watch(thread_id, after=outline.last_id, timeout=_LOOK_SECONDS)
        async with aclosing(watch) as entries:  # type: ignore[type-var]
            async for _ in entries:
                await asyncio.sleep(_BATCH_SECONDS)
                return

    async def _follow_list(self, followed: _Followed) -> None:
        state: tuple[tuple[str, int, int], ...] | None = None
        while True:
            page = await self._site.journal.list_threads(limit=20, is_empty=False)
            fresh = tuple((one.id, one.version, one.updated_ns) for one in page)
            if state is not None and fresh != state:
                followed.tell(Event("threads"))
            state = fresh
            await asyncio.sleep(_LIST_SECONDS)


async def _news(visit: Visit, before: str | None, thread: Thread, outline: Outline, lease: Lease | None) -> Event:
    """What a page that knows the head ``before`` has to hear: new entries, at most a page of them, or that the head moved."""
    total = outline.length(thread.leaf)
    if before is not None and not outline.is_on(before, thread.leaf):
        return Event("moved", {"leaf": thread.leaf}, thread.leaf)
    start = _first_changed(outline, thread, outline.length(before))
    end = min(total, start + PAGE)
    marks = await marks_of(visit, thread)
    shown: Transcript = await transcript_of(visit, thread, outline, thread.leaf, start=start, count=end - start)
    view = View(thread=thread, labels=marks.labels, holder=lease.owner if lease else "")
    news = {
        "html": articles(visit, view, shown),
        "start": start,
        "end": end,
        "total": total,
        "leaf": thread.leaf,
        "count": plural(total, "entry", "entries"),
    }
    return Event("entries", news, thread.leaf)


def _state(visit: Visit, thread: Thread, lease: Lease | None) -> Event:
    title = title_of(thread, visit.now) if thread.title else ""
    shown = lease_html(visit, lease) or ""
    return Event("state", {"holder": lease.owner if lease else "", "lease": shown, "title": title})


def _first_changed(outline: Outline, thread: Thread, known: int) -> int:
    """The place from which on a page has to be drawn again: calls whose results are new."""
    fresh = outline.window(thread.leaf, known, outline.length(thread.leaf))
    calls = {outline.call_of[node.id] for node in fresh if node.id in outline.call_of}
    places = [outline.nodes[call].place for call in calls if outline.is_on(call, thread.leaf)]
    return min([known, *(place for place in places if known - place < PAGE)])


def live_routes(site: Site) -> list[Route]:
    """The streams: of a thread and the list, and of the list alone."""

    async def live(request: Request) -> Response:
        name = id_in(request.path_params["thread"]) if "thread" in request.path_params else ""
        last = request.headers.get("last-event-id")
        after = unquote(last) if last is not None else request.query_params.get("after")

        async def stream() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            async with aclosing(site.followers.events(name, after)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event.lines() if event is not None else ": still here\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    return [Route("/live", live), Route("/t/{thread}/live", live)]
