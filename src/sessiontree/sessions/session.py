"""A session: a handle on one key of a manager. It holds no messages, so thousands of them cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree.compaction import CompactionResult
from sessiontree.model import Entry, Message, Payload, SessionKey
from sessiontree.model.later import Later
from sessiontree.sessions.info import SessionInfo
from sessiontree.sessions.keys import format_key

if TYPE_CHECKING:
    from sessiontree.sessions import manager as sync_manager
    from sessiontree.sessions import manager_async
else:
    # They import this module.
    manager_async = Later("sessiontree.sessions.manager_async")
    sync_manager = Later("sessiontree.sessions.manager")

__all__ = ["AsyncSession", "Session"]


class Session:
    """What ``SessionManager.get_or_create`` gives; every method goes to the store."""

    def __init__(self, manager: sync_manager.SessionManager, key: SessionKey, thread_id: str) -> None:
        self.manager = manager
        self.key = key
        self.thread_id = thread_id

    def __str__(self) -> str:
        return format_key(self.key)

    def add_message(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message, durably."""
        return self.manager.add_message(self.key, content, id=id)

    def get_messages(self) -> list[Message]:
        """What the model sees, without the system prompt."""
        return self.manager.get_messages(self.key)

    def system_prompt(self) -> str:
        """The prompt in force."""
        return self.manager.get_system_prompt(self.key)

    def set_system_prompt(self, text: str) -> None:
        """The prompt from here on."""
        self.manager.set_system_prompt(self.key, text)

    def set_title(self, title: str) -> SessionInfo:
        """Name the session."""
        return self.manager.set_title(self.key, title)

    def add_tag(self, tag: str) -> SessionInfo:
        """Tag the session."""
        return self.manager.add_tag(self.key, tag)

    def remove_tag(self, tag: str) -> SessionInfo:
        """Take a tag away."""
        return self.manager.remove_tag(self.key, tag)

    def set_custom(self, name: str, value: Any) -> SessionInfo:
        """Keep a value of your own with the session."""
        return self.manager.set_custom(self.key, name, value)

    def info(self) -> SessionInfo:
        """The session at this moment."""
        return self.manager.info(self.key)

    def token_usage(self) -> float:
        """How full the window is; 1.0 is full."""
        return self.manager.token_usage(self.key)

    def compact(self, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact the session now."""
        return self.manager.compact(self.key, instructions=instructions, force=force)

    def uncompact(self) -> Entry:
        """Take the last compaction back."""
        return self.manager.uncompact(self.key)

    def reset(self) -> SessionInfo:
        """Empty the conversation but for its system prompt."""
        return self.manager.reset(self.key)

    def archive(self) -> SessionInfo:
        """Put the session away."""
        return self.manager.archive(self.key)


class AsyncSession:
    """What ``AsyncSessionManager.get_or_create`` gives; every method goes to the store."""

    def __init__(self, manager: manager_async.AsyncSessionManager, key: SessionKey, thread_id: str) -> None:
        self.manager = manager
        self.key = key
        self.thread_id = thread_id

    def __str__(self) -> str:
        return format_key(self.key)

    async def add_message(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message, durably."""
        return await self.manager.add_message(self.key, content, id=id)

    async def get_messages(self) -> list[Message]:
        """What the model sees, without the system prompt."""
        return await self.manager.get_messages(self.key)

    async def system_prompt(self) -> str:
        """The prompt in force."""
        return await self.manager.get_system_prompt(self.key)

    async def set_system_prompt(self, text: str) -> None:
        """The prompt from here on."""
        await self.manager.set_system_prompt(self.key, text)

    async def set_title(self, title: str) -> SessionInfo:
        """Name the session."""
        return await self.manager.set_title(self.key, title)

    async def add_tag(self, tag: str) -> SessionInfo:
        """Tag the session."""
        return await self.manager.add_tag(self.key, tag)

    async def remove_tag(self, tag: str) -> SessionInfo:
        """Take a tag away."""
        return await self.manager.remove_tag(self.key, tag)

    async def set_custom(self, name: str, value: Any) -> SessionInfo:
        """Keep a value of your own with the session."""
        return await self.manager.set_custom(self.key, name, value)

    async def info(self) -> SessionInfo:
        """The session at this moment."""
        return await self.manager.info(self.key)

    async def token_usage(self) -> float:
        """How full the window is; 1.0 is full."""
        return await self.manager.token_usage(self.key)

    async def compact(self, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact the session now."""
        return await self.manager.compact(self.key, instructions=instructions, force=force)

    async def uncompact(self) -> Entry:
        """Take the last compaction back."""
        return await self.manager.uncompact(self.key)

    async def reset(self) -> SessionInfo:
        """Empty the conversation but for its system prompt."""
        return await self.manager.reset(self.key)

    async def archive(self) -> SessionInfo:
        """Put the session away."""
        return await self.manager.archive(self.key)
