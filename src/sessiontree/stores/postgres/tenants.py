"""Roles that are bound to a namespace: the server shows them its rows and takes no others from them (row-level security)."""

from __future__ import annotations

import hashlib

import psycopg
from psycopg import sql

from sessiontree.errors import StoreError
from sessiontree.stores.postgres.driver import run_alone
from sessiontree.stores.postgres.errors import translate_error
from sessiontree.stores.postgres.listen import find_channel
from sessiontree.stores.postgres.options import PostgresOptions, conninfo_of, parse_options, place_of
from sessiontree.stores.postgres.schema import TABLES

__all__ = ["bind_role"]

# Where the statements of others look for functions and operators. A schema that is named like a role comes first there. A role
# can become any other that it is a member of.
_MAY_CREATE = """
SELECT found.place FROM pg_catalog.pg_roles r, LATERAL (
    SELECT 'in schema ' || nspname AS place FROM pg_catalog.pg_namespace
    WHERE nspname = ANY(current_schemas(false)) AND has_schema_privilege(r.oid, oid, 'CREATE')
    UNION ALL
    SELECT 'schemas in this database' WHERE has_database_privilege(r.oid, current_database(), 'CREATE')) found
WHERE pg_has_role(%(role)s, r.oid, 'MEMBER')"""


def bind_role(url: str, role: str, namespace: str) -> None:
    """Give an existing role access to the rows of one namespace only. ``url`` must connect as the owner of the tables.

    PostgreSQL enforces it (row-level security), whatever SQL the role sends. Call again to add another namespace. The role must
    be neither a superuser nor the owner of the tables, which see everything. One that may create functions where the
    statements of others find them is refused, because those would run them.
    """
    place = place_of(url)
    conninfo = conninfo_of(parse_options(url)[0], PostgresOptions(), is_durable=True)
    channel = run_alone(lambda: find_channel(namespace), conninfo, iter(()), place)
    try:
        with psycopg.connect(conninfo) as connection:
            _refuse_creators(connection, role, place)
            name = sql.Identifier(role)
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA sessiontree TO {}").format(name))
            connection.execute(sql.SQL("GRANT SELECT ON sessiontree.migration TO {}").format(name))
            for table in TABLES:
                _bind(connection, table, role, namespace, channel)
    except psycopg.Error as error:
        raise translate_error(error, place) from error


def _refuse_creators(connection: psycopg.Connection, role: str, place: str) -> None:
    found = connection.execute(_MAY_CREATE, {"role": role}).fetchone()
    if found is not None:
        raise StoreError(
            place,
            f"the role {role!r} may create objects {found[0]}, which statements of other tenants would run; revoke that"
            " from it and from PUBLIC, for example by REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        )


def _bind(connection: psycopg.Connection, table: str, role: str, namespace: str, channel: str) -> None:
    values = {
        "table": sql.Identifier("sessiontree", table),
        "role": sql.Identifier(role),
        "policy": sql.Identifier(_policy(role, channel)),
        "namespace": sql.Literal(namespace),
    }
    connection.execute(sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}").format(**values))
    for old in (*_earlier_policies(role, namespace), _policy(role, channel)):
        connection.execute(sql.SQL("DROP POLICY IF EXISTS {old} ON {table}").format(**values, old=sql.Identifier(old)))
    statement = """CREATE POLICY {policy} ON {table} TO {role}
        USING (namespace = {namespace}) WITH CHECK (namespace = {namespace})"""
    connection.execute(sql.SQL(statement).format(**values))


def _policy(role: str, channel: str) -> str:
    """The name of a policy. All roles can read it, so it must not say which namespace it is about, nor let it be guessed.

    The channel of a namespace is known to its own roles only.
    """
    return f"sessiontree {_digest(role, channel)}"


def _earlier_policies(role: str, namespace: str) -> tuple[str, ...]:
    """The names of policies that earlier releases made."""
    words = f"{role} in {namespace}"
    return (f"sessiontree {_digest(role, namespace)}", *([words] if len(words.encode()) <= _MAX_NAME_BYTES else []))


_MAX_NAME_BYTES = 63


def _digest(role: str, words: str) -> str:
    return hashlib.sha256(f"{role}\0{words}".encode()).hexdigest()[:32]
