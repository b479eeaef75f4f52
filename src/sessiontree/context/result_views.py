"""Views of tool results that are too large: the beginning, a notice, and the end.

>>> from sessiontree.model import ArtifactRef
>>> from sessiontree.model.builders import tool_result
>>> whole = tool_result("c1", "0123456789" * 100).message
>>> cut = ResultCut(entry_id="e1", call_id="c1", head=4, tail=2, full_output=ArtifactRef(sha256="5c7e", size=1000))
>>> print(result_text(show_cuts(whole, [cut]), "c1"))
0123
[994 of 1000 characters are left out here. The whole text is the artifact 5c7e.]
89
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sessiontree.context.records import joined_text
from sessiontree.model import Message, Part, ResultCut, ResultView, TextPart, ToolResultPart

__all__ = ["result_text", "show_cuts", "view_text"]


def result_text(message: Message, call_id: str) -> str:
    """Return the text of a result, whole; empty if the message has no result of that call."""
    return next((joined_text(result.parts) for result in message.tool_results if result.call_id == call_id), "")


def show_cuts(message: Message, cuts: Sequence[ResultCut]) -> Message:
    """Return a message with views in place of the results that were cut."""
    wanted = {cut.call_id: cut for cut in cuts}
    return replace(message, parts=tuple(_shown(part, wanted) for part in message.parts))


def view_text(text: str, cut: ResultCut) -> str:
    """Return what the model sees of a text."""
    missing = len(text) - cut.head - cut.tail
    notice = (
        f"[{missing} of {len(text)} characters are left out here. "
        f"The whole text is the artifact {cut.full_output.sha256}.]"
    )
    return f"{text[: cut.head]}\n{notice}\n{text[len(text) - cut.tail :]}"


def _shown(part: Part, cuts: dict[str, ResultCut]) -> Part:
    if not isinstance(part, ToolResultPart) or part.call_id not in cuts:
        return part
    cut = cuts[part.call_id]
    text = joined_text(part.parts)
    shown = view_text(text, cut)
    others = tuple(inner for inner in part.parts if not isinstance(inner, TextPart))
    view = ResultView(
        is_truncated=True,
        original_bytes=cut.full_output.size,
        visible_bytes=len(shown.encode()),
        original_lines=text.count("\n") + 1,
        visible_lines=shown.count("\n") + 1,
        strategy="head_tail",
        content_sha256=cut.full_output.sha256,
        full_output=cut.full_output,
    )
    return replace(part, parts=(TextPart(text=shown), *others), view=view)
