"""The first append of a process does what a later one does: an event loop must not wait for its preparations."""

import subprocess
import sys

SCRIPT = """
import asyncio, msgspec
import sessiontree as st

async def main():
    journal = await asyncio.to_thread(st.open_async, "memory:")
    made = []
    make = msgspec.json.Decoder
    msgspec.json.Decoder = lambda kind: made.append(kind) or make(kind)
    async with journal:
        await journal.create_thread("t")
        await journal.append("t", st.user("hello"))
    print(len(made))

asyncio.run(main())
"""


def test_the_first_append_analyses_no_types() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
