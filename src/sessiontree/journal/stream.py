# Generated from stream_async.py by tools/async_to_sync.py; do not edit.
"""Streamed answers: text for the user as it arrives, one entry at the end, and a partial one if the end never comes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sessiontree.context.answers import Delta, joined, partial_answer
from sessiontree.context.dialects import DIALECTS, Answer, Dialect
from sessiontree.errors import AnswerInterruptedError, InvalidInputError, SessionTreeError
from sessiontree.journal._background import Background
from sessiontree.journal.operations.answers import delta_event
from sessiontree.model import Entry, Message

if TYPE_CHECKING:
    from sessiontree.journal.turn import Turn

__all__ = ["AnswerStream"]


class AnswerStream:
    """An answer that is arriving, from ``turn.stream(dialect, events)``; iterate over it for the text.

    The finished message is stored once. If the events fail, if the caller stops, or if the turn ends before, what was
    shown is stored as a partial answer. Without ``events``, pass each one to ``feed`` and call ``finish``, or use the
    stream as a context manager, which does.
    """

    def __init__(
        self,
        turn: Turn,
        dialect: str | Dialect,
        events: Iterable[Any] | None,
        durable_every_seconds: float | None,
    ) -> None:
        if durable_every_seconds is not None and not durable_every_seconds >= 0:
            raise InvalidInputError(f"durable_every_seconds must be 0 or more, not {durable_every_seconds!r}")
        self._turn = turn
        self._dialect = DIALECTS[dialect] if isinstance(dialect, str) else dialect
        self._events = events
        self._builder = self._dialect.answer_builder()
        self._shown: list[Delta] = []
        self._is_closed = False
        self._stored: Entry[Answer] | None = None
        self._saves = _Saves(self, durable_every_seconds)
        self.id = turn.new_id()

    @property
    def text(self) -> str:
        """The text that has arrived."""
        return joined(self._shown).text

    @property
    def reasoning(self) -> str:
        """The readable reasoning that has arrived."""
        return joined(self._shown).reasoning

    @property
    def entry(self) -> Entry[Answer]:
        """The entry of the answer, once it is stored."""
        if self._stored is None:
            raise InvalidInputError("the answer is not stored yet: iterate to its end first")
        return self._stored

    @property
    def message(self) -> Message:
        """The message of the answer, once it is stored."""
        return self.entry.message

    def feed(self, event: Any) -> str:
        """Add an event of the provider's stream, and return the text that it adds, which may be empty."""
        if self._is_closed:
            raise InvalidInputError("the answer has ended; begin another one for the next request")
        delta = self._builder.feed(event)
        if self._builder.error:
            self.close()
            raise AnswerInterruptedError(self._turn.lease.thread_id, self.id, self._builder.error)
        if delta:
            self._shown.append(delta)
            self._saves.add(delta)
        return delta.text

    def finish(self) -> Entry[Answer]:
        """Store the finished answer. Raises AnswerInterruptedError if its end is missing; what there is, is stored."""
        self.close()
        if self._builder.is_finished and self._stored is not None:
            return self._stored
        raise AnswerInterruptedError(self._turn.lease.thread_id, self.id, "the stream stopped before the answer ended")

    def close(self) -> None:
        """Store the answer: the whole one if it has arrived, or else what was shown. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._saves.close()
        if self._builder.is_finished:
            self._stored = self._turn.append(self._dialect.from_response(self._builder.response()), id=self.id)
        elif shown := joined(self._shown):
            partial = partial_answer(shown, dialect=self._builder.dialect, model=self._builder.model)
            self._stored = self._turn.append(partial, id=self.id)

    def __iter__(self) -> Iterator[str]:
        if self._events is None:
            raise InvalidInputError("the stream has no events: give them to turn.stream(), or use feed() and finish()")
        try:
            for event in self._events:
                if text := self.feed(event):
                    yield text
        except BaseException as error:
            self._interrupted(error)
            raise
        self.finish()

    def _interrupted(self, error: BaseException) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.close()

    def save(self, deltas: list[Delta]) -> None:
        """Save what the answer has grown by, in an event."""
        builder = self._builder
        self._turn.append(delta_event(self.id, joined(deltas), builder.dialect, builder.model))


class _Saves:
    """Saves an answer while it grows: before each text is shown (0 seconds), or in the background."""

    def __init__(self, answer: AnswerStream, every_seconds: float | None) -> None:
        self._answer = answer
        self._every_seconds = every_seconds
        self._background: Background | None = None
        self._pending: list[Delta] = []
        self._lock = threading.Lock()

    def add(self, delta: Delta) -> None:
        if self._every_seconds is None:
            return
        if not self._every_seconds:
            self._answer.save([delta])
            return
        with self._lock:
            self._pending.append(delta)
        if self._background is None:
            self._background = Background()
            self._background.every(self._every_seconds, self._start, name=f"answer {self._answer.id}")

    def close(self) -> None:
        if self._background is not None:
            self._background.close()

    def _start(self) -> bool:
        assert self._background is not None
        return self._background.submit("save", self._save)

    def _save(self) -> None:
        with self._lock:
            deltas, self._pending = self._pending, []
        if not deltas:
            return
        try:
            self._answer.save(deltas)
        except SessionTreeError:
            # Tried again with the next text; a lease that was lost is reported when the answer is stored.
            with self._lock:
                self._pending[:0] = deltas
