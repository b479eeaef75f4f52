"""Random histories, made through the public API alone: what programs append, cut, rewind, fork and compact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sessiontree as st
from validation.anthropic_answers import anthropic_answer
from validation.chat_answers import chat_answer
from validation.dumps import dumped
from validation.gemini_answers import gemini_answer
from validation.material import PAYLOAD, Draw
from validation.parts import any_part, artifacts, result_parts, spoken_part
from validation.responses_answers import responses_answer
from validation.streams import events_of
from validation.written_requests import written_request

__all__ = ["History", "contexts"]

ANSWERS: dict[str, Callable[[Draw], Any]] = {
    "openai-chat": chat_answer,
    "openai-responses": responses_answer,
    "anthropic": anthropic_answer,
    "gemini": gemini_answer,
}
_SMALL = st.CompactionPolicy(window_tokens=4_000, keep_recent_tokens=200, keep_user_tokens=200, reserve_tokens=500)


@dataclass
class History:
    """A journal that grows at random; ``steps`` tells what was done, for a reader of a finding."""

    journal: st.Journal
    draw: Draw
    thread: str
    provider: str
    open_calls: list[st.ToolCallPart] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def step(self) -> None:
        """Do one random thing."""
        actions, weights = zip(*_ACTIONS, strict=True)
        action = self.draw.random.choices(actions, weights)[0]
        self.steps.append(action.__name__.strip("_"))
        action(self)

    def append(self, content: Any) -> None:
        """Append a payload, now and then inside a turn that may be cut."""
        if not self.draw.chance(0.2):
            self.journal.append(self.thread, content)
            return
        with suppress(_CutError), self.journal.turn(self.thread, owner="worker") as turn:
            turn.append(content)
            if self.draw.chance(0.3):
                self.steps.append("cut the turn")
                raise _CutError

    def entry(self) -> str | None:
        """Return the id of a random entry on the path."""
        path = self.journal.path(self.thread)
        return self.draw.pick(path).id if path else None


class _CutError(Exception):
    pass


def contexts(seed: int) -> Iterator[tuple[History, st.Context]]:
    """Yield the contexts of a random history: after some steps, and of every thread at the end."""
    draw = Draw(seed)
    with st.open("memory:") as journal:
        draw.artifacts = artifacts(journal)
        thread = journal.create_thread().id
        history = History(journal, draw, thread, draw.pick(sorted(ANSWERS)))
        for _ in draw.many(1, draw.pick((3, 8, 20))):
            history.step()
            if draw.chance(0.25):
                yield history, journal.context(history.thread)
        for kept in journal.iter_threads():
            history.thread = kept.id
            context = journal.context(kept.id)
            yield history, context
            if context.messages and draw.chance(0.3):
                yield history, _read_again(history, context)


def _read_again(history: History, context: st.Context) -> st.Context:
    """Return the context of a thread that was made from a request of this one, as a proxy does."""
    dialect = history.draw.pick(sorted(st.DIALECTS))
    system, messages = st.DIALECTS[dialect].from_request(st.DIALECTS[dialect].to_request(context))
    history.steps.append(f"read the {dialect} request again")
    thread = history.journal.create_thread().id
    history.journal.append_many(thread, [*([st.system(system)] if system else []), *messages])
    return history.journal.context(thread)


def _system(history: History) -> None:
    history.append(st.system(history.draw.any_text()))


def _user(history: History) -> None:
    history.append(st.user(history.draw.any_text()))


def _user_parts(history: History) -> None:
    parts = tuple(any_part(history.draw) for _ in history.draw.many(0, 4))
    name = history.draw.pick(("", "", "", "John Doe", "anna", "<b>", "n" * 80))
    history.append(st.UserMessage(message=st.Message(role="user", parts=parts, name=name)))


def _answer(history: History) -> None:
    if history.draw.chance(0.25):
        history.provider = history.draw.pick(sorted(ANSWERS))
    answer = dumped(ANSWERS[history.provider](history.draw), history.draw)
    history.steps.append(history.provider)
    payload = st.DIALECTS[history.provider].from_response(answer)
    history.append(payload)
    history.open_calls = list(payload.message.tool_calls)


def _streamed_answer(history: History) -> None:
    """Append an answer from the events of its stream, which may stop anywhere."""
    draw = history.draw
    dialect = draw.pick(sorted(ANSWERS))
    events = events_of(dialect, ANSWERS[dialect](draw), draw)
    end = draw.random.randint(0, len(events)) if draw.chance(0.4) else len(events)
    history.steps.append(f"{dialect}, {end} of {len(events)} events")
    with suppress(st.AnswerInterruptedError), history.journal.turn(history.thread, owner="worker") as turn:
        stream = turn.stream(dialect, events[:end])
        for _ in stream:
            pass
        history.open_calls = list(stream.message.tool_calls)


def _answer_and_results(history: History) -> None:
    _answer(history)
    if history.open_calls:
        _results(history)


def _written_assistant(history: History) -> None:
    """Append an assistant message that a program wrote by hand, with ids, names and arguments of its own."""
    draw = history.draw
    calls = [st.call(draw.call_id(), draw.any_tool(), draw.arguments()) for _ in draw.many(0, 2)]
    thought = st.ReasoningPart(
        provider=draw.pick(("", "pi", "anthropic", "gemini", "openai-responses", "openai-chat")),
        text=draw.any_text(),
        signature=draw.pick(("", "bm90IG1pbnRlZA==")),
        encrypted=draw.pick(("", "", "bm90IG1pbnRlZA==")),
        id=draw.pick(("", "rs_hand", "not a valid id")),
    )
    parts: list[st.Part] = [thought] if draw.chance(0.4) else []
    parts += [spoken_part(draw) for _ in draw.many(0, 2)]
    history.append(st.assistant(parts, calls=calls, provider=draw.pick(("", *ANSWERS)), model="m"))
    history.open_calls = calls


def _results(history: History) -> None:
    """Answer open calls: all or some of them, in any order, some with the id of another call."""
    draw = history.draw
    calls = [call for call in history.open_calls if not draw.chance(0.15)]
    if draw.chance(0.2):
        draw.random.shuffle(calls)
    for call in calls:
        name = draw.pick((call.name, call.name, ""))
        content = draw.any_text() if draw.chance(0.6) else result_parts(draw)
        view = st.ResultView(is_truncated=True, full_output=draw.pick(draw.artifacts)) if draw.chance(0.1) else None
        history.append(st.tool_result(call.id, content, name=name, is_error=draw.chance(0.25), view=view))
    if draw.chance(0.05):
        history.append(st.tool_result(draw.call_id(), "of nobody"))
    if draw.chance(0.8):
        history.open_calls = []


def _joined_results(history: History) -> None:
    """Append several results in one message, as Anthropic and Gemini send them."""
    parts = tuple(
        st.ToolResultPart(call_id=call.id, name=call.name, parts=result_parts(history.draw), is_error=False)
        for call in history.open_calls
    )
    history.append(st.ToolResultMessage(message=st.Message(role="tool", parts=parts)))
    history.open_calls = []


def _imported_request(history: History) -> None:
    """Append the messages of a request that a program wrote for one provider."""
    dialect, body = written_request(history.draw)
    system, messages = st.DIALECTS[dialect].from_request(body)
    history.steps.append(f"request of {dialect}")
    if system:
        history.append(st.system(system))
    for message in messages:
        history.append(message)


def _rewind(history: History) -> None:
    if entry := history.entry():
        history.journal.rewind(history.thread, entry)


def _undo(history: History) -> None:
    try:
        history.draw.pick((history.journal.undo, history.journal.redo))(history.thread)
    except (st.NothingToUndoError, st.NothingToRedoError):
        history.steps.append("nothing to move")


def _fork(history: History) -> None:
    if entry := history.entry():
        is_before = history.draw.chance(0.5)
        fork = history.journal.fork
        history.thread = (fork(history.thread, before=entry) if is_before else fork(history.thread, at=entry)).id


def _compact(history: History) -> None:
    filler = [st.user("Please go on. " * 150), st.assistant("We decided to keep it. " * 150)]
    history.journal.append_many(history.thread, filler)
    history.journal.compact(history.thread, policy=_SMALL, force=True)
    history.open_calls = []


def _uncompact(history: History) -> None:
    try:
        history.journal.uncompact(history.thread)
    except st.NothingToUncompactError:
        history.steps.append("nothing to take back")


def _replace_context(history: History) -> None:
    if count := len(history.journal.context(history.thread).messages):
        history.journal.replace_context(history.thread, "What was said.", history.draw.random.randint(0, count - 1))


def _leave_branch(history: History) -> None:
    if entry := history.entry():
        history.journal.leave_branch(history.thread, entry, lambda request: "A branch was tried.")


def _reset(history: History) -> None:
    history.journal.reset(history.thread)


def _aside(history: History) -> None:
    """Append an entry that no model sees."""
    draw = history.draw
    history.append(
        draw.pick(
            (
                st.ModelChange(provider=draw.pick(sorted(ANSWERS)), model="m"),
                st.ActiveToolsChange(tools=("read_file",)),
                st.UsageReport(model="m", usage=st.Usage(input_tokens=5)),
                st.RunFailure(error="failed"),
                st.Custom(name="note", data={"big": PAYLOAD}),
                st.Event(name="tunnel", data={"x": 1}),
            )
        )
    )


_ACTIONS: tuple[tuple[Callable[[History], None], float], ...] = (
    (_system, 2),
    (_user, 8),
    (_user_parts, 5),
    (_answer, 8),
    (_answer_and_results, 14),
    (_streamed_answer, 5),
    (_written_assistant, 4),
    (_results, 5),
    (_joined_results, 2),
    (_imported_request, 3),
    (_rewind, 3),
    (_undo, 2),
    (_fork, 2),
    (_compact, 1.5),
    (_uncompact, 1),
    (_replace_context, 1),
    (_leave_branch, 1),
    (_reset, 0.3),
    (_aside, 2),
)
