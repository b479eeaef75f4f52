"""The context: what the model sees, as a pure projection of a path.

>>> from sessiontree.model.builders import user
>>> from sessiontree.model import Entry
>>> path = [Entry(id="e1", thread_id="t", parent=None, created_ns=0, payload=user("hello"))]
>>> context = build_context(path)
>>> context.messages[0].text, context.segments[0].entry_id, context.tokens
('hello', 'e1', 9)
"""

from sessiontree.context.build import build_context, said_tokens, segments_of
from sessiontree.context.control import CONTROL_KIND
from sessiontree.context.pairing import LATE_RESULT_KIND, MISSING_RESULT, MISSING_RESULT_KIND, PairedMessage, pair
from sessiontree.context.projection import Window, as_finished, project, window_of
from sessiontree.context.records import Context, Loss, Projected, Purpose, Segment
from sessiontree.context.summary_message import (
    FLORET_SCHEMA,
    SUMMARY_KIND,
    SUMMARY_SCHEMA,
    extract_summary,
    summary_text,
)

__all__ = [
    "CONTROL_KIND",
    "FLORET_SCHEMA",
    "LATE_RESULT_KIND",
    "MISSING_RESULT",
    "MISSING_RESULT_KIND",
    "SUMMARY_KIND",
    "SUMMARY_SCHEMA",
    "Context",
    "Loss",
    "PairedMessage",
    "Projected",
    "Purpose",
    "Segment",
    "Window",
    "as_finished",
    "build_context",
    "extract_summary",
    "pair",
    "project",
    "said_tokens",
    "segments_of",
    "summary_text",
    "window_of",
]
