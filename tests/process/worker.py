"""What the other processes of the process tests do: ``python worker.py VERB URL ...``, in step by lines on the pipes."""

import asyncio
import itertools
import os
import sys
import time

import sessiontree as st


def say(*words):
    print(*words, flush=True)


def hear():
    return sys.stdin.readline().strip()


def append_for_ever(url, prefix):
    """Batches of three until the process is killed; every batch is named once it is acknowledged."""
    journal = st.open(url)
    say("ready")
    for number in itertools.count():
        batch = [st.NewEntry(id=f"{prefix}-{number}-{part}", content=st.user("x" * 300)) for part in "abc"]
        journal.append_many("t", batch)
        say(f"{prefix}-{number}")


def append_for_a_while(url, prefix, seconds):
    journal = st.open(url)
    say("ready")
    hear()
    end = time.monotonic() + float(seconds)
    count = 0
    while time.monotonic() < end:
        journal.append("t", st.user("x" * 300), id=f"{prefix}-{count}")
        count += 1
    say(count)
    journal.close()


def run_a_turn(url, ttl_seconds):
    """Begin a turn, wait for a word, then try to go on."""
    journal = st.open(url)
    try:
        with journal.turn("t", owner="holder", ttl_seconds=float(ttl_seconds)) as turn:
            say(turn.lease.token)
            hear()
            try:
                turn.append(st.assistant("late"), id="late")
                say("written")
            except st.FencedError as error:
                say("fenced", error.token)
                raise
    except st.FencedError:
        say("over")


def open_at_the_same_time(url, name):
    say("ready")
    hear()
    with st.open(url) as journal:
        journal.create_thread(name)
        journal.append(name, st.user(name), id=name)
    say("done")


def sweep_old(url):
    """Delete every thread that is a second old, and name it."""
    with st.open(url, durability="process_crash") as journal:
        say("ready")
        hear()
        for thread in journal.delete_older_than(time.time_ns() - 10**9):
            say(thread.id)
    say("done")


def append_what_is_heard(url):
    with st.open(url) as journal:
        say("ready")
        while text := hear():
            say(journal.append("t", st.user(text), id=text).id)


def use_after_fork(url):
    """The child of a fork must be told, and must leave the parent's store alone."""
    journal = st.open(url)
    journal.create_thread("t")
    if os.fork() == 0:
        for verb in (lambda: journal.thread("t"), lambda: journal.append("t", st.user("child"))):
            try:
                verb()
                say("no error")
            except st.StoreError as error:
                say("child", error)
        journal.close()
        os._exit(0)
    os.wait()
    journal.append("t", st.user("parent"), id="parent")
    say("parent", journal.thread("t").leaf)
    journal.close()


def read_after_fork(url):
    """Readers that idle in the parent have no threads in the child."""
    journal = st.open_async(url)

    async def fill():
        await journal.create_thread("t")
        for _ in range(5):
            await asyncio.gather(*(journal.path("t") for _ in range(10)))

    async def read():
        try:
            await asyncio.wait_for(journal.path("t"), 10)
            say("no error")
        except (st.StoreError, TimeoutError) as error:
            say("child", repr(error))

    asyncio.run(fill())
    if os.fork() == 0:
        asyncio.run(read())
        os._exit(0)
    os.wait()
    asyncio.run(journal.close())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
