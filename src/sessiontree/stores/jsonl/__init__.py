"""The JSONL store: one readable, checksummed file a tree."""

from sessiontree.stores.jsonl.backend import JsonlBackend

__all__ = ["JsonlBackend"]
