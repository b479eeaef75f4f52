"""Columns with what people wrote, on which the server keeps no statistics.

Statistics are samples of the rows of all namespaces, and estimates from them are shown to everybody (``EXPLAIN``): a role that is
bound to one namespace could find out what another one's rows hold, byte by byte.
"""

from __future__ import annotations

__all__ = ["NO_STATISTICS", "STILL_SAMPLED", "UNSAMPLED", "UNSAMPLED_TITLES"]


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
    # Whoever knows the channel of a namespace can listen to it.
    "channel": _unsampled("name", "text"),
}
"""The tables with such columns, and the changes that leave each of them without statistics."""

UNSAMPLED_TITLES = """DO $index$ DECLARE part record; BEGIN
    FOR part IN SELECT a.attrelid::regclass AS index, a.attnum AS number
        FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indexrelid
        WHERE i.indrelid = '%s'::regclass AND i.indkey[a.attnum - 1] = 0
    LOOP
        EXECUTE 'ALTER INDEX ' || part.index || ' ALTER COLUMN ' || part.number || ' SET STATISTICS 0';
    END LOOP;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $index$"""
"""The same for the parts of titles: an index of an expression is sampled by itself, whatever is said of its columns."""

# A table that is distributed already is refused, and left to ``distribute``.
NO_STATISTICS = (
    *(
        f"""DO $$ BEGIN
    ALTER TABLE sessiontree.{table} {changes};
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$"""
        for table, changes in UNSAMPLED.items()
    ),
    UNSAMPLED_TITLES % "sessiontree.thread",
)

STILL_SAMPLED = f"""
SELECT c.relname FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'sessiontree'::regnamespace AND c.relname IN ({", ".join(f"'{table}'" for table in UNSAMPLED)})
    AND EXISTS (
        SELECT FROM pg_catalog.pg_attribute a WHERE coalesce(a.attstattarget, -1) <> 0 AND (
            a.attrelid = c.oid AND a.attname IN ('body', 'words', 'name')
            OR c.relname = 'thread' AND a.attrelid IN (
                SELECT i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indkey[a.attnum - 1] = 0)))
ORDER BY c.relname"""
