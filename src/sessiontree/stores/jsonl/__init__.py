"""The JSONL store: one readable, checksummed file a tree."""

from sessiontree.stores.jsonl.store import JsonlBackend

__all__ = ["JsonlBackend"]
