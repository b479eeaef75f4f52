"""The checkpoint message: what a compaction puts in the place of the head of a conversation.

>>> text = checkpoint_text("We agreed on SQLite.", kept_users=[], has_tail=False)
>>> extract_checkpoint_summary(text)
'We agreed on SQLite.'
>>> extract_checkpoint_summary("any other text")
'any other text'
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.tokens import BLANKS

__all__ = ["CHECKPOINT_KIND", "SUMMARY_SCHEMA", "checkpoint_text", "extract_checkpoint_summary"]

CHECKPOINT_KIND = "compaction_summary"
SUMMARY_SCHEMA = "floret.compaction.summary.v1"

_WITH_TAIL = (
    "The conversation before the retained tail was compacted into this checkpoint.\n"
    "Use it as historical context only. Do not answer this checkpoint directly.\n"
    "The retained tail follows after this message and is the most recent source of truth."
)
_WITHOUT_TAIL = (
    "The compacted conversation is represented by this checkpoint.\n"
    "Use it as the current conversation context.\n"
    "No retained tail follows this checkpoint."
)
_KEPT_USERS = (
    "<preserved_user_inputs>\n"
    "These recent user messages were preserved from before the retained tail because they may contain intent, "
    "constraints, or preferences.\n"
    "Treat them as historical requirements unless the retained tail or the latest user message supersedes them.\n"
    "\n{}\n</preserved_user_inputs>"
)
_OPEN = f'<compaction_summary schema="{SUMMARY_SCHEMA}">'
_CLOSE = "</compaction_summary>"
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def checkpoint_text(summary: str, kept_users: Sequence[tuple[str, str]], has_tail: bool) -> str:
    """The text of a checkpoint; ``kept_users`` are pairs of entry id and what the user wrote."""
    blocks = [_WITH_TAIL if has_tail else _WITHOUT_TAIL]
    if kept_users:
        blocks.append(_KEPT_USERS.format(_listed(kept_users)))
    blocks.append(f"{_OPEN}\n{summary.strip(BLANKS)}\n{_CLOSE}")
    return "\n\n".join(blocks)


def extract_checkpoint_summary(text: str) -> str:
    """The summary inside a checkpoint; any other text comes back unchanged."""
    if not text.startswith((_WITH_TAIL, _WITHOUT_TAIL)):
        return text
    start = text.find(_OPEN)
    end = text.rfind(_CLOSE)
    if start < 0 or end < start + len(_OPEN):
        return text
    return text[start + len(_OPEN) : end].strip(BLANKS)


def _listed(kept_users: Sequence[tuple[str, str]]) -> str:
    items = [{"entry_id": entry_id, "content": content} for entry_id, content in kept_users]
    # Markup characters are escaped so that a user's text cannot close the block that it is quoted in.
    import json  # noqa: PLC0415  slow to import, and most programs never come here

    return json.dumps(items, ensure_ascii=False, indent=2).translate(_ESCAPES)
