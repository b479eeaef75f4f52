"""Columns with what people wrote, on which the server keeps no statistics.

Statistics are samples of the rows of all namespaces, and estimates from them are shown to everybody (``EXPLAIN``): a role that is
bound to one namespace could find out what another one's rows hold, byte by byte.
"""

from __future__ import annotations

__all__ = ["NO_STATISTICS", "STILL_SAMPLED", "UNSAMPLED"]


def _unsampled(column: str, kind: str) -> str:
    """A change that drops the statistics of a column, as setting its type does, even to what it is, and keeps new ones away."""
    return f"ALTER COLUMN {column} TYPE {kind}, ALTER COLUMN {column} SET STATISTICS 0"


UNSAMPLED = {
    "entry": _unsampled("body", "bytea"),
    "thread": f"{_unsampled('body', 'bytea')}, {_unsampled('title_folded', 'bytea')}",
    "search_block": f"{_unsampled('words', 'text')}, {_unsampled('files', 'text')}",
    # Setting the type also sets the usual way to store it.
    "chunk": f"{_unsampled('body', 'bytea')}, ALTER COLUMN body SET STORAGE EXTERNAL",
    "json_document": _unsampled("body", "bytea"),
}
"""The tables with such columns, and the changes that leave each of them without statistics."""

# A table that is distributed already is refused, and left to ``distribute``.
NO_STATISTICS = tuple(
    f"""DO $$ BEGIN
    ALTER TABLE sessiontree.{table} {changes};
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$"""
    for table, changes in UNSAMPLED.items()
)

STILL_SAMPLED = f"""
SELECT DISTINCT c.relname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'sessiontree'::regnamespace AND c.relname IN ({", ".join(f"'{table}'" for table in UNSAMPLED)})
    AND a.attname IN ('body', 'words') AND coalesce(a.attstattarget, -1) <> 0
ORDER BY c.relname"""
