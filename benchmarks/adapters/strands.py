"""Sessions of Strands beside ``FileSessionManager``, which does not sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from strands.session.file_session_manager import FileSessionManager
from strands.session.session_repository import SessionRepository
from strands.types.content import Role
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from benchmarks.adapters.calls import LAST, TEXT, Call, is_answer
from sessiontree.adapters.strands import SessionTreeRepository


class Conversation:
    """An agent with messages, in a repository."""

    def __init__(self, repository: SessionRepository, messages: int) -> None:
        self.repository = repository
        self.messages = 0
        repository.create_session(Session("chat", SessionType.AGENT))
        repository.create_agent("chat", SessionAgent("cook", {}, {}))
        for _ in range(messages):
            self.append()

    def append(self) -> None:
        role: Role = "assistant" if is_answer(self.messages) else "user"
        message = SessionMessage.from_message({"role": role, "content": [{"text": TEXT}]}, self.messages)
        self.repository.create_message("chat", "cook", message)
        self.messages += 1

    def read_all(self) -> None:
        assert len(self.repository.list_messages("chat", "cook")) == self.messages

    def read_last(self) -> None:
        assert len(self.repository.list_messages("chat", "cook", offset=self.messages - LAST)) == LAST


@contextmanager
def _beside_files(folder: Path, messages: int) -> Iterator[list[Call]]:
    with closing(SessionTreeRepository(f"sqlite:///{folder}/ours.db")) as ours:
        theirs = FileSessionManager("another", storage_dir=str(folder / "theirs"))
        sides = (Conversation(ours, messages), Conversation(theirs, messages))
        yield [
            Call.on(sides, "append", Conversation.append),
            Call.on(sides, "read all", Conversation.read_all),
            Call.on(sides, f"last {LAST}", Conversation.read_last),
        ]


KINDS = {"files": _beside_files}
