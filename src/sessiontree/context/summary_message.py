"""The text of the summary message, which stands in for the head of a conversation.

>>> text = summary_text("We agreed on SQLite.", kept_users=[], has_tail=False)
>>> extract_summary(text)
'We agreed on SQLite.'
>>> extract_summary("any other text")
'any other text'
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.model._base import Record
from sessiontree.model.tokens import BLANKS

__all__ = ["FLORET_SCHEMA", "SUMMARY_KIND", "SUMMARY_SCHEMA", "extract_summary", "is_florets", "summary_text"]


SUMMARY_KIND = "compaction_summary"
"""The kind of the summary message."""

SUMMARY_SCHEMA = "sessiontree.summary.v1"
"""The schema of the summaries that compactions write here."""

FLORET_SCHEMA = "floret.compaction.summary.v1"
"""The schema of floret's summaries, which keep floret's words."""


class _Words(Record, frozen=True, kw_only=True):
    """What stands around a summary."""

    schema: str
    with_tail: str
    without_tail: str
    kept_users: str

    @property
    def opening(self) -> str:
        return f'<compaction_summary schema="{self.schema}">'


_OURS = _Words(
    schema=SUMMARY_SCHEMA,
    with_tail=(
        "The earlier part of this conversation was replaced by the summary below. It is background: do not reply to it. "
        "The messages that follow are newer; where they differ from the summary, they are right."
    ),
    without_tail="This conversation was replaced by the summary below. Continue from it.",
    kept_users=(
        "<user_messages>\n"
        "These are the latest messages of the user from the earlier part, word for word. What they ask for still holds, "
        "unless a newer message says otherwise.\n"
        "\n{}\n</user_messages>"
    ),
)
_FLORETS = _Words(
    schema=FLORET_SCHEMA,
    with_tail=(
        "The conversation before the retained tail was compacted into this checkpoint.\n"
        "Use it as historical context only. Do not answer this checkpoint directly.\n"
        "The retained tail follows after this message and is the most recent source of truth."
    ),
    without_tail=(
        "The compacted conversation is represented by this checkpoint.\n"
        "Use it as the current conversation context.\n"
        "No retained tail follows this checkpoint."
    ),
    kept_users=(
        "<preserved_user_inputs>\n"
        "These recent user messages were preserved from before the retained tail because they may contain intent, "
        "constraints, or preferences.\n"
        "Treat them as historical requirements unless the retained tail or the latest user message supersedes them.\n"
        "\n{}\n</preserved_user_inputs>"
    ),
)
_CLOSE = "</compaction_summary>"
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def summary_text(
    summary: str, kept_users: Sequence[tuple[str, str]], has_tail: bool, *, schema: str = SUMMARY_SCHEMA
) -> str:
    """Return the text of the summary message; ``kept_users`` are pairs of entry id and quoted user message."""
    words = _FLORETS if is_florets(schema) else _OURS
    blocks = [words.with_tail if has_tail else words.without_tail]
    if kept_users:
        blocks.append(words.kept_users.format(_listed(kept_users)))
    blocks.append(f"{words.opening}\n{summary.strip(BLANKS)}\n{_CLOSE}")
    return "\n\n".join(blocks)


def is_florets(schema: str) -> bool:
    """Return whether a summary was written by floret, and is shown in its words."""
    return schema.startswith("floret")


def extract_summary(text: str) -> str:
    """Return the summary inside a summary message; any other text is returned unchanged."""
    for words in (_OURS, _FLORETS):
        start, end = text.find(words.opening), text.rfind(_CLOSE)
        if text.startswith((words.with_tail, words.without_tail)) and 0 <= start <= end - len(words.opening):
            return text[start + len(words.opening) : end].strip(BLANKS)
    return text


def _listed(kept_users: Sequence[tuple[str, str]]) -> str:
    items = [{"entry_id": entry_id, "content": content} for entry_id, content in kept_users]
    # Markup characters are escaped, so that a user's text cannot close the block that it is quoted in.
    import json  # noqa: PLC0415  slow to import, and rarely needed

    return json.dumps(items, ensure_ascii=False, indent=2).translate(_ESCAPES)
