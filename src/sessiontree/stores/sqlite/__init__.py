"""SQLite, the embedded default."""

from sessiontree.stores.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend"]
