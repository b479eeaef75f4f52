"""Search over everything: hits with their words marked, filters as facets, and hits for the palette while one types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from sessiontree.errors import InvalidInputError
from sessiontree.model import Record
from sessiontree.render.entries import role_of
from sessiontree.render.figures import plural
from sessiontree.render.steps import steps_of
from sessiontree.render.times import when
from sessiontree.search import Hit, SearchOrder, SearchQuery, Snippet
from sessiontree.search.query import parse_query
from sessiontree.search.snippets import snippet_of
from sessiontree.web.addresses import entry_url, segment, thread_url, with_query
from sessiontree.web.assets import asset_url
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Child, Html, icon, join, tag
from sessiontree.web.site import Visit

__all__ = ["HITS", "PAGE"]


_FACETS = ("role", "tool", "model")
_DAYS = (("1d", "last day"), ("7d", "last week"), ("30d", "last month"))
_MOST_FACETS = 8
_ROLES = ("user", "assistant", "tool")
_SIGNS = {"user": "prompt", "assistant": "answer", "tool": "terminal"}


class SearchAsked(Record, frozen=True, kw_only=True):
    """A query: words, "phrases", prefix*, -excluded words, and filters such as role:user or after:7d."""

    q: Annotated[str, Meta(max_length=2000)] = ""
    order: SearchOrder = "best"
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    cursor: str = ""


class Found(Record, frozen=True, kw_only=True):
    """One page of hits. ``facets`` count what the hits of this page are; ``problem`` says why a query cannot be asked."""

    hits: tuple[Hit, ...] = ()
    cursor: str | None = None
    facets: dict[str, dict[str, int]] = {}
    problem: str = ""


async def load(visit: Visit, asked: SearchAsked) -> Found:
    """Search. The last word is taken as a beginning: somebody may still be typing it."""
    query = _query(asked)
    if not query:
        return Found()
    try:
        found = await visit.journal.search(query, order=asked.order, limit=asked.limit, cursor=asked.cursor or None)
    except InvalidInputError as error:
        if asked.cursor:
            raise
        return Found(problem=str(error))
    return Found(hits=found.hits, cursor=found.cursor, facets=_facets(found.hits))


def _query(asked: SearchAsked) -> str:
    query = asked.q.strip()
    is_word = query[-1:].isalnum() and ":" not in query.rsplit(maxsplit=1)[-1] and query.count('"') % 2 == 0
    return f"{query}*" if is_word else query


def _facets(hits: Iterable[Hit]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {name: Counter() for name in _FACETS}
    for hit in hits:
        message = hit.entry.message
        if message is not None:
            counts["role"][message.role] += 1
            counts["tool"].update({call.name for call in message.tool_calls if " " not in call.name and call.name})
        model = getattr(hit.entry.payload, "model", "")
        if model and " " not in model:
            counts["model"][model] += 1
    return {name: dict(found.most_common(_MOST_FACETS)) for name, found in counts.items() if found}


def show(visit: Visit, asked: SearchAsked, found: Found) -> Html:
    """The page: the query, its facets, and the hits."""
    field = tag(
        "label",
        icon("search"),
        tag(
            "input",
            type="search",
            name="q",
            id="q",
            value=asked.q,
            placeholder="Words, “phrases”, prefix*, -without, role:user, tool:bash, file:main.py, after:7d",
            aria_label="Search",
            autocomplete="off",
            autofocus=True,
        ),
        class_="field big",
    )
    main = tag(
        "main",
        tag("link", rel="stylesheet", href=asset_url("search.css")),
        tag("script", type="module", src=asset_url("search.js")),
        tag("form", field, action="/search", class_="searchform", role="search"),
        tag("div", show_found(visit, asked, found), class_="found", id="hits"),
        class_="search",
        id="content",
    )
    title = f"Search: {asked.q}" if asked.q else "Search"
    return page(visit, title=title, body=main, current="/search", query=asked.q)


def show_found(visit: Visit, asked: SearchAsked, found: Found) -> Html:
    """The filters, the hits, and room for a preview; only hits if they go on where a cursor stands."""
    if asked.cursor:
        return _hits(visit, asked, found)
    facets = tag("aside", _facets_html(asked, found), class_="side", aria_label="Filters")
    preview = tag("aside", class_="preview", id="preview", aria_label="Preview") if found.hits else None
    return join(facets, tag("div", _summary(asked, found), _hits(visit, asked, found)), preview)


def _facets_html(asked: SearchAsked, found: Found) -> list[Html]:
    groups = {"role": dict.fromkeys(_ROLES, 0), **found.facets}
    shown = [
        _group(name, [_filter(asked, name, value, value, number) for value, number in values.items()])
        for name, values in groups.items()
    ]
    return [*shown, _group("when", [_filter(asked, "after", value, name) for value, name in _DAYS])]


def _group(name: str, options: list[Html]) -> Html:
    return tag("section", tag("h2", name.capitalize(), class_="h"), options)


def _filter(asked: SearchAsked, name: str, value: str, shown: str, number: int = 0) -> Html:
    """A filter: a click puts it into the query, another one takes it out."""
    word = f"{name}:{value}"
    words = asked.q.split()
    is_on = word in words
    query = " ".join(one for one in words if one != word) if is_on else f"{asked.q} {word}".strip()
    order = asked.order if asked.order != "best" else None
    return tag(
        "a",
        tag("span", shown, class_="cut grow"),
        icon("check", is_small=True) if is_on else None,
        tag("small", number) if number else None,
        class_="opt on" if is_on else "opt",
        href=with_query("/search", q=query, order=order),
        aria_current="true" if is_on else None,
    )


def _summary(asked: SearchAsked, found: Found) -> Html | None:
    if not found.hits:
        return None
    threads = len({hit.thread_id for hit in found.hits})
    more = "+" if found.cursor else ""
    orders = [
        tag(
            "a",
            name,
            href=with_query("/search", q=asked.q, order=word),
            aria_current="true" if asked.order == word else None,
        )
        for word, name in (("best", "Best"), ("newest", "Newest"))
    ]
    return tag(
        "div",
        tag("b", f"{len(found.hits)}{more} results in {plural(threads, 'thread')}", class_="sum")
        if len(found.hits) > 1
        else tag("b", "1 result", class_="sum"),
        tag("span", class_="grow"),
        tag("span", orders, class_="seg", role="group", aria_label="Order"),
        tag(
            "a",
            icon("json"),
            class_="ib",
            href=with_query("/search.json", q=asked.q, order=asked.order),
            aria_label="As JSON",
            title="As JSON",
        ),
        class_="row",
    )


def _hits(visit: Visit, asked: SearchAsked, found: Found) -> Html:
    if found.problem:
        return tag("p", found.problem[:1].upper() + found.problem[1:], class_="nothing")
    if not found.hits:
        return tag("p", "Nothing was found." if asked.q.strip() else "Type to search every message.", class_="nothing")
    threads: dict[str, list[Hit]] = {}
    for hit in found.hits:
        threads.setdefault(hit.thread_id, []).append(hit)
    more = None
    if found.cursor:
        href = with_query("/search/hits", q=asked.q, order=asked.order, limit=asked.limit, cursor=found.cursor)
        more = tag("a", "More", class_="more", href=href, data_more=True)
    query = parse_query(_query(asked), now=visit.now)
    return join([_thread(visit, query, hits) for hits in threads.values()], more)


def _thread(visit: Visit, query: SearchQuery, hits: list[Hit]) -> Html:
    """The hits of one thread, below its title."""
    title = tag("a", hits[0].title or "a thread", class_="cut", dir="auto", href=thread_url(hits[0].thread_id))
    number = tag("small", plural(len(hits), "result"), class_="dim nw")
    return tag("section", tag("h2", title, number), [_hit(visit, query, hit) for hit in hits], class_="hitgroup")


def _hit(visit: Visit, query: SearchQuery, hit: Hit) -> Html:
    role = role_of(hit.entry)
    message = hit.entry.message
    is_failed = message is not None and any(result.is_error for result in message.tool_results)
    sign = "cross" if is_failed else _SIGNS.get(role, "file")
    return tag(
        "a",
        icon(sign),
        tag("span", _said(query, hit), class_="sn", dir="auto"),
        tag("time", when(hit.entry.created_at, visit.now), class_="dim nw"),
        tag("small", f"{role}, failed" if is_failed else role),
        class_="hitrow fail" if is_failed else "hitrow",
        href=entry_url(hit.thread_id, hit.entry.id),
        data_preview=thread_url(hit.thread_id, f"/preview/{segment(hit.entry.id)}"),
    )


def _said(query: SearchQuery, hit: Hit) -> list[Child]:
    """What was found: in what was said, else in a call as it is shown elsewhere, else in all that can be found."""
    message = hit.entry.message
    if message is None:
        return marked(hit.snippet)
    said = snippet_of(message.text, query)
    if said.marks:
        return marked(said)
    for step in steps_of([hit.entry]):
        called = snippet_of(step.gist.object, query)
        if called.marks:
            return [tag("b", step.gist.name), " ", tag("code", marked(called))]
    names = {result.name for result in message.tool_results if result.name}
    return [*(item for name in sorted(names) for item in (tag("b", name), " ")), *marked(hit.snippet)]


def marked(snippet: Snippet) -> list[Child]:
    """The text around a match, with the match marked."""
    pieces: list[Child] = []
    at = 0
    for start, end in snippet.marks:
        pieces += [snippet.text[at:start], tag("mark", snippet.text[start:end])]
        at = end
    return [*pieces, snippet.text[at:]]


PAGE = Page(
    path="/search", about="Search every message, best first.", asks=SearchAsked, answer=Found, load=load, show=show
)
HITS = Page(
    path="/search/hits",
    about="One page of hits with their filters, without the page around them.",
    asks=SearchAsked,
    answer=Found,
    load=load,
    show=show_found,
)
