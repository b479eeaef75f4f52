"""The PostgreSQL store: one journal for many machines."""

from sessiontree.stores.postgres.distribution import Distribution, distribute
from sessiontree.stores.postgres.options import PostgresOptions
from sessiontree.stores.postgres.store import AsyncPostgresStore, PostgresStore
from sessiontree.stores.postgres.tenants import bind_role

__all__ = ["AsyncPostgresStore", "Distribution", "PostgresOptions", "PostgresStore", "bind_role", "distribute"]
