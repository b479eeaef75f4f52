"""Chat stores of LlamaIndex beside ``SQLAlchemyChatStore`` on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.adapters.calls import TEXT, Call, is_answer
from sessiontree.adapters.llama_index import SessionTreeChatStore


@contextmanager
def _beside_sqlite(folder: Path, messages: int) -> Iterator[list[Call]]:
    said = [ChatMessage(TEXT, role="assistant" if is_answer(number) else "user") for number in range(messages)]
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeChatStore(f"sqlite:///{folder}/ours.db")
        engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/theirs.db")
        theirs = SQLAlchemyChatStore("messages", async_engine=engine)
        sides: tuple[AsyncDBChatStore, AsyncDBChatStore] = (ours, theirs)
        for side in sides:
            run(side.add_messages("chat", said))
        yield [
            Call.on(sides, "append", lambda side: run(side.add_message("chat", said[0]))),
            Call.on(sides, "read all", lambda side: run(side.get_messages("chat"))),
            Call.on(sides, "list", lambda side: run(side.get_keys())),
        ]
        run(ours.close())
        run(engine.dispose())


KINDS = {"SQLite": _beside_sqlite}
