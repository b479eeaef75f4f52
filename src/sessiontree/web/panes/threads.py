"""The list of threads: its rows, by day, forks below the thread that they left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta

from msgspec.structs import replace

from sessiontree.model import Entry, Page, Record, RunFailure, Thread, ThreadQuery, TurnMarker
from sessiontree.render.figures import plural
from sessiontree.render.threads import first_words, folder_of, title_of, tool_of
from sessiontree.render.times import clock, moment_at, when
from sessiontree.web.addresses import thread_url, with_query
from sessiontree.web.markup import Child, Html, icon, join, tag
from sessiontree.web.panes.grip import grip
from sessiontree.web.site import Visit

__all__ = ["FACETS", "STAR", "ThreadAsked", "ThreadList", "ThreadRow", "load_threads", "thread_rows", "threads_pane"]


STAR = "starred"
"""The tag of threads that their reader wants at hand."""

FACETS = ("folder", "tool", "model", "tag", "day")
"""What threads can be filtered by, besides their titles."""

_PAGE = 60
_FIRST_DAY, _LAST_DAY = date(1970, 1, 2).toordinal(), date(2262, 1, 1).toordinal()
_LOOKED_THROUGH = 500
_MOST_LOOKS = 20
_MOST_LEASES = 20
_RUNNING = timedelta(hours=6)


class ThreadAsked(Record, frozen=True, kw_only=True):
    """What a list of threads is asked for.

    ``find`` is a part of their titles, ``tool`` the program that they come from, ``day`` that of their last change.
    """

    find: str = ""
    folder: str = ""
    tool: str = ""
    model: str = ""
    tag: str = ""
    day: date | None = None
    is_archived: bool = False
    cursor: str = ""

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.filters)

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are on, as they stand in an address."""
        found = {name: str(getattr(self, name) or "") for name in ("find", *FACETS)}
        found["is_archived"] = "true" if self.is_archived else ""
        return {name: value for name, value in found.items() if value}


class ThreadRow(Record, frozen=True, kw_only=True):
    """A thread in a list. ``holder`` is who runs a turn on it now."""

    id: str
    title: str
    updated_ns: int
    entries: int = 0
    model: str = ""
    tool: str = ""
    folder: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    holder: str = ""
    is_failed: bool = False
    is_archived: bool = False


class ThreadList(Record, frozen=True, kw_only=True):
    """One page of threads, the last changed first; ``cursor`` asks for the next one."""

    rows: tuple[ThreadRow, ...]
    cursor: str | None = None
    asked: ThreadAsked = ThreadAsked()


async def load_threads(visit: Visit, asked: ThreadAsked = ThreadAsked()) -> ThreadList:  # noqa: B008  it is immutable
    """Read one page of threads."""
    query = ThreadQuery(
        is_archived=asked.is_archived,
        is_empty=False,
        title_contains=asked.find or None,
        workspace=asked.folder or None,
        model=asked.model or None,
        tags=(asked.tag,) if asked.tag else (),
        updated_after_ns=_midnight(visit, asked.day.toordinal()) if asked.day else None,
        updated_before_ns=_midnight(visit, asked.day.toordinal() + 1) if asked.day else None,
        cursor=asked.cursor or None,
        limit=_PAGE,
    )
    page = await (_from_tool(visit, query, asked.tool) if asked.tool else visit.journal.list_threads(query))
    last = await visit.journal.last_entries(page.threads)
    holders = await _holders(visit, page.threads)
    rows = [await _row(visit, one, last.get(one.id), holders.get(one.id, "")) for one in page.threads]
    return ThreadList(rows=tuple(rows), cursor=page.cursor, asked=asked)


def _midnight(visit: Visit, day: int) -> int:
    """The time at which a day, by its number, begins; the first or last that a store knows if it is out of reach."""
    within = date.fromordinal(max(_FIRST_DAY, min(_LAST_DAY, day)))
    return int(datetime.combine(within, time.min, visit.now.tzinfo).timestamp()) * 10**9


async def _from_tool(visit: Visit, query: ThreadQuery, tool: str) -> Page:
    """A page of the threads of a program. Stores do not know it, so a number of threads is looked through at a time."""
    found: list[Thread] = []
    cursor = query.cursor
    for _ in range(_MOST_LOOKS):
        page = await visit.journal.list_threads(replace(query, cursor=cursor, limit=_LOOKED_THROUGH))
        found += [one for one in page.threads if tool_of(one) == tool]
        cursor = page.cursor
        if cursor is None or len(found) >= _PAGE:
            break
    return Page(threads=tuple(found), cursor=cursor)


async def _holders(visit: Visit, threads: Sequence[Thread]) -> dict[str, str]:
    """Who runs turns now, asked only for threads that changed lately."""
    recent = [one for one in threads if visit.now - moment_at(one.updated_ns, visit.now) < _RUNNING]
    leases = {one.id: await visit.journal.active_lease(one.id) for one in recent[:_MOST_LEASES]}
    return {name: lease.owner for name, lease in leases.items() if lease is not None}


async def _row(visit: Visit, thread: Thread, last: Entry | None, holder: str) -> ThreadRow:
    title = thread.title.strip()
    if not title:
        said = await visit.journal.entries(thread.id, types=("user_message",), limit=1)
        title = first_words(said)
    return ThreadRow(
        id=thread.id,
        title=title or title_of(thread, visit.now),
        updated_ns=thread.updated_ns,
        entries=thread.entries,
        model=thread.model,
        tool=tool_of(thread),
        folder=folder_of(thread),
        tags=thread.tags,
        source=thread.forked_from_thread,
        holder=holder,
        is_failed=not holder and last is not None and _is_failure(last),
        is_archived=thread.is_archived,
    )


def _is_failure(entry: Entry) -> bool:
    match entry.payload:
        case RunFailure() | TurnMarker(status="failed" | "aborted"):
            return True
        case _:
            return False


def threads_pane(visit: Visit, threads: ThreadList, current: str = "") -> Html:
    """The pane: the filter, and the rows."""
    asked = threads.asked
    field = tag(
        "label",
        icon("filter"),
        tag(
            "input",
            type="search",
            name="find",
            id="filter",
            value=asked.find,
            placeholder="Filter threads",
            aria_label="Filter threads by title",
            autocomplete="off",
        ),
        tag("kbd", "/", class_="wide"),
        class_="field",
    )
    kept = [
        tag("input", type="hidden", name=name, value=value) for name, value in asked.filters.items() if name != "find"
    ]
    return tag(
        "section",
        tag("form", field, kept, tag("div", _chips(asked), class_="facets"), class_="phead", action="/"),
        tag("div", thread_rows(visit, threads, current), class_="scroll", id="threads", tabindex=-1),
        grip("threads", "Width of the threads", 284),
        class_="pane threads",
        aria_label="Threads",
    )


def _chips(asked: ThreadAsked) -> list[Html]:
    """The filters that are on, each of which can be taken away, and those that are off."""
    chips: list[Html] = []
    for name in FACETS:
        value = asked.filters.get(name)
        if value:
            rest = {key: one for key, one in asked.filters.items() if key != name}
            shown = value.rstrip("/").rsplit("/", 1)[-1]
            chips.append(
                tag(
                    "a",
                    shown,
                    icon("cross", is_small=True),
                    class_="chip on",
                    href=with_query("/", **rest),
                    title=f"{name}: {value}",
                    aria_label=f"Remove the filter {name} {shown}",
                )
            )
        else:
            chips.append(tag("button", name, class_="chip", type="button", data_facet=name, aria_haspopup="true"))
    starred = asked.tag == STAR
    if not asked.tag:
        chips.append(tag("a", "starred", class_="chip", href=with_query("/", tag=STAR)))
    if not starred:
        href = "/" if asked.is_archived else with_query("/", is_archived="true")
        chips.append(tag("a", "archived", class_="chip on" if asked.is_archived else "chip", href=href))
    return chips


def thread_rows(visit: Visit, threads: ThreadList, current: str = "") -> Html:
    """The rows of one page of threads, under the names of their days, and the way to the next page."""
    if not threads.rows:
        return tag("p", "No thread matches." if threads.asked.is_filtered else "No threads yet.", class_="nothing")
    pieces: list[Child] = []
    before = ""
    for row, is_kid in _in_families(threads.rows):
        day = before if is_kid else _day(moment_at(row.updated_ns, visit.now), visit.now)
        if day != before:
            pieces.append(tag("h2", day, class_="h day"))
            before = day
        pieces.append(_row_html(visit, row, is_kid=is_kid, is_current=row.id == current))
    if threads.cursor:
        href = with_query("/threads", **threads.asked.filters, cursor=threads.cursor)
        pieces.append(tag("a", "More threads", class_="more", href=href, data_more=True))
    return join(pieces)


def _in_families(rows: Sequence[ThreadRow]) -> Iterator[tuple[ThreadRow, bool]]:
    """The rows in their order, but forks directly below the thread that they left, if that is on the page."""
    names = {row.id for row in rows}
    kids: dict[str, list[ThreadRow]] = {}
    for row in rows:
        if row.source in names and row.source != row.id:
            kids.setdefault(row.source, []).append(row)
    shown: set[str] = set()
    for row in rows:
        if row.id in shown or (row.source in names and row.source != row.id):
            continue
        yield from _family(row, kids, shown)
    # Threads that name each other as their source are in no family.
    yield from ((row, False) for row in rows if row.id not in shown)


def _family(row: ThreadRow, kids: dict[str, list[ThreadRow]], shown: set[str]) -> Iterator[tuple[ThreadRow, bool]]:
    waiting = [(row, False)]
    while waiting:
        one, is_kid = waiting.pop()
        if one.id in shown:
            continue
        shown.add(one.id)
        yield one, is_kid
        waiting += [(kid, True) for kid in reversed(kids.get(one.id, []))]


def _row_html(visit: Visit, row: ThreadRow, *, is_kid: bool, is_current: bool) -> Html:
    changed = moment_at(row.updated_ns, visit.now)
    age = when(changed, visit.now)
    moment = clock(changed, visit.now) if age == "yesterday" else age
    star = icon("star", is_small=True) if STAR in row.tags else None
    shown = tag("span", tag("span", class_="pulse"), "now", class_="wh live") if row.holder else None
    facts: Iterable[Child] = (
        tag("span", f"{row.holder} writing", class_="live") if row.holder else None,
        tag("span", icon("cross", is_small=True), " turn failed", class_="bad") if row.is_failed else None,
        tag("span", "fork") if row.source else None,
        tag("span", row.model) if row.model and not row.holder else None,
        tag("span", f"imported from {row.tool}") if row.tool and not row.model else None,
        tag("span", plural(row.entries, "entry", "entries")),
    )
    return tag(
        "a",
        tag("span", row.title, class_="ti cut", dir="auto"),
        shown or tag("span", star, moment, class_="wh"),
        tag("span", facts, class_="me"),
        class_="th kid" if is_kid else "th",
        href=thread_url(row.id),
        aria_current="true" if is_current else None,
        data_thread=row.id,
        data_entries=row.entries,
        title=f"{row.title}\n{row.folder}".strip() if len(row.title) > 30 else (row.folder or None),
    )


def _day(moment: datetime, now: datetime) -> str:
    days = (now.date() - moment.date()).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days < 7:
        return "This week"
    if days < 31:
        return "This month"
    return f"{moment:%B}" if moment.year == now.year else f"{moment:%B %Y}"
