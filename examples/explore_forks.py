"""Ask one question in three ways at once, each in a fork, and go on with the shortest answer. Nothing is copied or lost."""

import asyncio
import sys

import openai
import sessiontree as st

WAYS = ("Answer in one sentence.", "Answer with an example.", "Answer for a child.")


async def explore(journal: st.AsyncJournal, model: openai.AsyncOpenAI, question: str) -> None:
    dialect = st.DIALECTS["openai-chat"]
    chat = await journal.open_thread("physics", create=True)
    asked = await chat.append(st.user(question))

    async def answer(way: str) -> tuple[int, str]:
        fork = await chat.fork(at=asked.id, title=way)
        await fork.append(st.system(way))
        request = dialect.to_request(await fork.context())
        entry = await fork.append(dialect.from_response(await model.chat.completions.create(model="gpt-5", **request)))
        print(f"{way:24} {entry.message.text}")
        return len(entry.message.text), fork.id

    length, shortest = min(await asyncio.gather(*(answer(way) for way in WAYS)))
    print(f"the shortest has {length} characters; go on in thread {shortest}")


async def main() -> None:
    async with st.open_async("forks.db") as journal:
        await explore(journal, openai.AsyncOpenAI(), sys.argv[1])


asyncio.run(main())
