"""SQLite, the embedded default."""

from sessiontree.stores.sqlite.store import SqliteBackend

__all__ = ["SqliteBackend"]
