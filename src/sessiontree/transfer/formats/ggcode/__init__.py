"""ggcode's sessions (seed 002): ``<id>.jsonl`` of records, and ``index.json`` with the newest titles."""

from sessiontree.transfer.formats.ggcode.read import detect, sessions, size
from sessiontree.transfer.formats.ggcode.write import write

__all__ = ["detect", "sessions", "size", "write"]
