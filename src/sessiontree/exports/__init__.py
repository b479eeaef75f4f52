"""A thread as text: Markdown to read, JSON and JSONL to keep or to bring into another journal. Pure functions."""

from sessiontree.exports.markdown import markdown
from sessiontree.exports.native import TreeFile, native_json, native_jsonl

__all__ = ["TreeFile", "markdown", "native_json", "native_jsonl"]
