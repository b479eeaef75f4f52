"""The rungs against a real PostgreSQL server: restarts, cut links, no connections left, a full disk, hostile tenants."""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg

import postgres_server
import sessiontree as st
from sessiontree.stores.postgres import bind_role
from tcp_proxy import Proxy
from torture import scripts
from torture.rounds import Outcome, Problem, Round, new_folder
from torture.writers import Crowd, compare, fork

_CONNECTIONS = 40


@cache
def server() -> postgres_server.Server:
    """The server of this climb, with few connections."""
    made = postgres_server.Server.create("fsync = on", f"max_connections = {_CONNECTIONS}")
    atexit.register(_remove, os.getpid(), made)
    return made


def _remove(owner: int, made: postgres_server.Server) -> None:
    if os.getpid() == owner:
        made.remove()


def new_store(url: str = "") -> str:
    """The address of an empty namespace on the server. A lost server is waited for, but not for long."""
    return postgres_server.with_options(
        url or server().url, namespace=secrets.token_hex(8), retry_seconds=2, pool_timeout_seconds=5
    )


def kill_process(what: Round) -> Outcome:
    """Kill a process shortly after one of the steps of a script: the fault is ``kill/script``."""
    source = random.Random(what.number)
    script = scripts.SCRIPTS[what.fault.partition("/")[2]]
    url = new_store()
    with new_folder() as place:
        folder = Path(place)
        scripts.prepare(script, url, folder)
        reading, writing = os.pipe()
        child = fork(lambda: scripts.perform(script, url, folder, writing))
        os.close(writing)
        heard = b""
        wanted = source.randint(1, len(script.steps))
        while heard.count(b"\n") < wanted and (more := os.read(reading, 4096)):
            heard += more
        time.sleep(source.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told = scripts.read(reading, heard)
        return Outcome(told.acknowledged, scripts.violations(script, url, folder, told))


def restart(what: Round) -> Outcome:
    """Stop the server at once while four processes write, and start it again."""
    source = random.Random(what.number)
    url = new_store()
    with Crowd(url, 4) as crowd:
        crowd.wait_for(source.randint(1, 150))
        server().stop("immediate")
        # In a third of the rounds the server is away for longer than the writers wait.
        if source.random() < 1 / 3:
            crowd.wait_for_error()
        server().start()
        crowd.wait_for(40)
        return _finished(url, crowd)


def cut(what: Round) -> Outcome:
    """Cut the connections of three processes: before a statement reaches the server, after it, or at any moment."""
    source = random.Random(what.number)
    with Proxy(server().port) as proxy:
        direct = new_store()
        url = direct.replace(f":{server().port}/", f":{proxy.port}/")
        with Crowd(url, 3) as crowd:
            crowd.wait_for(10)
            for _ in range(5):
                crowd.wait_for(source.randint(1, 40))
                match source.choice(("before", "after", "all")):
                    case "all":
                        proxy.cut_all()
                    case moment:
                        proxy.cut_at(b"", after=moment == "after")
                        proxy.was_cut.wait(5)
            crowd.wait_for(10)
            return _finished(direct, crowd)


def slots(what: Round) -> Outcome:
    """Take every connection that the server has while three processes open the store and write; then give them back."""
    source = random.Random(what.number)
    url = new_store()
    taken: list[psycopg.Connection] = []
    with Crowd(url, 3) as crowd:
        if source.random() < 0.5:
            crowd.wait_for(source.randint(1, 30))
        try:
            _take_all(taken)
            _end_others(taken)
            _take_all(taken)
            crowd.wait_for(3, seconds=12)
        finally:
            for connection in taken:
                connection.close()
        crowd.wait_for(20)
        return _finished(url, crowd)


def _take_all(taken: list[psycopg.Connection]) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(server().url, autocommit=True))


def _end_others(taken: list[psycopg.Connection]) -> None:
    """End the connections of the writers: none of them can come back."""
    taken[0].execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " AND NOT pid = ANY(%s)",
        [[connection.info.backend_pid for connection in taken]],
    )


def full(what: Round) -> Outcome:
    """Fill the disk of a database while two processes write; then make room."""
    source = random.Random(what.number)
    with small_disk() as disk:
        if disk is None:
            return Outcome(skipped="this user may not mount a small file system")
        name = f"small_{secrets.token_hex(4)}"
        with psycopg.connect(server().url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE {name} LOCATION '{disk}'")
            connection.execute(f"CREATE DATABASE {name} TABLESPACE {name}")
        url = new_store(_database(name))
        try:
            with Crowd(url, 2) as crowd:
                crowd.wait_for(source.randint(5, 40))
                _fill(_database(name))
                crowd.wait_for_error()
                subprocess.run(["mount", "-o", "remount,size=256m", disk], check=True)
                crowd.wait_for(30)
                return _finished(url, crowd)
        finally:
            with psycopg.connect(server().url, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
                connection.execute(f"DROP TABLESPACE {name}")


def _database(name: str) -> str:
    return f"{server().url.rpartition('/')[0]}/{name}"


@contextlib.contextmanager
def small_disk() -> Iterator[Path | None]:
    """A file system of 24 MB that belongs to the server; None if that is not possible."""
    folder = Path(tempfile.mkdtemp(prefix="torture-disk-"))
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24m", "none", folder], capture_output=True, check=False
        ).returncode
    )
    try:
        if mounted:
            shutil.chown(folder, "pgserver")
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)
        folder.rmdir()


def _fill(url: str) -> None:
    with contextlib.suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE filler (text text)")
        for size in (1000, 100, 10, 1):
            with contextlib.suppress(psycopg.errors.DiskFull):
                while True:
                    connection.execute(
                        "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, %s)", [size]
                    )


def tenants(what: Round) -> Outcome:
    """A role that is bound to one namespace tries to read and change another one with SQL of its own."""
    source = random.Random(what.number)
    rival = f"rival-{secrets.token_hex(4)}"
    own = f"own-{secrets.token_hex(4)}"
    role = f"tenant_{secrets.token_hex(4)}"
    base = server().url
    for name in (own, rival):
        with st.open(postgres_server.with_options(base, namespace=name)) as journal:
            journal.create_thread("t", title=name)
            journal.append("t", st.user(f"secret of {name}"), id="e")
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    bind_role(base, role, own)
    problems = []
    with psycopg.connect(base.replace("postgres@", f"{role}@"), autocommit=True) as hostile:
        statements = list(_HOSTILE)
        source.shuffle(statements)
        for statement in statements:
            with contextlib.suppress(psycopg.Error):
                answer = hostile.execute(statement.replace("RIVAL", rival).replace("OWN", own))
                if answer.description and any(rival in str(row) for row in answer.fetchall()):
                    problems.append(Problem("other", f"{statement!r} showed rows of another tenant"))
    with st.open(postgres_server.with_options(base, namespace=rival)) as journal:
        texts = [entry.message.text for entry in journal.path("t") if entry.message]
        if texts != [f"secret of {rival}"] or journal.thread("t").title != rival:
            problems.append(Problem("lost", f"another tenant's thread is now {texts}"))
        problems += [Problem("torn", finding.problem) for finding in journal.check()]
        journal.append("t", st.user("it goes on"))
    return Outcome(1, tuple(problems))


_TABLES = ("home", "thread", "head", "entry", "move", "lease", "blob", "search_block", "channel")
_HOSTILE = (
    *(f"SELECT * FROM sessiontree.{table}" for table in _TABLES),
    *(f"DELETE FROM sessiontree.{table} WHERE namespace = 'RIVAL'" for table in _TABLES),
    *(f"UPDATE sessiontree.{table} SET namespace = 'OWN' WHERE namespace = 'RIVAL'" for table in _TABLES),
    *(f"UPDATE sessiontree.{table} SET namespace = 'RIVAL'" for table in _TABLES),
    *(f"TRUNCATE sessiontree.{table}" for table in _TABLES),
    *(f"DROP TABLE sessiontree.{table}" for table in _TABLES),
    "INSERT INTO sessiontree.home (id, namespace) VALUES ('x', 'RIVAL')",
    "SET ROLE postgres",
    "ALTER ROLE CURRENT_USER SET sessiontree.namespace = 'RIVAL'",
    "SET row_security = off",
)


def _finished(url: str, crowd: Crowd) -> Outcome:
    has_ended = crowd.finish()
    crowd.kill()
    outcome = compare(url, crowd.said())
    if has_ended:
        return outcome
    return outcome._replace(problems=(*outcome.problems, Problem("hung", "a writer did not end")))
