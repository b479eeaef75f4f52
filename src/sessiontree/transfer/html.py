"""Render a conversation as one self-contained HTML page: no script, no request, all foreign text escaped.

The page shows the active path from top to bottom; other branches are folded at the entry where they start. Every text
from the conversation goes through ``text`` or the Markdown renderer.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

from sessiontree.model import (
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    Event,
    FilePart,
    ImagePart,
    Label,
    Memory,
    Message,
    OpaquePart,
    Part,
    Progress,
    ReasoningPart,
    Record,
    RunFailure,
    TextPart,
    Thread,
    ThreadInfo,
    ToolCallPart,
    ToolResultPart,
    TurnMarker,
    counted,
)
from sessiontree.model.message import ResultContent
from sessiontree.model.sanitize import for_terminal, one_line, without_controls

__all__ = ["POLICY", "STYLE", "PageContent", "fold", "markdown", "message_html", "preformatted", "render_html", "text"]


_LONGEST_MARKDOWN = 200_000
_LONGEST_LINE = 20_000
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ALIGNMENT = re.compile(r' style="text-align:\w+"')
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def text(raw: str) -> str:
    """Text escaped for use inside an element or a quoted attribute."""
    return escape(without_controls(for_terminal(raw)), quote=True)


def markdown(raw: str) -> str:
    """Markdown as HTML, without raw HTML, images and script links; a very long text as preformatted text."""
    clean = for_terminal(raw)
    if len(clean) > _LONGEST_MARKDOWN or any(len(line) > _LONGEST_LINE for line in clean.splitlines()):
        return f"<pre>{escape(clean)}</pre>"
    # The policy allows no inline styles. Quotes in text are escaped, so this can only match an attribute.
    return _ALIGNMENT.sub("", str(_renderer().render(clean)))


def preformatted(raw: str) -> str:
    """Preformatted text; the lines of a diff are coloured."""
    clean = text(raw)
    if "\n@@ " not in "\n" + raw[:5000]:
        return f"<pre>{clean}</pre>"
    return "<pre>" + "".join(map(_diff_line, clean.splitlines())) + "</pre>"


def fold(summary: str, body: str) -> str:
    """A collapsed block with a summary line."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def message_html(message: Message) -> str:
    """The parts of a message as HTML."""
    return "".join(_part(part) for part in message.parts)


def _part(part: Part) -> str:
    match part:
        case TextPart(text=said):
            return f'<div dir="auto">{markdown(said)}</div>'
        case ReasoningPart(text=thought):
            return fold("thinking", preformatted(thought)) if thought else ""
        case ToolCallPart(name=name, arguments=arguments):
            return fold(f"→ {text(name)} {text(one_line(arguments, 100))}", preformatted(arguments))
        case ToolResultPart(name=name, parts=parts, is_error=is_error):
            said = "".join(_result(inner) for inner in parts)
            return fold(f"{'✗' if is_error else '←'} {text(name)} {text(_first_line(parts))}", said)
        case ImagePart():
            return _image(part)
        case FilePart(name=name, mime=mime):
            return f"<p>[file {text(name)} {text(mime)}]</p>"
        case OpaquePart(provider=provider, block=block):
            return fold(f"a block of {text(provider)}", preformatted(str(block)))


def _result(part: ResultContent) -> str:
    return preformatted(part.text) if isinstance(part, TextPart) else _part(part)


def _first_line(parts: Iterable[ResultContent]) -> str:
    return one_line(" ".join(part.text[:400] for part in parts if isinstance(part, TextPart)), 100)


def _image(part: ImagePart) -> str:
    """Show inline images only: loading one from elsewhere would tell its host who reads the page."""
    if part.data and part.mime in _IMAGE_TYPES and _BASE64.fullmatch(part.data):
        return f'<img alt="image" src="data:{part.mime};base64,{part.data}">'
    return f"<p>[image {text(part.url or part.mime)}]</p>"


def _diff_line(line: str) -> str:
    is_heading = line.startswith(("+++", "---", "@@", "diff "))
    kind = "at" if is_heading else {"+": "add", "-": "del"}.get(line[:1])
    return f'<span class="{kind}">{line}</span>' if kind else f"{line}\n"


@cache
def _renderer() -> Any:
    from markdown_it import MarkdownIt  # noqa: PLC0415  slow to load

    renderer = MarkdownIt("commonmark", {"html": False})
    renderer.enable(["table", "strikethrough"])
    renderer.disable(["image", "html_inline", "html_block"])
    renderer.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:", "#"))  # type: ignore[method-assign]
    return renderer


STYLE = """
:root { color-scheme: light dark; --line: #d5d8dd; --dim: #667; --user: #0b6bcb; --assistant: #1a7f37;
  --tool: #8250df; --bad: #b42318; --panel: #f6f7f9; --add: #e6f6ea; --del: #fdeceb; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a3f47; --dim: #9aa3ad; --user: #6cb6ff; --assistant: #6bc46d; --tool: #c297ff;
    --bad: #ff938a; --panel: #22262c; --add: #12301b; --del: #3b1715; } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
header p, time, .id { color: var(--dim); font-size: .85rem; font-weight: normal; }
article { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.25rem 0; overflow-wrap: anywhere; }
article > h2 { font-size: .9rem; margin: 0 0 .25rem; }
article.user { border-color: var(--user); } article.user > h2 { color: var(--user); }
article.assistant { border-color: var(--assistant); } article.assistant > h2 { color: var(--assistant); }
article.tool { border-color: var(--tool); } article.tool > h2 { color: var(--tool); }
article.failure { border-color: var(--bad); } article.failure > h2 { color: var(--bad); }
.label { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: 0 .4rem; }
pre { background: var(--panel); border-radius: .4rem; padding: .75rem; overflow: auto; max-height: 40rem; font-size: .85rem;
  white-space: pre-wrap; }
code { background: var(--panel); border-radius: .25rem; padding: .1em .25em; } pre code { background: none; padding: 0; }
blockquote { border-left: 3px solid var(--line); color: var(--dim); margin: .5rem 0; padding-left: .75rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; } th { background: var(--panel); }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--dim); overflow-wrap: anywhere; }
details.branch { border: 1px dashed var(--line); padding: .25rem .75rem; }
.add { background: var(--add); display: block; } .del { background: var(--del); display: block; }
.at { color: var(--dim); display: block; }
img { max-width: 100%; }
@media print { details:not([open]) > *:not(summary) { display: block; } }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""The content security policy: nothing but the style sheet, allowed by its hash, and inline images."""


class PageContent(Record, frozen=True, kw_only=True):
    """What a page shows: a thread, all entries that it sees in commit order, and its labels (name to entry id)."""

    thread: Thread
    entries: tuple[Entry, ...]
    labels: Mapping[str, str] = {}


def render_html(conversation: PageContent, progress: Progress | None = None) -> str:
    """Render a page. ``progress(done, total)`` is called with the number of entries of the active path.

    >>> import sessiontree as st
    >>> with st.open("memory:") as journal:
    ...     thread = journal.create_thread(title="<script>alert(1)</script>")
    ...     _ = journal.append(thread.id, st.user("hello *you*"))
    ...     entries = tuple(journal.entries(thread.id))
    ...     page = render_html(PageContent(thread=journal.thread(thread.id), entries=entries))
    >>> "<script" in page, "<em>you</em>" in page
    (False, True)
    """
    return "".join(_pieces(conversation, progress))


def _pieces(conversation: PageContent, progress: Progress | None) -> Iterator[str]:
    thread = conversation.thread
    title = text(thread.title or "(no title)")
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
    yield f'<header><h1 dir="auto">{title}</h1><p>{text(thread.id)} · {thread.messages} messages · '
    yield f"about {thread.tokens} tokens · {thread.created_at:%Y-%m-%d} to {thread.updated_at:%Y-%m-%d}</p></header><main>"
    yield from _path(conversation, progress)
    yield "</main></body></html>\n"


def _path(conversation: PageContent, progress: Progress | None) -> Iterator[str]:
    by_id = {entry.id: entry for entry in conversation.entries}
    children: dict[str | None, list[Entry]] = {}
    for entry in conversation.entries:
        children.setdefault(entry.parent if entry.parent in by_id else None, []).append(entry)
    names: dict[str, list[str]] = {}
    for name, target in conversation.labels.items():
        names.setdefault(target, []).append(name)
    path = _upwards(by_id, conversation.thread.leaf)
    on_path = {entry.id for entry in path}
    for parent in counted((None, *path), progress):
        if parent is not None:
            yield _entry(parent, names.get(parent.id, ()))
        for side in children.get(parent.id if parent else None, ()):
            if side.id not in on_path:
                yield from _branch(side, children, names)


def _branch(
    start: Entry, children: Mapping[str | None, Sequence[Entry]], names: Mapping[str, list[str]]
) -> Iterator[str]:
    """An inactive branch with all its own branches, folded."""
    entries: list[Entry] = []
    stack = [start]
    while stack:
        entries.append(stack.pop())
        stack += reversed(children.get(entries[-1].id, ()))
    shown = [piece for entry in entries if (piece := _entry(entry, names.get(entry.id, ())))]
    if shown:
        yield f'<details class="branch"><summary>another branch, {len(shown)} entries</summary>'
        yield from shown
        yield "</details>"


def _upwards(by_id: Mapping[str, Entry], leaf: str | None) -> list[Entry]:
    path: list[Entry] = []
    entry = by_id.get(leaf) if leaf else None
    while entry is not None:
        path.append(entry)
        entry = by_id.get(entry.parent) if entry.parent else None
    path.reverse()
    return path


def _entry(entry: Entry, labels: Sequence[str]) -> str:
    kind, heading, body = _content(entry)
    if not body:
        return ""
    marks = "".join(f' <span class="label">{text(name)}</span>' for name in labels)
    when = f"{entry.created_at:%Y-%m-%d %H:%M} UTC"
    return f'<article class="{kind}" id="e-{text(entry.id)}"><h2>{heading}{marks} <time>{when}</time></h2>{body}</article>\n'


def _content(entry: Entry) -> tuple[str, str, str]:
    """Class, heading and body; an empty body leaves the entry out."""
    if entry.message is not None:
        role = entry.message.role
        return role, role, message_html(entry.message)
    match entry.payload:
        case Compaction(summary=summary) if summary:
            return "note", "compaction", fold("summary of what came before", markdown(summary))
        case BranchSummary(summary=said) if said:
            return "note", "summary of a branch", markdown(said)
        case RunFailure(error=error):
            return "failure", "failed", f"<p>{text(error)}</p>"
        case TurnMarker(status="failed" | "aborted" as status, reason=reason):
            return "failure", f"turn {status}", f"<p>{text(reason) or status}</p>"
        case Memory(text=said) | ThreadInfo(text=said) if said:
            return "note", "note", markdown(said)
        case Checkpoint(files=files, root=root):
            return "note", "checkpoint", f"<p>{files} files of {text(root)}</p>"
        case Custom(name=name) if name:
            return "note", "custom", f"<p>{text(name)}</p>"
        case Label() | Event() | _:
            return "", "", ""
