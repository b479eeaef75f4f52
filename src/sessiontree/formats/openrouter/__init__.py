"""openrouter-agent-sdk's sessions (seed 004): one JSON file with all of them."""

from sessiontree.formats.openrouter.read import detect, sessions, size
from sessiontree.formats.openrouter.write import write

__all__ = ["detect", "sessions", "size", "write"]
