"""The tables over several nodes (Citus): which column each is distributed by, and what is not where it belongs."""

from __future__ import annotations

import psycopg
from msgspec.structs import replace
from psycopg import sql

from sessiontree.errors import InvalidInputError, StoreError
from sessiontree.model._base import Record
from sessiontree.stores.postgres.errors import translate_error
from sessiontree.stores.postgres.options import PostgresOptions, conninfo_of, parse_options, place_of
from sessiontree.stores.postgres.schema import MIGRATION_LOCK
from sessiontree.stores.postgres.steps import Statement, Steps
from sessiontree.stores.postgres.unsampled import STILL_SAMPLED, UNSAMPLED, UNSAMPLED_TITLES

__all__ = ["DISTRIBUTED_BY", "Distribution", "distribute", "misplaced"]

FIRST = "head"
"""The table that all rows of a tree are placed with."""

_BY_TREE = ("head", "thread", "entry", "move", "deleted_thread", "search_block", "checkpoint", "artifact")
DISTRIBUTED_BY = {
    **dict.fromkeys(_BY_TREE, "tree"),
    "home": "id",
    "blob": "hash",
    "chunk": "pack",
    "pending_artifact": "hash",
    "json_document": "scope",
    "horizon": "namespace",
    "channel": "namespace",
}
"""The column that each table is distributed by. ``migration`` and ``stock`` stay on the coordinator."""

# Locks on a node end with the commit there, before other nodes have committed; those on the coordinator end after all of them.
_LOCKS = "stock"

_BY_TREE_FUNCTIONS = ("append_entry", "write_thread", "thread_now")

# From 12.1.11 and 13.2.1 on, Citus plans a statement of a function again for every call, and keeps every one of these plans:
# a node's process grew by 144 kB with each append. Plans that are made for one call are dropped with it.
_PLANS = "plan_cache_mode=force_custom_plan"

_HAS_CITUS = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'citus')"
_EXISTING_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'sessiontree'"
_PLACED_TABLES = """
SELECT c.relname FROM pg_catalog.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = 'sessiontree'::regnamespace AND p.partmethod = 'h'"""
_EXISTING_FUNCTIONS = "SELECT proname FROM pg_catalog.pg_proc WHERE pronamespace = 'sessiontree'::regnamespace"
_PLACED_FUNCTIONS = f"""
SELECT f.proname FROM pg_catalog.pg_dist_object o JOIN pg_catalog.pg_proc f ON f.oid = o.objid
WHERE f.pronamespace = 'sessiontree'::regnamespace AND o.classid = 'pg_catalog.pg_proc'::regclass
    AND o.distribution_argument_index IS NOT NULL AND '{_PLANS}' = ANY(f.proconfig)"""
_CREATE_TABLE = """
SELECT create_distributed_table(%(table)s::regclass, %(column)s, colocate_with => %(with)s, shard_count => %(shards)s)"""
_ON_SHARDS = "SELECT shardid, success, result FROM run_command_on_shards(%(table)s::regclass, %(changes)s)"
_SET_PLANS = f"ALTER FUNCTION sessiontree.{{name}} SET {_PLANS}"
_CREATE_FUNCTION = """
SELECT create_distributed_function(oid::regprocedure, 'p_tree', colocate_with => 'sessiontree.head')
FROM pg_catalog.pg_proc WHERE pronamespace = 'sessiontree'::regnamespace AND proname = %(name)s"""


class Distribution(Record, frozen=True, kw_only=True):
    """What ``distribute`` changed: the tables and functions that it placed or set. Empty if everything was as it should be."""

    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


def distribute(url: str, shards: int = 64) -> Distribution:
    """Spread the tables over the nodes of a Citus cluster. ``url`` must connect to its coordinator as their owner.

    All rows of a tree are on one node. Open the store once before, so that its tables exist. Rows that exist are moved, and
    writers wait meanwhile. Tables and functions that are in their place are left alone, so it can be repeated at any
    time, and is repeated after an upgrade: tables that it added are on the coordinator until then, and functions and columns
    that it changed are without their settings.
    """
    if not 1 <= shards <= _MAX_SHARDS:
        raise InvalidInputError(f"shards must be between 1 and {_MAX_SHARDS}, not {shards}")
    place = place_of(url)
    conninfo = conninfo_of(parse_options(url)[0], PostgresOptions(), is_durable=True)
    try:
        with psycopg.connect(conninfo) as connection:
            done = _distribute(connection, place, shards)
        with psycopg.connect(conninfo, autocommit=True) as connection:
            return replace(done, tables=(*done.tables, *_stop_sampling(connection, place)))
    except psycopg.Error as error:
        raise translate_error(error, place) from error


_MAX_SHARDS = 64_000


def _distribute(connection: psycopg.Connection, place: str, shards: int) -> Distribution:
    if connection.execute(_HAS_CITUS).fetchone() != (True,):
        raise StoreError(place, "has no Citus: run CREATE EXTENSION citus on every node and add the workers first")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
    connection.execute("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
    existing = {row[0] for row in connection.execute(_EXISTING_TABLES)}
    if not existing:
        raise StoreError(place, "has no tables yet: open the store once before")
    placed = {row[0] for row in connection.execute(_PLACED_TABLES)}
    tables = [table for table in DISTRIBUTED_BY if table in existing - placed]
    for table in tables:
        name = f"sessiontree.{table}"
        is_with_head = DISTRIBUTED_BY[table] == "tree" and table != FIRST
        connection.execute(
            _CREATE_TABLE,
            {
                "table": name,
                "column": DISTRIBUTED_BY[table],
                "with": f"sessiontree.{FIRST}" if is_with_head else "none",
                "shards": None if is_with_head else shards,
            },
        )
        statement = sql.SQL("SELECT truncate_local_data_after_distributing_table({})")
        connection.execute(statement.format(sql.Literal(name)))
    if _LOCKS in placed:
        connection.execute("SELECT undistribute_table(%s)", (f"sessiontree.{_LOCKS}",))
        tables.append(_LOCKS)
    distributed = {row[0] for row in connection.execute(_PLACED_FUNCTIONS)}
    known = {row[0] for row in connection.execute(_EXISTING_FUNCTIONS)}
    functions = [name for name in _BY_TREE_FUNCTIONS if name in known - distributed]
    for name in functions:
        connection.execute(sql.SQL(_SET_PLANS).format(name=sql.Identifier(name)))
        connection.execute(_CREATE_FUNCTION, {"name": name})
    return Distribution(tables=tuple(tables), functions=tuple(functions))


def _stop_sampling(connection: psycopg.Connection, place: str) -> list[str]:
    """Drop the statistics that shards have on what people wrote; only tables of an earlier release have some."""
    tables: list[str] = [row[0] for row in connection.execute(STILL_SAMPLED)]
    for table in tables:
        _on_shards(connection, place, table, f"ALTER TABLE %s {UNSAMPLED[table]}")
        if table == "thread":
            _on_shards(connection, place, table, UNSAMPLED_TITLES)
    return tables


def _on_shards(connection: psycopg.Connection, place: str, table: str, change: str) -> None:
    """Change the shards of a table, and the empty table of the coordinator, from which new shards are made."""
    for _, is_done, answer in connection.execute(_ON_SHARDS, {"table": f"sessiontree.{table}", "changes": change}):
        if not is_done:
            raise StoreError(place, f"the statistics of {table} stay on a shard ({answer}); run distribute again")
    with connection.transaction():
        connection.execute("SET LOCAL citus.enable_ddl_propagation TO off")
        connection.execute((change % f"sessiontree.{table}").encode())


def misplaced() -> Steps[list[str]]:
    """The tables and functions that are not as ``distribute`` leaves them although others are distributed."""
    ((has_citus,),) = yield Statement(_HAS_CITUS)
    if not has_citus:
        return []
    tables = {row[0] for row in (yield Statement(_PLACED_TABLES))}
    if not tables:
        return []
    functions = {row[0] for row in (yield Statement(_PLACED_FUNCTIONS))}
    sampled = {row[0] for row in (yield Statement(STILL_SAMPLED))}
    return sorted({*DISTRIBUTED_BY, *_BY_TREE_FUNCTIONS} - tables - functions | sampled | tables & {_LOCKS})
