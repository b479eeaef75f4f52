"""Observers of a journal: standard logging, and OpenTelemetry."""

from sessiontree.observe.log import log_observer

__all__ = ["log_observer"]
