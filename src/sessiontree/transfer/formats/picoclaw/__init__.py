"""The ``picoclaw`` format (seed 001): ``<key>.jsonl`` with ``<key>.meta.json``, and the older ``<key>.json``."""

from sessiontree.transfer.formats.picoclaw.read import detect, sessions, size
from sessiontree.transfer.formats.picoclaw.write import write

__all__ = ["detect", "sessions", "size", "write"]
