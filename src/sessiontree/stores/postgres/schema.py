"""The tables of the PostgreSQL store and their migrations.

Every table is keyed by tree first, so that a distributed server can keep a tree on one node, with these exceptions:
``home`` maps thread ids to trees; ``horizon`` is how far the search index has come in a namespace; blobs are shared
between trees, so ``blob`` is keyed by hash and ``chunk`` by pack. There are no sequences, triggers or foreign keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.errors import NewerFormatError
from sessiontree.model._base import Record
from sessiontree.stores.postgres.functions import FUNCTIONS, WRITE_THREAD
from sessiontree.stores.postgres.search_schema import SEARCH_BLOCKS
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, Row, Statement, Steps
from sessiontree.stores.postgres.unsampled import NO_STATISTICS
from sessiontree.stores.queries import RARE_MARKS

__all__ = ["IS_RARE", "MIGRATIONS", "MIGRATION_LOCK", "TABLES", "TITLE_PARTS", "Migration", "migrate"]


_FIRST_TABLES = ("home", "thread", "head", "entry", "move", "document", "horizon")
_LASTING_TABLES = tuple(table for table in _FIRST_TABLES if table != "document")
_BLOB_TABLES = ("checkpoint", "stock", "blob", "chunk")
_ARTIFACT_TABLES = ("artifact", "pending_artifact")
TABLES = (
    *_LASTING_TABLES, "search_block", "deleted_thread", *_BLOB_TABLES, *_ARTIFACT_TABLES, "json_document", "channel",
)  # fmt: skip

# "SESSIONT" as a number: the advisory lock of migrations.
MIGRATION_LOCK = 0x53455353494F4E54


class Migration(Record, frozen=True, kw_only=True):
    """One step of the schema. Programs that know version ``readable_by`` or a later one may use it."""

    version: int
    readable_by: int
    statements: tuple[str, ...]


_FIRST = (
    "CREATE SCHEMA IF NOT EXISTS sessiontree",
    """CREATE TABLE sessiontree.migration (
        version integer PRIMARY KEY,
        readable_by integer NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )""",
    # ``tree`` is the tree of the thread with this id, ``named_tree`` the tree with this id; a tree outlives its first
    # thread while it has forks.
    """CREATE TABLE sessiontree.home (
        id bytea NOT NULL,
        namespace text NOT NULL,
        tree uuid,
        named_tree uuid,
        PRIMARY KEY (id, namespace)
    )""",
    """CREATE TABLE sessiontree.thread (
        tree uuid NOT NULL,
        key bigint NOT NULL,
        namespace text NOT NULL,
        id bytea NOT NULL,
        base bytea,
        created_ns bigint NOT NULL,
        is_archived boolean NOT NULL,
        tree_id bytea NOT NULL,
        title_folded bytea NOT NULL,
        workspace bytea NOT NULL,
        vendor bytea NOT NULL,
        model bytea NOT NULL,
        agent bytea NOT NULL,
        channel bytea NOT NULL,
        peer bytea NOT NULL,
        key_thread bytea NOT NULL,
        state bytea NOT NULL,
        status bytea NOT NULL,
        parent_thread bytea NOT NULL,
        forked_from_thread bytea NOT NULL,
        tags bytea[] NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (tree, id),
        UNIQUE (tree, key)
    )""",
    "CREATE INDEX thread_created ON sessiontree.thread (namespace, created_ns DESC, id)",
    "CREATE INDEX thread_session ON sessiontree.thread (namespace, agent, channel, peer, key_thread)",
    "CREATE INDEX thread_workspace ON sessiontree.thread (namespace, workspace)",
    "CREATE INDEX thread_family ON sessiontree.thread (namespace, tree_id)",
    "CREATE INDEX thread_parent ON sessiontree.thread (namespace, parent_thread)",
    "CREATE INDEX thread_tags ON sessiontree.thread USING gin (tags)",
    # What every append changes, apart from the metadata: a short row that is rewritten each time. ``seq`` numbers the
    # thread's own entries, ``previous`` is the leaf before the last append, ``stamp`` identifies the last transaction
    # that moved, updated or forked, so that a commit whose answer was lost can be settled. Only minutes are indexed,
    # those of the caller's clock for lists and those of the server's for the search index, so most appends change no
    # index of this table (HOT updates).
    """CREATE TABLE sessiontree.head (
        tree uuid NOT NULL,
        id bytea NOT NULL,
        key bigint NOT NULL,
        namespace text NOT NULL,
        seq bigint NOT NULL,
        leaf bytea,
        previous bytea,
        depth bigint NOT NULL,
        messages bigint NOT NULL,
        tokens bigint NOT NULL,
        updated_ns bigint NOT NULL,
        updated_minute bigint NOT NULL,
        touched_minute bigint NOT NULL,
        moves bigint NOT NULL,
        fence bigint NOT NULL,
        lease_token bigint,
        lease_turn bytea,
        lease_owner bytea,
        lease_created_ns bigint,
        lease_expires_ns bigint,
        stamp bigint NOT NULL,
        indexed_seq bigint NOT NULL,
        watched_until timestamptz,
        PRIMARY KEY (tree, id)
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX head_updated ON sessiontree.head (namespace, updated_minute DESC)",
    "CREATE INDEX head_touched ON sessiontree.head (namespace, touched_minute)",
    """CREATE TABLE sessiontree.entry (
        tree uuid NOT NULL,
        owner bigint NOT NULL,
        seq bigint NOT NULL,
        namespace text NOT NULL,
        id bytea NOT NULL,
        parent bytea,
        depth bigint NOT NULL,
        messages bigint NOT NULL,
        tokens bigint NOT NULL,
        created_ns bigint NOT NULL,
        turn_id bytea NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (tree, owner, seq),
        UNIQUE (tree, id)
    )""",
    """CREATE TABLE sessiontree.move (
        tree uuid NOT NULL,
        thread bigint NOT NULL,
        number bigint NOT NULL,
        namespace text NOT NULL,
        from_entry bytea,
        to_entry bytea,
        reason text NOT NULL,
        at_ns bigint NOT NULL,
        PRIMARY KEY (tree, thread, number)
    )""",
    """CREATE TABLE sessiontree.departed (
        tree uuid NOT NULL,
        key bigint NOT NULL,
        namespace text NOT NULL,
        id bytea NOT NULL,
        PRIMARY KEY (tree, key)
    )""",
    """CREATE TABLE sessiontree.document (
        tree uuid NOT NULL,
        owner bigint NOT NULL,
        seq bigint NOT NULL,
        piece integer NOT NULL,
        namespace text NOT NULL,
        created_ns bigint NOT NULL,
        role text NOT NULL,
        tools text NOT NULL,
        model text NOT NULL,
        files text NOT NULL,
        lexemes tsvector NOT NULL,
        PRIMARY KEY (tree, owner, seq, piece)
    )""",
    """CREATE TABLE sessiontree.horizon (
        namespace text PRIMARY KEY,
        minute bigint NOT NULL
    )""",
    "CREATE INDEX document_lexemes ON sessiontree.document USING gin (lexemes)",
    # With statistics on older trees the planner would expect a new tree to be empty. Without them it expects a share of
    # the table, and uses the most selective index.
    *(
        f"ALTER TABLE sessiontree.{table} ALTER COLUMN tree SET STATISTICS 0"
        for table in ("thread", "head", "entry", "move", "document")
    ),
    # The owner of the tables sees everything; any other role sees nothing until bind_role() gives it a namespace.
    *(f"ALTER TABLE sessiontree.{table} ENABLE ROW LEVEL SECURITY" for table in (*_FIRST_TABLES, "departed")),
)

# Binds roles that were bound to a namespace before to the new tables too.
_BIND_AS_BEFORE = """DO $$
DECLARE
    bound record;
BEGIN
    FOR bound IN
        SELECT p.policyname, p.qual, p.with_check, r.role, t.name AS target
        FROM pg_policies p, unnest(p.roles) AS r (role), unnest(ARRAY[{tables}]) AS t (name)
        WHERE p.schemaname = 'sessiontree' AND p.tablename = 'head'
    LOOP
        EXECUTE format('CREATE POLICY %I ON sessiontree.%I TO %I USING (%s) WITH CHECK (%s)',
            bound.policyname, bound.target, bound.role, bound.qual, bound.with_check);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON sessiontree.%I TO %I', bound.target, bound.role);
    END LOOP;
END $$"""

_BLOBS = (
    """CREATE TABLE sessiontree.checkpoint (
        tree uuid NOT NULL,
        owner bigint NOT NULL,
        seq bigint NOT NULL,
        namespace text NOT NULL,
        manifest bytea NOT NULL,
        PRIMARY KEY (tree, owner, seq)
    )""",
    "CREATE INDEX checkpoint_manifest ON sessiontree.checkpoint (namespace, manifest)",
    # One row for each namespace that has blobs, used as a lock.
    "CREATE TABLE sessiontree.stock (namespace text PRIMARY KEY)",
    # ``size`` is that of the data, ``start`` and ``length`` the place of its stored form in the pack.
    """CREATE TABLE sessiontree.blob (
        namespace text NOT NULL,
        hash bytea NOT NULL,
        size bigint NOT NULL,
        pack uuid NOT NULL,
        start bigint NOT NULL,
        length bigint NOT NULL,
        PRIMARY KEY (namespace, hash)
    )""",
    "CREATE INDEX blob_pack ON sessiontree.blob (namespace, pack)",
    """CREATE TABLE sessiontree.chunk (
        namespace text NOT NULL,
        pack uuid NOT NULL,
        number integer NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (namespace, pack, number)
    )""",
    # Bodies are compressed already; stored externally, a part can be read without the rest.
    "ALTER TABLE sessiontree.chunk ALTER COLUMN body SET STORAGE EXTERNAL",
    *(f"ALTER TABLE sessiontree.{table} ENABLE ROW LEVEL SECURITY" for table in _BLOB_TABLES),
    _BIND_AS_BEFORE.format(tables=", ".join(f"'{table}'" for table in _BLOB_TABLES)),
)

# Entries that forks keep of a deleted thread are indexed too, although no head row says how far.
_DEPARTED = (
    "ALTER TABLE sessiontree.departed ADD COLUMN is_indexed boolean NOT NULL DEFAULT false",
    "CREATE INDEX departed_unindexed ON sessiontree.departed (namespace) WHERE NOT is_indexed",
)

_DELETED_THREADS = (
    "ALTER TABLE sessiontree.departed RENAME TO deleted_thread",
    "ALTER INDEX sessiontree.departed_pkey RENAME TO deleted_thread_pkey",
    "ALTER INDEX sessiontree.departed_unindexed RENAME TO deleted_thread_unindexed",
)

# Set by every write of the metadata and read by every append, so it is in the row that an append changes anyway. Rows
# from before have the value that is always right: the next text of a user takes the slower way, and writes it.
_NEEDS_TITLE = ("ALTER TABLE sessiontree.head ADD COLUMN needs_title boolean NOT NULL DEFAULT true",)

_ARTIFACTS = (
    """CREATE TABLE sessiontree.artifact (
        tree uuid NOT NULL,
        owner bigint NOT NULL,
        seq bigint NOT NULL,
        hash bytea NOT NULL,
        namespace text NOT NULL,
        PRIMARY KEY (tree, owner, seq, hash)
    )""",
    "CREATE INDEX artifact_hash ON sessiontree.artifact (namespace, hash)",
    # Artifacts that no entry refers to yet.
    """CREATE TABLE sessiontree.pending_artifact (
        namespace text NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (namespace, hash)
    )""",
    *(f"ALTER TABLE sessiontree.{table} ENABLE ROW LEVEL SECURITY" for table in _ARTIFACT_TABLES),
    _BIND_AS_BEFORE.format(tables=", ".join(f"'{table}'" for table in _ARTIFACT_TABLES)),
)

# Children, entries by their id alone, entries of rare types, and what can be undone are found by an index. The id comes
# first in the unique index: ids are ordered by time, so the index grows at its end.
IS_RARE = "substring(body FROM 10 FOR 5) IN (" + ", ".join(f"'{mark.decode()}'::bytea" for mark in RARE_MARKS) + ")"
"""Selects the entries of rare types, in exactly this form: only then the server uses the index."""
_READ_INDEXES = (
    "CREATE INDEX entry_parent ON sessiontree.entry (tree, parent)",
    "CREATE UNIQUE INDEX entry_id ON sessiontree.entry (id, tree)",
    "ALTER TABLE sessiontree.entry DROP CONSTRAINT entry_tree_id_key",
    f"CREATE INDEX entry_rare ON sessiontree.entry (tree, owner, seq) WHERE {IS_RARE}",
    *(f"ALTER TABLE sessiontree.move ADD COLUMN {name} bigint" for name in ("undo", "redo", "redo_below")),
)

_DOCUMENTS = (
    """CREATE TABLE sessiontree.json_document (
        namespace text NOT NULL,
        scope bytea NOT NULL,
        key bytea NOT NULL,
        version bigint NOT NULL,
        updated_ns bigint NOT NULL,
        expires_ns bigint,
        body bytea NOT NULL,
        PRIMARY KEY (namespace, scope, key)
    )""",
    "ALTER TABLE sessiontree.json_document ENABLE ROW LEVEL SECURITY",
    _BIND_AS_BEFORE.format(tables="'json_document'"),
)

# The namespace ends every key of a tree's rows: whatever a tenant writes, it never stands where another's row belongs.
_TREE_KEYS = {
    "thread": "tree, id, namespace",
    "head": "tree, id, namespace",
    "entry": "tree, owner, seq, namespace",
    "move": "tree, thread, number, namespace",
    "deleted_thread": "tree, key, namespace",
    "document": "tree, owner, seq, piece, namespace",
    "checkpoint": "tree, owner, seq, namespace",
    "artifact": "tree, owner, seq, hash, namespace",
}
_NAMESPACE_KEYS = (
    *(
        f"ALTER TABLE sessiontree.{table} {change}"
        for table, columns in _TREE_KEYS.items()
        # One change a statement, because a distributed server takes no more.
        for change in (f"DROP CONSTRAINT {table}_pkey", f"ADD PRIMARY KEY ({columns})")
    ),
    "ALTER TABLE sessiontree.thread DROP CONSTRAINT thread_tree_key_key",
    "ALTER TABLE sessiontree.thread ADD CONSTRAINT thread_tree_key_key UNIQUE (tree, key, namespace)",
    "CREATE UNIQUE INDEX entry_id_namespace ON sessiontree.entry (id, tree, namespace)",
    "DROP INDEX sessiontree.entry_id",
    "ALTER INDEX sessiontree.entry_id_namespace RENAME TO entry_id",
)

# ``version`` counts the changes of a thread's head and metadata. Programs that do not count them must not go on writing:
# every one of their writes names the column that is renamed. The functions that count them are those of version 10.
_THREAD_VERSIONS = (
    "ALTER TABLE sessiontree.head ADD COLUMN version bigint NOT NULL DEFAULT 0",
    "ALTER TABLE sessiontree.head RENAME COLUMN previous TO previous_leaf",
)

_FILTER_INDEXES = tuple(
    f"CREATE INDEX thread_{column} ON sessiontree.thread (namespace, {column})"
    for column in ("vendor", "model", "status", "state", "forked_from_thread", "is_archived")
)

# Anybody may listen to any channel, so the name of a namespace's channel is a secret that only its roles can read.
_CHANNELS = (
    "CREATE TABLE sessiontree.channel (namespace text PRIMARY KEY, name text NOT NULL)",
    "ALTER TABLE sessiontree.channel ENABLE ROW LEVEL SECURITY",
    _BIND_AS_BEFORE.format(tables="'channel'"),
)

# ``bytes`` is the size of a thread's own entries: with it, statistics are a sum over heads. Programs that do not keep it
# must not go on: all of them name the column that is renamed.
_COUNTERS = (
    "ALTER TABLE sessiontree.head ADD COLUMN bytes bigint NOT NULL DEFAULT 0",
    """UPDATE sessiontree.head h SET bytes = own.bytes
    FROM (SELECT tree, owner, namespace, sum(octet_length(body)) AS bytes FROM sessiontree.entry
        GROUP BY tree, owner, namespace) own
    WHERE own.tree = h.tree AND own.owner = h.key AND own.namespace = h.namespace""",
    "ALTER TABLE sessiontree.head RENAME COLUMN stamp TO last_stamp",
    *FUNCTIONS,
)

# Whether a thread is empty changes with its first message only, so an index of it leaves appends their HOT updates.
_EMPTY_THREADS = (
    "ALTER TABLE sessiontree.head ADD COLUMN is_empty boolean GENERATED ALWAYS AS (messages = 0) STORED",
    "CREATE INDEX head_empty ON sessiontree.head (namespace, updated_minute DESC) WHERE is_empty",
)

# Titles are found by their parts of three bytes, as numbers. Before, version 3 made ``thread_title`` with pg_trgm.
TITLE_PARTS = "sessiontree.title_parts(title_folded)"
"""What the index of titles has, in exactly this form: only then the server uses the index."""
_TITLE_PARTS = (
    """CREATE FUNCTION sessiontree.title_parts(title bytea) RETURNS integer[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT coalesce(array_agg(get_byte(title, n) << 16 | get_byte(title, n + 1) << 8 | get_byte(title, n + 2)), '{}')
        FROM generate_series(0, octet_length(title) - 3) n
    $$""",
    "DROP INDEX IF EXISTS sessiontree.thread_title",
    f"CREATE INDEX thread_title_parts ON sessiontree.thread USING gin ({TITLE_PARTS})",
)

MIGRATIONS = (
    Migration(version=1, readable_by=1, statements=_FIRST),
    Migration(version=2, readable_by=1, statements=_BLOBS),
    Migration(version=3, readable_by=1, statements=_DEPARTED),
    Migration(version=4, readable_by=4, statements=_DELETED_THREADS),
    Migration(version=5, readable_by=4, statements=_NEEDS_TITLE),
    # A program that does not know artifacts would delete them.
    Migration(version=6, readable_by=6, statements=_ARTIFACTS),
    Migration(version=7, readable_by=6, statements=(*_READ_INDEXES, *_DOCUMENTS)),
    Migration(version=8, readable_by=8, statements=(*_NAMESPACE_KEYS, *_THREAD_VERSIONS, *_CHANNELS)),
    # A program that does not know the blocks would leave words of erased entries in them.
    Migration(
        version=9,
        readable_by=9,
        statements=(*_FILTER_INDEXES, *SEARCH_BLOCKS, _BIND_AS_BEFORE.format(tables="'search_block'")),
    ),
    Migration(version=10, readable_by=10, statements=_COUNTERS),
    Migration(version=11, readable_by=10, statements=_EMPTY_THREADS),
    Migration(version=12, readable_by=10, statements=(*_TITLE_PARTS, *FUNCTIONS)),
    Migration(version=13, readable_by=10, statements=NO_STATISTICS),
    # Before, a distributed server copied all entries of an append for each of them.
    Migration(version=14, readable_by=10, statements=(WRITE_THREAD,)),
)

# Reads the system catalogue: what a session has cached of it (to_regclass) may be older than the lock it waited for.
_IS_THERE = Statement(
    "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'sessiontree' AND tablename = 'migration')"
)
_VERSION = Statement("SELECT version, readable_by FROM sessiontree.migration ORDER BY version DESC LIMIT 1")


def migrate(place: str, migrations: Sequence[Migration] = MIGRATIONS) -> Steps[None]:
    """Bring the schema to this program's version, under a lock; concurrent callers wait and find nothing to do."""
    if not _missing((yield from _version()), migrations, place):
        return
    yield BEGIN
    # A distributed server then changes the shards of one table after the other, as several changes in one transaction need.
    yield Statement("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
    yield Statement("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": MIGRATION_LOCK})
    for migration in _missing((yield from _version()), migrations, place):
        for sql in migration.statements:
            yield Statement(sql)
        yield Statement(
            "INSERT INTO sessiontree.migration (version, readable_by) VALUES (%(version)s, %(readable_by)s)",
            {"version": migration.version, "readable_by": migration.readable_by},
        )
    yield COMMIT


def _version() -> Steps[Row]:
    ((is_there,),) = yield _IS_THERE
    if not is_there:
        return (0, 0)
    rows = yield _VERSION
    return rows[0] if rows else (0, 0)


def _missing(found: Row, migrations: Sequence[Migration], place: str) -> list[Migration]:
    version, readable_by = found
    known = migrations[-1].version
    if readable_by > known:
        raise NewerFormatError(place, version, known)
    return [migration for migration in migrations if migration.version > version]
