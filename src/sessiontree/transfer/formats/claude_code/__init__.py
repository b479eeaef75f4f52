"""The ``claude-code`` format: the session files of Claude Code, with subagents, sidechains and compactions."""

from sessiontree.transfer.formats.claude_code.read import detect, session_files, sessions, size

__all__ = ["detect", "session_files", "sessions", "size"]
