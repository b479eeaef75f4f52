"""The ``opencode`` format: OpenCode's database, its older tree of JSON files, and the file of ``opencode export``."""

from sessiontree.transfer.formats.opencode.read import detect, session_files, sessions, size

__all__ = ["detect", "session_files", "sessions", "size"]
