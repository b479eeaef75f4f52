"""The ``opencode`` format: OpenCode's database, its older tree of JSON files, and the file of ``opencode export``."""

from sessiontree.transfer.formats.opencode.read import detect, sessions, size

__all__ = ["detect", "sessions", "size"]
