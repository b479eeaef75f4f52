"""The PostgreSQL store: one journal for many machines."""

from sessiontree.stores.postgres.distribution import Distribution, distribute
from sessiontree.stores.postgres.options import PostgresOptions, bind_role
from sessiontree.stores.postgres.store import AsyncPostgresStore, PostgresStore

__all__ = ["AsyncPostgresStore", "Distribution", "PostgresOptions", "PostgresStore", "bind_role", "distribute"]
