"""floret's ``sessiontree`` (seed 000): a folder a thread with thread.json, entries.jsonl and active_turn.json."""

from sessiontree.formats.floret.read import detect, sessions, size
from sessiontree.formats.floret.write import write

__all__ = ["detect", "sessions", "size", "write"]
