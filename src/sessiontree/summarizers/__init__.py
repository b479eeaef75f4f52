"""Summarisers that are shipped: an offline one, and two that ask a model (each behind its extra)."""

from sessiontree.summarizers.extractive import extractive

__all__ = ["extractive"]
