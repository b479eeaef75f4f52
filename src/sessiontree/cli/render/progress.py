"""A progress bar, or a clock while nobody knows how much there is; only when the work lasts longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sessiontree.progress import Progress as Advance

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["bar"]

_PATIENCE_SECONDS = 1.0
_NARROW = 80


@contextmanager
def bar(what: str) -> Iterator[Advance]:
    lazy = _LazyBar(what)
    try:
        yield lazy.advance
    finally:
        lazy.stop()


class _LazyBar:
    """A timer brings it up, so that work which has told nothing yet is seen to be going on, too."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = False
        self._told: tuple[int, int] | None = None
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, done: int, total: int) -> None:
        self._told = done, total
        if self._shown is not None:
            self._show(self._shown)

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()

    def _begin(self) -> None:
        from rich.console import Console  # noqa: PLC0415  only what lasts long needs it
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        with self._lock:
            if self._is_over:
                return
            self._task = progress.add_task(self._what, total=None, rate="")
            progress.start()
            self._shown = progress
        self._show(progress)

    def _show(self, progress: Progress) -> None:
        if self._told is None or self._task is None:
            return
        if not progress.tasks[0].total:
            progress.columns = _columns_of_a_bar(progress.console.width)
        done, total = self._told
        seconds = max(time.monotonic() - self._started, 0.001)
        progress.update(self._task, completed=done, total=total, rate=f"{done / seconds:,.0f}/s")


def _columns_of_a_bar(width: int) -> tuple[str | ProgressColumn, ...]:
    """On a narrow screen the figures come first, and the bar itself is left out."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return (
        TextColumn("{task.description}"),
        *((BarColumn(),) if width >= _NARROW else ()),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
