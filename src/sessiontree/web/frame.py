"""The frame around every page: the head, the top bar, and the bar of a phone."""

from __future__ import annotations

from sessiontree.web.assets import asset_url
from sessiontree.web.markup import Child, Html, icon, tag
from sessiontree.web.site import Visit

__all__ = ["page"]


_LOGO = Html(
    '<svg width="20" height="20" viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" aria-hidden="true"><path d="M6 3v14M6 12.500c0-3.500 8-2 8-6.500"/>'
    '<circle cx="14" cy="4" r="1.700" fill="currentColor"/></svg>'
)
_PAGES = (("/", "Threads", "tree"), ("/look-back", "Look back", "chart"))


def page(visit: Visit, *, title: str, body: Child, current: str = "/", view: str = "", query: str = "") -> Html:
    """Return a whole page. ``current`` is the address of its tab, ``view`` the pane that a phone shows first."""
    return tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", f"{title} · sessiontree"),
            tag("link", rel="icon", href="data:,"),
            tag("link", rel="stylesheet", href=asset_url("viewer.css")),
            tag("script", type="module", src=asset_url("viewer.js")),
        ),
        tag(
            "body",
            tag("a", "Skip to the content", class_="skip", href="#content"),
            _top(visit, current, query),
            body,
            _tabs(current, view),
            tag("div", class_="vh", aria_live="polite", id="say"),
            tag("div", class_="toasts", id="toasts"),
            data_view=view or None,
            data_read_only=visit.site.is_read_only or None,
        ),
        lang="en",
        data_theme=visit.theme or None,
    )


def _top(visit: Visit, current: str, query: str) -> Html:
    return tag(
        "header",
        tag("a", _LOGO, tag("span", "sessiontree", class_="cut"), class_="brand", href="/"),
        tag("span", visit.site.store, class_="store mono cut wide", title=f"The store {visit.site.store}"),
        tag("span", icon("lock", is_small=True), "read only", class_="chip") if visit.site.is_read_only else None,
        tag(
            "form",
            tag(
                "label",
                icon("search"),
                tag(
                    "input",
                    type="search",
                    name="q",
                    value=query,
                    placeholder="Search every message, file and tool call",
                    aria_label="Search everything",
                    autocomplete="off",
                ),
                tag("kbd", "Ctrl K", class_="wide"),
                class_="field",
            ),
            action="/search",
            role="search",
            class_="find",
        ),
        tag(
            "nav",
            *(
                tag("a", icon(sign), tag("span", name), href=path, aria_current="page" if path == current else None)
                for path, name, sign in _PAGES
            ),
            class_="nav",
            aria_label="Pages",
        ),
        tag("a", icon("search"), class_="ib ph-only", href="/search", aria_label="Search"),
        tag("button", icon("sun"), class_="ib", data_do="theme", aria_label="Dark or light", title="Dark or light"),
        tag("button", icon("help"), class_="ib", data_do="help", aria_label="Keyboard help", title="Keyboard (?)"),
        class_="top",
    )


def _tabs(current: str, view: str) -> Html:
    """The bar at the bottom of a phone: the panes of a thread where there are some, else the pages."""
    panes = (("threads", "Threads", "list"), ("tree", "Tree", "tree"), ("transcript", "Transcript", "answer"))
    links = [
        tag("a", icon(sign), name, href=f"#{pane}", data_view=pane, aria_current="true" if pane == view else None)
        for pane, name, sign in panes
    ]
    if not view:
        links = [tag("a", icon("list"), "Threads", href="/", aria_current="true" if current == "/" else None)]
    is_here = current == "/look-back"
    back = tag("a", icon("chart"), "Look back", href="/look-back", aria_current="true" if is_here else None)
    return tag("nav", links, back, class_="tabs", aria_label="Views")
