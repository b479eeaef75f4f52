"""Live pages: one follower for each thread that somebody looks at, whatever the number of pages.

A follower waits for commits of any process, renders what is new once, and gives it to every page. It ends with its last page.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessiontree.errors import NotFoundError, SessionTreeError
from sessiontree.model import Thread
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

Event = tuple[str, dict[str, Any]]
Queue = asyncio.Queue[Event | None]


class Followers:
    """The followers of a site, by thread; that of "" follows the list of threads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._queues: dict[str, set[Queue]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def running(self) -> int:
        """How many threads are followed."""
        return len(self._tasks)

    async def events(self, *names: str) -> AsyncIterator[Event | None]:
        """Yield the events of some threads; None from time to time, so that a page that is gone is noticed."""
        queue: Queue = asyncio.Queue(_MOST_WAITING)
        for name in names:
            self._join(name, queue)
        try:
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), _PING_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            for name in names:
                self._leave(name, queue)

    def close(self) -> None:
        """Stop all followers."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _join(self, name: str, queue: Queue) -> None:
        self._queues.setdefault(name, set()).add(queue)
        if name not in self._tasks:
            work: Callable[[], Awaitable[None]] = (lambda: self._follow(name)) if name else self._follow_list
            self._tasks[name] = asyncio.ensure_future(self._guarded(name, work))

    def _leave(self, name: str, queue: Queue) -> None:
        queues = self._queues.get(name, set())
        queues.discard(queue)
        if not queues:
            self._queues.pop(name, None)
            task = self._tasks.pop(name, None)
            if task is not None:
                task.cancel()

    async def _guarded(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """A follower goes on after an error of the store; when its thread is gone, it says so and ends."""
        while True:
            try:
                await work()
            except NotFoundError:
                self._tell(name, "gone", {})
                return
            except SessionTreeError:
                await asyncio.sleep(_LOOK_SECONDS)

    def _tell(self, name: str, kind: str, data: dict[str, Any]) -> None:
        for queue in self._queues.get(name, ()):
            # A page that does not read its stream misses events; the next one tells it the whole state again.
            with suppress(asyncio.QueueFull):
                queue.put_nowait((kind, data))

    async def _follow(self, thread_id: str) -> None:
        site = self._site
        thread = await site.journal.thread(thread_id)
        outline = await site.outlines.of(thread)
        before = thread
        state = ""
        while True:
            await self._wait(thread_id, outline)
            thread = await site.journal.thread(thread_id)
            lease = await site.journal.active_lease(thread_id)
            visit = Visit(site=site, now=site.now())
            if thread.leaf != before.leaf:
                await self._tell_entries(visit, before, thread, lease.owner if lease else "")
            shown = lease_html(visit, lease)
            fresh = f"{thread.title} {lease.owner if lease else ''} {lease.turn_id if lease else ''}"
            if fresh != state:
                state = fresh
                title = title_of(thread, visit.now) if thread.title else ""
                self._tell(
                    thread_id, "state", {"holder": lease.owner if lease else "", "lease": shown or "", "title": title}
                )
            before = thread

    async def _wait(self, thread_id: str, outline: Outline) -> None:
        """Wait for a commit, but not longer than a second: leases and moves of the head are looked at then."""
        watch = self._site.journal.watch(thread_id, after=outline.last_id, timeout=_LOOK_SECONDS)
        async with aclosing(watch) as entries:  # type: ignore[type-var]
            async for _ in entries:
                await asyncio.sleep(_BATCH_SECONDS)
                return

    async def _tell_entries(self, visit: Visit, before: Thread, thread: Thread, holder: str) -> None:
        outline = await visit.site.outlines.of(thread)
        places = outline.places(thread.leaf)
        if before.leaf is not None and before.leaf not in places:
            self._tell(thread.id, "moved", {"leaf": thread.leaf})
            return
        known = places[before.leaf] + 1 if before.leaf is not None else 0
        if len(places) < known or len(places) - known > PAGE:
            self._tell(thread.id, "moved", {"leaf": thread.leaf})
            return
        start = _first_changed(outline, thread, known)
        marks = await marks_of(visit, thread)
        shown: Transcript = await transcript_of(
            visit, thread, outline, thread.leaf, start=start, count=len(places) - start
        )
        view = View(thread=thread, labels=marks.labels, holder=holder)
        news = {
            "html": articles(visit, view, shown),
            "start": start,
            "total": len(places),
            "leaf": thread.leaf,
            "count": plural(len(places), "entry", "entries"),
        }
        self._tell(thread.id, "entries", news)

    async def _follow_list(self) -> None:
        state: tuple[tuple[str, int, int], ...] = ()
        while True:
            page = await self._site.journal.list_threads(limit=20, is_empty=False)
            fresh = tuple((one.id, one.version, one.updated_ns) for one in page)
            if state and fresh != state:
                self._tell("", "threads", {})
            state = fresh or state
            await asyncio.sleep(_LIST_SECONDS)


def _first_changed(outline: Outline, thread: Thread, known: int) -> int:
    """The place from which on a page has to be drawn again: calls whose results are new."""
    places = outline.places(thread.leaf)
    path = list(places)[known:]
    fresh = set(path)
    calls = [places[call] for call, results in outline.results.items() if call in places and fresh & set(results)]
    near = [place for place in calls if known - place < PAGE]
    return min([known, *near])


def live_routes(site: Site) -> list[Route]:
    """The streams: of a thread and the list, and of the list alone."""

    async def live(request: Request) -> Response:
        name = id_in(request.path_params["thread"]) if "thread" in request.path_params else ""

        async def stream() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            names = [name, ""] if name else [""]
            async for event in site.followers.events(*names):
                if event is None:
                    yield ": still here\n\n"
                else:
                    yield f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    return [Route("/live", live), Route("/t/{thread}/live", live)]
