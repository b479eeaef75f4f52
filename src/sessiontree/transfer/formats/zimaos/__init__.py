"""The ``zimaos`` format: the SQLite database of ZimaOS-Blue (seed 003), one row per session."""

from sessiontree.transfer.formats.zimaos.read import detect, sessions, size
from sessiontree.transfer.formats.zimaos.records import SCHEMA, STATES
from sessiontree.transfer.formats.zimaos.write import write

__all__ = ["SCHEMA", "STATES", "detect", "sessions", "size", "write"]
