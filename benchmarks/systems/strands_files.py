"""strands-agents: FileSessionManager, one JSON file a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from benchmarks.system import System

AGENT = "agent"


class StrandsFiles(System):
    name = "strands FileSessionManager"
    packages = ("strands-agents",)
    most_messages = 10_000

    def open(self) -> None:
        self.store = FileSessionManager("first", storage_dir=str(self.folder))
        self.counts: dict[str, int] = {}

    def _count(self, chat: str) -> int:
        if chat not in self.counts:
            if self.store.read_session(chat) is None:
                self.store.create_session(Session(session_id=chat, session_type=SessionType.AGENT))
                agent = SessionAgent(agent_id=AGENT, state={}, conversation_manager_state={})
                self.store.create_agent(chat, agent)
            self.counts[chat] = len(self.store.list_messages(chat, AGENT))
        return self.counts[chat]

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        for message in messages:
            self.append(chat, message)

    def append(self, chat: str, message: str) -> None:
        number = self._count(chat)
        self.counts[chat] = number + 1
        content: Any = {"role": "user", "content": [{"text": message}]}
        self.store.create_message(chat, AGENT, SessionMessage.from_message(content, number))

    def read(self, chat: str) -> Any:
        return self.store.list_messages(chat, AGENT)

    def last(self, chat: str, count: int) -> Any:
        return self.store.list_messages(chat, AGENT, limit=count, offset=max(0, self._count(chat) - count))


SYSTEMS = [StrandsFiles]
