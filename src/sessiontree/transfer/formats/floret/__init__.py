"""The ``floret`` format (seed 000): a folder per thread with thread.json, entries.jsonl and active_turn.json."""

from sessiontree.transfer.formats.floret.entries import raw_of
from sessiontree.transfer.formats.floret.read import detect, sessions, size
from sessiontree.transfer.formats.floret.write import write

__all__ = ["detect", "raw_of", "sessions", "size", "write"]
