"""Tenants: a role that is bound to one namespace can neither read nor write another one's rows."""

from __future__ import annotations

import hashlib

import psycopg
from psycopg import sql

from sessiontree.stores.postgres.faults import in_our_words
from sessiontree.stores.postgres.options import PostgresOptions, conninfo_of, parse_options, place_of
from sessiontree.stores.postgres.schema import TABLES

__all__ = ["bind_role"]

_LONGEST_NAME = 63


def bind_role(url: str, role: str, namespace: str) -> None:
    """Give an existing role the rows of one namespace and nothing else. ``url`` must be the tables' owner's.

    PostgreSQL itself keeps the rows apart (row-level security), whatever SQL the role sends. A role may be bound to
    several namespaces; call again for each. The role must be neither superuser nor owner of the tables, for those see
    everything.
    """
    conninfo = conninfo_of(parse_options(url)[0], PostgresOptions(), is_durable=True)
    name = sql.Identifier(role)
    try:
        with psycopg.connect(conninfo) as connection:
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA sessiontree TO {}").format(name))
            connection.execute(sql.SQL("GRANT SELECT ON sessiontree.migration TO {}").format(name))
            for table in TABLES:
                _bind(connection, table, role, namespace)
    except psycopg.Error as error:
        raise in_our_words(error, place_of(url)) from error


def _policy(role: str, namespace: str) -> str:
    """A name for each pair, however long the two are: PostgreSQL cuts names after 63 bytes."""
    words = f"{role} in {namespace}"
    if len(words.encode()) <= _LONGEST_NAME:
        return words
    return "sessiontree " + hashlib.sha256(f"{role}\0{namespace}".encode()).hexdigest()[:32]


def _bind(connection: psycopg.Connection, table: str, role: str, namespace: str) -> None:
    place = sql.Identifier("sessiontree", table)
    policy = sql.Identifier(_policy(role, namespace))
    values = {"table": place, "role": sql.Identifier(role), "policy": policy, "namespace": sql.Literal(namespace)}
    for statement in (
        "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}",
        "DROP POLICY IF EXISTS {policy} ON {table}",
        """CREATE POLICY {policy} ON {table} TO {role}
        USING (namespace = {namespace}) WITH CHECK (namespace = {namespace})""",
    ):
        connection.execute(sql.SQL(statement).format(**values))
