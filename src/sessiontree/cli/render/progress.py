"""A progress bar that shows up only when the work takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bar"]

_PATIENCE_SECONDS = 1.0


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    lazy = _LazyBar(what)
    try:
        yield lazy.advance
    finally:
        lazy.stop()


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
