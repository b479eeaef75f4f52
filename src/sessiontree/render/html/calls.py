"""Tool calls on a page: one line each with its outcome; what was sent and came back is folded below it."""

from __future__ import annotations

from sessiontree.model import ImagePart, OpaquePart, TextPart, ToolResultPart
from sessiontree.render.figures import duration
from sessiontree.render.html.blocks import code, diff, image, preformatted, text
from sessiontree.render.outcomes import result_text, telling_lines
from sessiontree.render.steps import Step

__all__ = ["loose_result", "step_html"]


_MOST_DIFF_LINES = 40
_MOST_NEW_LINES = 12


def step_html(step: Step) -> str:
    """A call and its result."""
    gist = step.gist
    seconds = duration(step.seconds) if step.seconds is not None and step.seconds >= 1 else ""
    outcome = gist.outcome if gist.is_answered else "no result"
    summary = (
        f'<span class="kind">{text(gist.name)}</span><span class="object">{text(gist.object)}</span>'
        f'<span class="outcome">{"✗ " if gist.is_failed else ""}{text(outcome)}</span><time>{seconds}</time>'
    )
    state = "call failed" if gist.is_failed else "call"
    return f'<details class="{state}"><summary>{summary}</summary>{_inside(step)}</details>{_visible(step)}'


def loose_result(result: ToolResultPart) -> str:
    """A result whose call is not on the page."""
    mark, state = ("✗ ", "call failed") if result.is_error else ("", "call")
    name = f'<span class="kind">result</span><span class="object">{mark}{text(result.name)}</span>'
    return f'<details class="{state}"><summary>{name}</summary>{_content(result, "")}</details>'


def _inside(step: Step) -> str:
    """What was sent and what came back."""
    changes = [change for change in step.gist.changes if step.gist.is_failed or len(change.lines) > _MOST_NEW_LINES]
    sent = "".join(diff(change, len(change.lines)) for change in changes)
    sent = sent if step.gist.changes else code(step.call.arguments, "json")
    name = step.gist.object if step.gist.kind == "read" else ""
    return sent + (_content(step.result, name.split(":")[0]) if step.result is not None else "")


def _content(result: ToolResultPart, name: str) -> str:
    said = result_text(result)
    body = (code(said, name) if name else preformatted(said)) if said else ""
    return body + "".join(
        image(part) if isinstance(part, ImagePart) else f"<p>[{text(type(part).__name__)}]</p>"
        for part in result.parts
        if not isinstance(part, TextPart | OpaquePart)
    )


def _visible(step: Step) -> str:
    """What a reader sees without opening the call: the diff of an edit, the reason of a failure."""
    if step.gist.is_failed and step.result is not None:
        lines, more = telling_lines(step.result)
        rest = f"\n… {more} more lines" if more else ""
        return f'<pre class="bad">{text(chr(10).join(lines) + rest)}</pre>'
    limit = {"edit": _MOST_DIFF_LINES, "write": _MOST_NEW_LINES}.get(step.gist.kind, 0)
    return "".join(diff(change, limit) for change in step.gist.changes) if limit else ""
