"""What the model sees at an entry: exactly the messages of the next request."""

from __future__ import annotations

from sessiontree.context import Context
from sessiontree.model import Message, Record, Thread
from sessiontree.render.figures import count, plural
from sessiontree.render.html.ansi import terminal
from sessiontree.render.html.blocks import code, markdown
from sessiontree.render.outcomes import result_text
from sessiontree.render.threads import title_of
from sessiontree.web.addresses import entry_url, thread_url
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Child, Html, tag
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


class ContextAsked(Record, frozen=True, kw_only=True):
    """A thread, and the entry at which the model is asked; by default its head."""

    thread: str
    at: str = ""


class ContextShown(Record, frozen=True, kw_only=True):
    """The context at an entry."""

    thread: Thread
    context: Context


async def load(visit: Visit, asked: ContextAsked) -> ContextShown:
    """Build the context."""
    thread = await visit.journal.thread(asked.thread)
    found = await visit.journal.context(thread.id, leaf=asked.at or thread.leaf)
    return ContextShown(thread=thread, context=found)


def show(visit: Visit, asked: ContextAsked, found: ContextShown) -> Html:
    """The messages one after the other."""
    thread, built = found.thread, found.context
    title = title_of(thread, visit.now)
    back = entry_url(thread.id, asked.at) if asked.at else thread_url(thread.id)
    size = f"{plural(len(built.messages), 'message')}, {count(built.tokens, is_estimate=True)} tokens"
    main = tag(
        "main",
        tag("h1", "What the model sees"),
        tag("p", tag("a", title, href=back, class_="u"), f" · {size}", class_="sub"),
        tag("section", tag("h2", "system", class_="h"), Html(markdown(built.system)), class_="msg md")
        if built.system
        else None,
        [_message(message) for message in built.messages],
        class_="wide-page context",
        id="content",
    )
    return page(visit, title=f"Context of {title}", body=main)


def _message(message: Message) -> Html:
    pieces: list[Child] = [Html(markdown(message.text)) if message.text.strip() else None]
    pieces += [
        tag("div", tag("b", call.name), Html(code(call.arguments, "json")), class_="part")
        for call in message.tool_calls
    ]
    pieces += [tag("pre", Html(terminal(result_text(result)[:4000])), class_="term") for result in message.tool_results]
    return tag("section", tag("h2", message.role, class_="h"), pieces, class_="msg md")


PAGE = Page(
    path="/t/{thread}/context",
    about="What the model sees at an entry: the messages of the next request.",
    asks=ContextAsked,
    answer=ContextShown,
    load=load,
    show=show,
)
