"""A progress bar, or a clock where nobody knows how much there is; both only when the work lasts longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bar", "clock"]

_PATIENCE_SECONDS = 1.0


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    lazy = _LazyBar(what)
    try:
        yield lazy.advance
    finally:
        lazy.stop()


@contextmanager
def clock(what: str) -> Iterator[None]:
    """How long the work has been going on, for work that cannot say how much is left."""
    lazy = _LazyClock(what)
    try:
        yield
    finally:
        lazy.stop()


class _LazyClock:
    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._is_over = False
        self._stop: Callable[[], None] = lambda: None
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            self._stop()

    def _begin(self) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with self._lock:
            if self._is_over:
                return
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            progress.add_task(self._what, total=None)
            progress.start()
            self._stop = progress.stop


class _LazyBar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._show: Callable[[int, int], None] | None = None
        self._stop: Callable[[], None] = lambda: None

    def advance(self, done: int, total: int) -> None:
        if self._show is None and time.monotonic() - self._started > _PATIENCE_SECONDS:
            self._begin()
        if self._show is not None:
            self._show(done, total)

    def stop(self) -> None:
        self._stop()

    def _begin(self) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        task = progress.add_task(self._what, total=None, rate="")
        progress.start()
        self._stop = progress.stop

        def show(done: int, total: int) -> None:
            seconds = max(time.monotonic() - self._started, 0.001)
            progress.update(task, completed=done, total=total, rate=f"{done / seconds:,.0f}/s")

        self._show = show
