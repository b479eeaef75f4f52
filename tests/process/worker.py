"""What the other processes of the process tests do: ``python worker.py VERB URL ...``, in step by lines on the pipes."""

import asyncio
import itertools
import os
import sys
import time

import sessiontree as st


def send_line(*words: object) -> None:
    print(*words, flush=True)


def receive() -> str:
    return sys.stdin.readline().strip()


def append_for_ever(url: str, prefix: str) -> None:
    """Batches of three until the process is killed; every batch is named once it is acknowledged."""
    journal = st.open(url)
    send_line("ready")
    for number in itertools.count():
        batch = [st.NewEntry(id=f"{prefix}-{number}-{part}", content=st.user("x" * 300)) for part in "abc"]
        journal.append_many("t", batch)
        send_line(f"{prefix}-{number}")


def append_for_a_while(url: str, prefix: str, seconds: str) -> None:
    journal = st.open(url)
    send_line("ready")
    receive()
    end = time.monotonic() + float(seconds)
    count = 0
    while time.monotonic() < end:
        journal.append("t", st.user("x" * 300), id=f"{prefix}-{count}")
        count += 1
    send_line(count)
    journal.close()


def run_a_turn(url: str, ttl_seconds: str) -> None:
    """Begin a turn, wait for a word, then try to go on."""
    journal = st.open(url)
    try:
        with journal.turn("t", owner="holder", ttl_seconds=float(ttl_seconds)) as turn:
            send_line(turn.lease.token)
            receive()
            try:
                turn.append(st.assistant("late"), id="late")
                send_line("written")
            except st.FencedError as error:
                send_line("fenced", error.token)
                raise
    except st.FencedError:
        send_line("over")


def open_at_the_same_time(url: str, name: str) -> None:
    send_line("ready")
    receive()
    with st.open(url) as journal:
        journal.create_thread(name)
        journal.append(name, st.user(name), id=name)
    send_line("done")


def sweep_old(url: str) -> None:
    """Delete every thread that is a second old, and name it."""
    with st.open(url, durability="process_crash") as journal:
        send_line("ready")
        receive()
        for thread in journal.delete_older_than(time.time_ns() - 10**9):
            send_line(thread.id)
    send_line("done")


def replace_contexts(url: str, times: str) -> None:
    with st.open(url, durability="process_crash") as journal:
        send_line("ready")
        receive()
        for number in range(int(times)):
            journal.replace_context("t", f"notes {number}")
    send_line("done")


def append_what_is_heard(url: str) -> None:
    with st.open(url) as journal:
        send_line("ready")
        while text := receive():
            send_line(journal.append("t", st.user(text), id=text).id)


def use_after_fork(url: str) -> None:
    """The child of a fork must get an error, and must leave the parent's store alone."""
    journal = st.open(url)
    journal.create_thread("t")
    if os.fork() == 0:
        for verb in (lambda: journal.thread("t"), lambda: journal.append("t", st.user("child"))):
            try:
                verb()
                send_line("no error")
            except st.StoreError as error:
                send_line("child", error)
        journal.close()
        os._exit(0)
    os.wait()
    journal.append("t", st.user("parent"), id="parent")
    send_line("parent", journal.thread("t").leaf)
    journal.close()


def read_after_fork(url: str) -> None:
    """Readers that idle in the parent have no threads in the child."""
    journal = st.open_async(url)

    async def fill() -> None:
        await journal.create_thread("t")
        for _ in range(5):
            await asyncio.gather(*(journal.path("t") for _ in range(10)))

    async def read() -> None:
        try:
            await asyncio.wait_for(journal.path("t"), 10)
            send_line("no error")
        except (st.StoreError, TimeoutError) as error:
            send_line("child", repr(error))

    asyncio.run(fill())
    if os.fork() == 0:
        asyncio.run(read())
        os._exit(0)
    os.wait()
    asyncio.run(journal.close())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
