"""Tool calls in the transcript: one line each, and opened as what they are: a terminal, a diff, a file, matches, JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sessiontree.model import ImagePart, TextPart, ToolResultPart
from sessiontree.render.figures import duration, plural
from sessiontree.render.html.ansi import terminal
from sessiontree.render.html.blocks import code, image, text
from sessiontree.render.html.diffs import diff_table
from sessiontree.render.html.json_tree import json_tree
from sessiontree.render.outcomes import result_text
from sessiontree.render.steps import Step
from sessiontree.web.markup import Child, Html, icon, join, tag

__all__ = ["MOST_CHARACTERS", "calls_html", "more_button", "result_html"]


_ICONS = {
    "bash": "terminal",
    "read": "file",
    "edit": "edit",
    "write": "edit",
    "grep": "search",
    "find": "folder",
    "web": "globe",
    "agent": "agent",
    "plan": "list",
    "ask": "help",
    "other": "json",
}
_FIRST_LINES, _LAST_LINES = 6, 12
_MOST_LINES = 40
MOST_CHARACTERS = 20_000
"""How much of a text is shown before it is asked for: a window of long ones must not keep the server busy."""
_SHORTEST_BAR, _FULL_BAR = 3, 100
_MATCH = re.compile(r"^([^\s:][^:\n]{0,200}):(\d+)[:-](.*)$")
_NUMBERED = re.compile(r"^\s*(\d{1,6})[\t→|](.*)$")


def calls_html(steps: Sequence[Step], *, is_whole: bool, is_running: bool) -> Html:
    """The calls of one message, in a box."""
    if not steps:
        return Html("")
    longest = max((step.seconds or 0 for step in steps), default=0)
    head = None
    if len(steps) > 1:
        took = duration(longest) if longest >= 0.1 else ""
        head = tag("div", tag("span", f"{len(steps)} calls in parallel", class_="grow"), tag("span", took), class_="ch")
    rows = [_call(step, longest, is_whole=is_whole, is_running=is_running) for step in steps]
    return tag("div", head, rows, class_="calls")


def result_html(result: ToolResultPart, *, is_whole: bool) -> Html:
    """A result whose call is not on this path."""
    summary = tag(
        "summary",
        icon("right", is_small=True),
        icon("cross" if result.is_error else "json"),
        tag("span", result.name or "result", class_="nm"),
        tag("span", "the result of a call that is not on this branch", class_="gist cut"),
    )
    kind = "call fail" if result.is_error else "call"
    body = _output(result_text(result), is_whole=is_whole)
    return tag("div", tag("details", summary, body, class_=kind), class_="calls")


def _call(step: Step, longest: float, *, is_whole: bool, is_running: bool) -> Html:
    gist = step.gist
    state = _state(step, is_running=is_running)
    seconds = duration(step.seconds) if step.seconds is not None and step.seconds >= 0.05 else ""
    summary = tag(
        "summary",
        icon("right", is_small=True),
        icon("cross" if gist.is_failed else _ICONS[gist.kind]),
        tag("span", gist.name, class_="nm"),
        tag("span", gist.object, class_="gist cut", dir="auto", title=gist.object if len(gist.object) > 60 else None),
        tag("span", state or _outcome(step), class_="res live" if state else "res"),
        _bar(step.seconds or 0, longest),
        tag("span", seconds, class_="du"),
    )
    return tag(
        "details",
        summary,
        tag("div", _body(step, is_whole=is_whole), class_="in", tabindex=0),
        class_="call fail" if gist.is_failed else "call",
        open=gist.is_failed or is_whole or (gist.kind in {"edit", "write"} and 0 < _lines(step) <= 12),
    )


def _lines(step: Step) -> int:
    return sum(len(change.lines) for change in step.gist.changes)


def _state(step: Step, *, is_running: bool) -> str:
    """What to say of a call without a result."""
    if step.gist.is_answered:
        return ""
    return "running" if is_running else "no answer"


def _outcome(step: Step) -> Child:
    gist = step.gist
    if gist.changes and not gist.is_failed:
        added = tag("span", f"+{gist.added}", class_="ok") if gist.added else None
        removed = tag("span", f"−{gist.removed}", class_="bad") if gist.removed else None
        return [added, " " if added and removed else None, removed]
    return gist.outcome


def _bar(seconds: float, longest: float) -> Html:
    """How long a call took beside the others of its message."""
    share = max(_SHORTEST_BAR, round(_FULL_BAR * seconds / max(longest, 1.0)))
    bar = tag("rect", x=0, y=0, width=min(share, _FULL_BAR), height=6, rx=2)
    return tag("svg", bar, class_="wf", viewBox="0 0 100 6", preserveAspectRatio="none", aria_hidden=True)


def _body(step: Step, *, is_whole: bool) -> Html:
    """What a call is when it is opened."""
    gist, result = step.gist, step.result
    said = result_text(result) if result is not None else ""
    match gist.kind:
        case "edit" | "write" if gist.changes:
            shown = join([_diff(change_at, step, is_whole=is_whole) for change_at in range(len(gist.changes))])
            return join(shown, _output(said, is_whole=is_whole) if gist.is_failed else None)
        case "bash":
            command = tag("div", tag("i", "$"), gist.object, class_="cmd") if len(gist.object) > 60 else None
            return join(command, _output(said, is_whole=is_whole) if said else None, _pictures(result))
        case "read" if said and not gist.is_failed:
            return join(_source(said, gist.object.split(":")[0], is_whole=is_whole), _pictures(result))
        case "grep" if said and not gist.is_failed:
            return _matches(said, is_whole=is_whole)
        case _:
            sent = json_tree(step.call.arguments)
            asked = tag("div", Html(sent or f"<pre>{text(step.call.arguments)}</pre>"), class_="jt")
            answer = json_tree(said) if said.lstrip()[:1] in {"{", "["} else None
            got = (
                tag("div", Html(answer), class_="jt") if answer else _output(said, is_whole=is_whole) if said else None
            )
            return join(asked if step.call.arguments not in {"", "{}"} else None, got, _pictures(result))


def _diff(number: int, step: Step, *, is_whole: bool) -> Html:
    change = step.gist.changes[number]
    limit = len(change.lines) if is_whole else _MOST_LINES
    name = tag("div", change.path, class_="fname mono") if len(step.gist.changes) > 1 else None
    return join(
        name, tag("div", Html(diff_table(change, limit)), class_="diff"), more_button(len(change.lines) - limit)
    )


def _output(said: str, *, is_whole: bool) -> Html:
    """What a program printed: the beginning and the end, where the reasons are."""
    lines = said[:MOST_CHARACTERS].split("\n") if not is_whole else said.split("\n")
    hidden = 0 if is_whole else len(lines) - _FIRST_LINES - _LAST_LINES
    if hidden > 3:
        first, last = "\n".join(lines[:_FIRST_LINES]), "\n".join(lines[-_LAST_LINES:])
        folded = tag(
            "button", f"{plural(hidden, 'line')} folded, show all", class_="lnk fold", data_do="whole", type="button"
        )
        return tag("pre", Html(terminal(first)), "\n", folded, "\n", Html(terminal(last)), class_="term")
    cut = len(said) - MOST_CHARACTERS if not is_whole else 0
    return join(tag("pre", Html(terminal("\n".join(lines))), class_="term"), more_button(cut, "character"))


def _source(said: str, name: str, *, is_whole: bool) -> Html:
    lines = said.split("\n") if is_whole else said[:MOST_CHARACTERS].split("\n")[:_MOST_LINES]
    numbered = [_NUMBERED.match(line) for line in lines]
    bare = "\n".join(found[2] if found else line for found, line in zip(numbered, lines, strict=True))
    first = next((int(found[1]) for found in numbered if found), 1)
    numbers = "\n".join(str(first + at) for at in range(len(lines)))
    more = more_button(said.count("\n") + 1 - len(lines))
    return join(
        tag("div", tag("pre", numbers, class_="ln", aria_hidden=True), Html(code(bare, name)), class_="src"), more
    )


def _matches(said: str, *, is_whole: bool) -> Html:
    """Matches by file, where the output has the form path:line:text."""
    lines = said.split("\n") if is_whole else said[:MOST_CHARACTERS].split("\n")[:_MOST_LINES]
    found = [_MATCH.match(line) for line in lines]
    if sum(one is not None for one in found) < len([line for line in lines if line.strip()]) / 2:
        return _output(said, is_whole=is_whole)
    rows: list[Child] = []
    before = ""
    for one in found:
        if one is None:
            continue
        if one[1] != before:
            before = one[1]
            rows.append(tag("div", before, class_="fname mono"))
        rows.append(tag("div", tag("i", one[2]), tag("code", one[3].strip()), class_="hit"))
    return join(tag("div", rows, class_="hits"), more_button(said.count("\n") + 1 - len(lines)))


def more_button(count: int, noun: str = "line") -> Html | None:
    """The button that shows the rest of what is cut; None if nothing is."""
    if count <= 0:
        return None
    return tag(
        "button", f"Show {plural(count, f'more {noun}')}", class_="lnk more-lines", data_do="whole", type="button"
    )


def _pictures(result: ToolResultPart | None) -> Html:
    parts = result.parts if result is not None else ()
    shown = [Html(image(part)) if isinstance(part, ImagePart) else None for part in parts]
    others = [f"[{type(part).__name__}]" for part in parts if not isinstance(part, ImagePart | TextPart)]
    return join(shown, tag("p", " ".join(others)) if others else None)
