"""The part of the schema that searches use: blocks of entries and their words."""

from __future__ import annotations

from sessiontree.stores.rules.state import ERASED_BODY

__all__ = ["LEXEMES", "SEARCH_BLOCKS"]


LEXEMES = "array_to_tsvector(string_to_array(words, ' '))"
"""The words of a block as the index has them, in exactly this form. As text they take half the room."""

# A block without words is searched directly: it has too many, or it ``is_stale``, because entries were erased since.
_TABLE = """
CREATE TABLE sessiontree.search_block (
    tree uuid NOT NULL,
    owner bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    namespace text NOT NULL,
    oldest_ns bigint NOT NULL,
    newest_ns bigint NOT NULL,
    is_stale boolean NOT NULL,
    roles text NOT NULL,
    tools text NOT NULL,
    models text NOT NULL,
    files text NOT NULL,
    words text,
    PRIMARY KEY (tree, owner, first_seq, namespace)
)"""

# An erasure or a delete locks all heads of its tree. So the words are only stored if the ``p_entries`` that they were read
# from still have their contents, and none of them loses it before the commit.
_PUT = f"""
CREATE FUNCTION sessiontree.put_search_block(
    p_tree uuid, p_namespace text, p_owner bigint, p_first bigint, p_last bigint, p_entries bigint, p_oldest bigint,
    p_newest bigint, p_roles text, p_tools text, p_models text, p_files text, p_words text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sessiontree.head h WHERE h.tree = p_tree AND h.namespace = p_namespace ORDER BY h.id FOR KEY SHARE;
    IF p_entries = (SELECT count(*) FROM sessiontree.entry e WHERE e.tree = p_tree AND e.namespace = p_namespace
            AND e.owner = p_owner AND e.seq BETWEEN p_first AND p_last AND e.body <> decode('{ERASED_BODY.hex()}', 'hex')) THEN
        INSERT INTO sessiontree.search_block AS b
        VALUES (p_tree, p_owner, p_first, p_last, p_namespace, p_oldest, p_newest, false, p_roles, p_tools, p_models,
            p_files, p_words)
        ON CONFLICT (tree, owner, first_seq, namespace) DO UPDATE SET last_seq = excluded.last_seq,
            oldest_ns = excluded.oldest_ns, newest_ns = excluded.newest_ns, is_stale = false, roles = excluded.roles,
            tools = excluded.tools, models = excluded.models, files = excluded.files, words = excluded.words
        WHERE b.last_seq <= excluded.last_seq;
        UPDATE sessiontree.head h SET indexed_seq = p_last
        WHERE h.tree = p_tree AND h.namespace = p_namespace AND h.key = p_owner AND h.indexed_seq < p_last;
    END IF;
END $$"""

SEARCH_BLOCKS = (
    "DROP TABLE sessiontree.document",
    _TABLE,
    f"CREATE INDEX search_block_words ON sessiontree.search_block USING gin (({LEXEMES}))",
    "CREATE INDEX search_block_newest ON sessiontree.search_block (namespace, newest_ns DESC)",
    "CREATE INDEX search_block_direct ON sessiontree.search_block (namespace) WHERE words IS NULL",
    "ALTER TABLE sessiontree.search_block ALTER COLUMN tree SET STATISTICS 0",
    "ALTER TABLE sessiontree.search_block ENABLE ROW LEVEL SECURITY",
    _PUT,
    "UPDATE sessiontree.head SET indexed_seq = key WHERE indexed_seq > key",
    "UPDATE sessiontree.deleted_thread SET is_indexed = false WHERE is_indexed",
    "DELETE FROM sessiontree.horizon",
)
