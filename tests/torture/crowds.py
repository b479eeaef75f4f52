"""The rungs with several processes on one store: kills, stopped processes, clocks that jump, sixteen writers, forks."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sessiontree as st
from torture import servers
from torture.rounds import Outcome, Problem, Round, new_folder, url_of
from torture.writers import THREADS, Crowd, compare, fork

_DAY = 86_400_000_000_000
_MANY = 16


@contextmanager
def new_store(store: str) -> Iterator[str]:
    """The address of an empty store."""
    if store == "postgres":
        yield servers.new_store()
        return
    with new_folder() as folder:
        yield url_of(store, Path(folder))


def kill(what: Round) -> Outcome:
    """Kill four writers at a random moment."""
    source = random.Random(what.number)
    with new_store(what.store) as url, Crowd(url, 4) as crowd:
        crowd.wait_for(source.randint(1, 200))
        crowd.kill()
        return compare(url, crowd.said())


def stop(what: Round) -> Outcome:
    """Stop one of three writers wherever it is, and let it go on when the others did, or after a while."""
    source = random.Random(what.number)
    with new_store(what.store) as url, Crowd(url, 3) as crowd:
        crowd.wait_for(20)
        for _ in range(4):
            victim = source.choice(crowd.pids)
            os.kill(victim, signal.SIGSTOP)
            crowd.wait_for(30, seconds=source.uniform(0.05, 0.4))
            os.kill(victim, signal.SIGCONT)
            crowd.wait_for(source.randint(1, 20))
        return _finished(url, crowd)


def many(what: Round) -> Outcome:
    """Sixteen writers: each of them gets its turn."""
    with new_store(what.store) as url, Crowd(url, _MANY) as crowd:
        crowd.wait_for_each()
        crowd.wait_for(_MANY * 12)
        has_ended = crowd.finish()
        crowd.kill()
        said = crowd.said()
        outcome = compare(url, said)
        starved = [number for number in range(_MANY) if not said.by_writer[str(number)]]
        problems = [*outcome.problems, *_hung(has_ended)]
        if starved:
            problems.append(Problem("other", f"writers {starved} wrote nothing of {said.total}"))
        return outcome._replace(problems=tuple(problems))


def clocks(what: Round) -> Outcome:
    """Three writers whose clocks jump up to 400 days back and forth."""
    source = random.Random(what.number)

    def clock(number: int) -> Callable[[], int]:
        jumps = random.Random(what.number + number)
        return lambda: time.time_ns() + jumps.randint(-400, 400) * _DAY

    with new_store(what.store) as url, Crowd(url, 3, clock=clock) as crowd:
        crowd.wait_for(source.randint(30, 120))
        return _finished(url, crowd)


def fencing(what: Round) -> Outcome:
    """A holder that is stopped until its lease is taken over writes nothing when it wakes up, whatever its clock says."""
    source = random.Random(what.number)
    with new_store(what.store) as url, st.open(url) as journal:
        journal.create_thread("t")
        reading, writing = os.pipe()
        waiting, waking = os.pipe()
        # The holder's clock is wrong in half of the rounds.
        error_ns = source.choice((0, 0, -300, 300)) * 1_000_000_000
        holder = fork(lambda: _hold(url, error_ns, writing, waiting))
        os.close(writing)
        try:
            token = int(os.read(reading, 20))
            os.kill(holder, signal.SIGSTOP)
            # The clock of the successor is after the end of the lease.
            late = time.time_ns() + 7_200_000_000_000
            with st.open(url, clock=lambda: late) as successor:
                lease = successor.acquire_lease("t", owner="successor", ttl_seconds=60)
                successor.append("t", st.assistant("mine"), lease=lease)
            os.write(waking, b"x")
            os.kill(holder, signal.SIGCONT)
            answer = os.read(reading, 100).decode()
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
            for end in (reading, waiting, waking):
                os.close(end)
        texts = [entry.message.text for entry in journal.path("t") if entry.message]
        problems = []
        if answer != "FencedError" or texts != ["mine"]:
            problems.append(Problem("other", f"the stopped holder was told {answer!r}, the thread has {texts}"))
        if lease.token <= token:
            problems.append(Problem("other", f"token {lease.token} came after {token}"))
        return Outcome(1, tuple(problems))


def _hold(url: str, error_ns: int, report: int, waiting: int) -> None:
    journal = st.open(url, clock=lambda: time.time_ns() + error_ns)
    lease = journal.acquire_lease("t", owner="holder", ttl_seconds=60)
    os.write(report, str(lease.token).encode())
    os.read(waiting, 1)
    try:
        journal.append("t", st.assistant("too late"), lease=lease)
    except Exception as error:  # noqa: BLE001  its name is the answer
        os.write(report, type(error).__name__.encode())
    else:
        os.write(report, b"written")


def forks(what: Round) -> Outcome:
    """Fork a process whose threads write; the child uses the journal, closes it, and opens the store again."""
    with new_store(what.store) as url:
        reading, writing = os.pipe()
        parent = fork(lambda: _fork_while_writing(url, writing))
        os.close(writing)
        with os.fdopen(reading) as file:
            lines = file.read().splitlines()
        os.waitpid(parent, 0)
        kept = [line.split(" ", 1)[1] for line in lines if line.startswith("kept ")]
        problems = [Problem("hung" if "hung" in line else "other", line) for line in lines if line.startswith("bad ")]
        with st.open(url) as journal:
            stored = {entry.id for thread in THREADS for entry in journal.entries(thread)}
            problems += [Problem("torn", finding.problem) for finding in journal.check()]
        lost = set(kept) - stored
        if lost:
            problems.append(Problem("lost", f"{sorted(lost)[:5]}"))
        if len(kept) < _KEPT_AT_LEAST:
            problems.append(Problem("other", f"only {len(kept)} writes"))
        return Outcome(len(kept), tuple(problems))


_KEPT_AT_LEAST = 8
_CHILD_SECONDS = 20


def _fork_while_writing(url: str, report: int) -> None:
    journal = st.open(url)
    for thread in THREADS:
        journal.create_thread(thread)
    may_go_on = True

    def write(thread: str) -> None:
        count = 0
        while may_go_on or count < _KEPT_AT_LEAST:
            count += 1
            journal.append(thread, st.user("x"), id=f"{thread}{count}")
            os.write(report, f"kept {thread}{count}\n".encode())
            if count % 5 == 0:
                journal.path(thread, limit=3)

    crew = [threading.Thread(target=write, args=(thread,)) for thread in THREADS]
    for member in crew:
        member.start()
    time.sleep(0.05)
    children = [fork(lambda: _use_in_child(journal, url, report)) for _ in range(3)]
    end = time.monotonic() + _CHILD_SECONDS
    while children and time.monotonic() < end:
        children = [child for child in children if not os.waitpid(child, os.WNOHANG)[0]]
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.write(report, b"bad hung: a child did not end\n")
    may_go_on = False
    for member in crew:
        member.join()
    journal.close()


def _use_in_child(journal: st.Journal, url: str, report: int) -> None:
    for name, use in (
        ("append", lambda: journal.append("a", st.user("from the child"))),
        ("path", lambda: journal.path("a")),
        ("close", journal.close),
        ("again", lambda: _append_again(url)),
    ):
        try:
            use()
        except st.SessionTreeError:
            continue
        except BaseException as error:  # noqa: BLE001  what leaves the library is what the ladder looks for
            os.write(report, f"bad {name}: {type(error).__name__}: {error}\n".encode())


def _append_again(url: str) -> None:
    with st.open(url) as journal:
        journal.append("a", st.user("from the child"))


def _finished(url: str, crowd: Crowd) -> Outcome:
    has_ended = crowd.finish()
    crowd.kill()
    outcome = compare(url, crowd.said())
    return outcome._replace(problems=(*outcome.problems, *_hung(has_ended)))


def _hung(has_ended: bool) -> list[Problem]:
    return [] if has_ended else [Problem("hung", "a writer did not end")]
