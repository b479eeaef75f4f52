"""PostgreSQL: the same journal for many machines."""

from sessiontree.stores.postgres.options import PostgresOptions
from sessiontree.stores.postgres.store import AsyncPostgresStore, PostgresStore
from sessiontree.stores.postgres.tenancy import bind_role

__all__ = ["AsyncPostgresStore", "PostgresOptions", "PostgresStore", "bind_role"]
