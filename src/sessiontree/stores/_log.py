"""Rare events that an operator should know about, in the standard library's logging."""

from __future__ import annotations

from typing import Literal

__all__ = ["log_event"]


def log_event(part: str, level: Literal["info", "warning", "error"], text: str, **fields: object) -> None:
    """Log an event of a part of the library, with its fields as attributes of the log record; never content."""
    import logging  # noqa: PLC0415  slow to load, and these events are rare

    number = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}[level]
    logging.getLogger(f"sessiontree.{part}").log(number, "%s", text, extra=fields)
