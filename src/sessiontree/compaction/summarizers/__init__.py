"""Summarisers: an offline one, and those that call a model (each needs its extra)."""

from sessiontree.compaction.summarizers.extractive import extractive

__all__ = ["extractive"]
