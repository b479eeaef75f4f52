"""A progress bar that appears only when the work takes longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sessiontree.render.figures import count

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from sessiontree.model import Progress as Advance

__all__ = ["progress_bar"]


_DELAY_SECONDS = 1.0
_NARROW = 80


@contextmanager
def progress_bar(what: str, figure: Callable[[int], str] = count) -> Iterator[Advance]:
    """Show a bar on stderr; the body calls the yielded function with what is done and the total.

    ``figure`` says how the numbers are written, such as ``size`` for bytes.
    """
    bar = _DelayedBar(what, figure)
    try:
        yield bar.advance
    finally:
        bar.stop()


class _DelayedBar:
    """Starts by a timer, so that work that has not reported anything yet is visible as well: as a spinner with a clock."""

    def __init__(self, what: str, figure: Callable[[int], str]) -> None:
        self._what = what
        self._figure = figure
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._is_stopped = False
        self._position: tuple[int, int] | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._timer = threading.Timer(_DELAY_SECONDS, self._start)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, done: int, total: int) -> None:
        self._position = done, total
        if self._progress is not None:
            self._update(self._progress)

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_stopped = True
            if self._progress is not None:
                self._progress.stop()

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415  Rich is slow to load
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        with self._lock:
            if self._is_stopped:
                return
            self._task = progress.add_task(self._what, total=None, figures="")
            progress.start()
            self._progress = progress
        self._update(progress)

    def _update(self, progress: Progress) -> None:
        if self._position is None or self._task is None:
            return
        if not progress.tasks[0].total:
            progress.columns = _bar_columns(progress.console.width)
        done, total = self._position
        seconds = max(time.monotonic() - self._started, 0.001)
        figure = self._figure
        figures = f"{figure(done)} of {figure(total)}, {figure(round(done / seconds))}/s"
        progress.update(self._task, completed=done, total=total, figures=figures)


def _bar_columns(width: int) -> tuple[str | ProgressColumn, ...]:
    """The columns once the total is known; a narrow screen shows the figures without the bar."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return (
        TextColumn("{task.description}"),
        *((BarColumn(),) if width >= _NARROW else ()),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
