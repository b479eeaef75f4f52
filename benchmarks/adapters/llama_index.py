"""Chat stores of LlamaIndex beside ``SQLAlchemyChatStore`` on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.adapters.calls import TEXT, Call, is_answer, new_database
from sessiontree.adapters.llama_index import SessionTreeChatStore


@contextmanager
def _calls(ours: SessionTreeChatStore, engine: AsyncEngine, messages: int) -> Iterator[list[Call]]:
    said = [ChatMessage(TEXT, role="assistant" if is_answer(number) else "user") for number in range(messages)]
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        sides: tuple[AsyncDBChatStore, AsyncDBChatStore] = (ours, SQLAlchemyChatStore("messages", async_engine=engine))
        for side in sides:
            run(side.add_messages("chat", said))
        yield [
            Call.on(sides, "append", lambda side: run(side.add_message("chat", said[0]))),
            Call.on(sides, "read all", lambda side: run(side.get_messages("chat"))),
            Call.on(sides, "list", lambda side: run(side.get_keys())),
        ]
        run(ours.close())
        run(engine.dispose())


def _beside_sqlite(folder: Path, messages: int) -> AbstractContextManager[list[Call]]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/theirs.db")
    return _calls(SessionTreeChatStore(f"sqlite:///{folder}/ours.db"), engine, messages)


def _beside_postgres(folder: Path, messages: int) -> AbstractContextManager[list[Call]]:
    engine = create_async_engine(new_database().replace("postgresql:", "postgresql+psycopg:"))
    return _calls(SessionTreeChatStore(new_database()), engine, messages)


KINDS = {"SQLite": _beside_sqlite, "PostgreSQL": _beside_postgres}
