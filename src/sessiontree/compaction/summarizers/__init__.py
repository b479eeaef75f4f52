"""Summarisers that are shipped: an offline one, and two that ask a model (each behind its extra)."""

from sessiontree.compaction.summarizers.extractive import extractive

__all__ = ["extractive"]
