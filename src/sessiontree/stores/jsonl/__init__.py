"""The JSONL store: one readable, checksummed file for each tree."""

from sessiontree.stores.jsonl.store import JsonlBackend

__all__ = ["JsonlBackend"]
