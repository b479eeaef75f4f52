"""The ``codex`` format: the rollouts of OpenAI's Codex CLI, plain or compressed, and its first formats."""

from sessiontree.transfer.formats.codex.read import detect, session_files, sessions, size

__all__ = ["detect", "session_files", "sessions", "size"]
