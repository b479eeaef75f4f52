"""A chat service that streams: uvicorn fastapi_chat:app. An answer that breaks off is kept as far as it was sent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import sessiontree as st
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse

dialect = st.DIALECTS["openai-chat"]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with st.open_async("service.db") as app.state.journal, openai.AsyncOpenAI() as app.state.model:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/chats/{name}")
async def ask(name: str, question: str) -> StreamingResponse:
    chat = await app.state.journal.open_thread(name, create=True)
    if await chat.active_lease() is not None:
        raise HTTPException(409, "an answer is being written")
    await chat.append(st.user(question))
    return StreamingResponse(answer(chat), media_type="text/plain")


async def answer(chat: st.AsyncThreadHandle) -> AsyncIterator[str]:
    async with chat.turn(owner="service") as turn:
        request = dialect.to_request(await chat.context())
        events = await app.state.model.chat.completions.create(model="gpt-5", stream=True, **request)
        async for text in turn.stream(dialect, events):
            yield text


@app.get("/chats/{name}")
async def read(name: str) -> list[dict[str, str]]:
    chat = await app.state.journal.open_thread(name)
    return [{"role": message.role, "text": message.text} for message in (await chat.context()).messages]
