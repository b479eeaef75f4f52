"""The functions of the schema: a write to one thread is one call, which a distributed server runs where the thread is.

They know no rules. They check what the caller took for granted and write what it decided, or write nothing and return
the thread as it is, so that the caller can decide again or say why not.

A function that changes is created again by a new migration: a database that has the old one gets it no other way.
"""

from __future__ import annotations

__all__ = ["FUNCTIONS", "WRITE_THREAD"]

# The columns of ``rows.STATE_COLUMNS``, and of ``NODE_COLUMNS`` and ``ENTRY_COLUMNS`` for entries that were asked for, as
# JSON: a refusal is rare, and a row of 37 columns would make every append slower.
#
# With ``p_lock`` the transaction waits for the synchronous standby: one that finds its work done must wait as the one
# that did it should have.
_THREAD_NOW = """
CREATE OR REPLACE FUNCTION sessiontree.thread_now(
    p_tree uuid, p_namespace text, p_thread bytea, p_given bytea[], p_lock boolean, OUT state json, OUT entries json
) LANGUAGE plpgsql AS $$
BEGIN
    IF p_lock THEN
        PERFORM 1 FROM sessiontree.head h WHERE h.tree = p_tree AND h.id = p_thread AND h.namespace = p_namespace
        FOR NO KEY UPDATE;
    END IF;
    SELECT json_build_array(h.tree, h.key, h.updated_ns, h.fence, h.moves, h.seq, h.last_stamp, h.version, t.body,
        h.lease_token, h.lease_turn, h.lease_owner, h.lease_created_ns, h.lease_expires_ns,
        h.leaf, h.depth, h.messages, h.tokens, b.id, b.owner, b.parent, b.depth, b.messages, b.tokens)
    FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = h.tree AND t.id = h.id AND t.namespace = h.namespace
    LEFT JOIN sessiontree.entry b ON b.tree = h.tree AND b.id = t.base AND b.namespace = h.namespace
    WHERE h.tree = p_tree AND h.id = p_thread AND h.namespace = p_namespace
    INTO state;
    IF p_given IS NOT NULL THEN
        SELECT json_agg(json_build_array(e.id, e.owner, e.parent, e.depth, e.messages, e.tokens,
            e.id, e.owner, e.parent, e.created_ns, e.turn_id, e.body, e.seq))
        FROM sessiontree.entry e WHERE e.tree = p_tree AND e.id = ANY(p_given) AND e.namespace = p_namespace
        INTO entries;
    END IF;
END $$"""

_RESULT = """
    OUT previous_leaf bytea, OUT key bigint, OUT version bigint, OUT to_notify boolean, OUT state json,
    OUT entries json"""

# ``if_…`` must hold unless it is NULL; ``if_leaf`` is a list of one, because the leaf may be NULL itself. None of the
# entries ``p_given`` may exist.
_CONDITIONS = """h.tree = p_tree AND h.id = p_thread AND h.namespace = p_namespace
        AND (if_leaf IS NULL OR h.leaf IS NOT DISTINCT FROM if_leaf[1])
        AND (if_token IS NULL OR h.lease_token = if_token)
        AND (if_titled IS NULL OR NOT h.needs_title)"""
_REFUSE = """SELECT n.state, n.entries FROM sessiontree.thread_now(p_tree, p_namespace, p_thread, p_given, true) n
            INTO state, entries;
        RETURN;"""
_REFUSE_GIVEN = f"""IF p_given IS NOT NULL THEN
        PERFORM 1 FROM sessiontree.entry e WHERE e.tree = p_tree AND e.id = ANY(p_given) AND e.namespace = p_namespace;
        IF FOUND THEN
            {_REFUSE}
        END IF;
    END IF;"""
# Watchers listen to the coordinator. A call that it sent to another node cannot notify them: ``to_notify`` says so.
_DONE = """to_notify := watched > now();
    IF to_notify AND current_setting('application_name') NOT LIKE 'citus_internal%' THEN
        PERFORM pg_notify(p_channel, p_tree || ':' || key);
        to_notify := false;
    END IF;"""
# Single variables: a record of all columns takes longer to fill and to read.
_GROWN = """
    new_seq bigint;
    new_depth bigint;
    new_messages bigint;
    new_tokens bigint;
    watched timestamptz;"""
_RETURNING = "h.previous_leaf, h.key, h.version, h.seq, h.depth, h.messages, h.tokens, h.watched_until"
_INTO = "previous_leaf, key, version, new_seq, new_depth, new_messages, new_tokens, watched"
_MINUTE = "date_part('epoch', now())::bigint / 60"

_APPEND_ENTRY = f"""
CREATE OR REPLACE FUNCTION sessiontree.append_entry(
    p_tree uuid, p_namespace text, p_thread bytea, p_channel text,
    if_leaf bytea[], if_token bigint, if_titled boolean, p_given bytea[],
    p_id bytea, p_messages bigint, p_tokens bigint, p_created_ns bigint, p_turn bytea, p_body bytea, {_RESULT}
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE{_GROWN}
BEGIN
    {_REFUSE_GIVEN}
    UPDATE sessiontree.head h SET
        version = h.version + 1,
        previous_leaf = h.leaf,
        leaf = p_id,
        seq = h.seq + 1,
        bytes = h.bytes + octet_length(p_body),
        depth = h.depth + 1,
        messages = h.messages + p_messages,
        tokens = h.tokens + p_tokens,
        updated_ns = greatest(h.updated_ns, p_created_ns),
        updated_minute = greatest(h.updated_ns, p_created_ns) / 60000000000,
        touched_minute = {_MINUTE}
    WHERE {_CONDITIONS}
    RETURNING {_RETURNING} INTO {_INTO};
    IF NOT FOUND THEN
        {_REFUSE}
    END IF;
    INSERT INTO sessiontree.entry (tree, owner, seq, namespace, id, parent, depth, messages, tokens, created_ns, turn_id,
        body)
    VALUES (p_tree, key, new_seq, p_namespace, p_id, previous_leaf, new_depth, new_messages,
        new_tokens, p_created_ns, p_turn, p_body);
    {_DONE}
END $$"""

# - Entries are given by ``p_words`` (id, parent, turn, body of each) and ``p_numbers`` (depth, messages, tokens, time),
#   counters as what is added to those of the head: so a caller need not know the head to append. The parent of the first
#   one is the leaf if ``p_under_leaf``.
# - A caller that knows the thread (``if_version``) also gives the new leaf and ``p_head`` (depth, messages and tokens
#   added, time). Otherwise the last entry gives both.
# - ``p_meta`` are the words of the thread's row in their order, and its body.
# - ``p_reason`` is that of a move to ``p_moved_to``, ``p_move`` its time and its tops (undo, redo, redo_below).
WRITE_THREAD = f"""
CREATE OR REPLACE FUNCTION sessiontree.write_thread(
    p_tree uuid, p_namespace text, p_thread bytea, p_channel text,
    if_leaf bytea[], if_token bigint, if_titled boolean, p_given bytea[],
    p_under_leaf boolean, p_words bytea[], p_numbers bigint[],
    if_version bigint, p_stamp bigint, p_leaf bytea, p_head bigint[],
    p_meta bytea[], p_is_archived boolean, p_tags bytea[], p_needs_title boolean,
    p_reason text, p_moved_to bytea, p_move bigint[], {_RESULT}
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE{_GROWN}
    new_move bigint;
    entry_id bytea;
    entry_parent bytea;
    entry_turn bytea;
    entry_body bytea;
    entry_created_ns bigint;
    entry_depth bigint;
    entry_messages bigint;
    entry_tokens bigint;
    p_count integer := cardinality(p_words) / 4;
    p_bytes bigint := 0;
    p_minute bigint := CASE WHEN p_count > 0 THEN {_MINUTE} END;
BEGIN
    {_REFUSE_GIVEN}
    IF if_version IS NULL THEN
        p_leaf := p_words[4 * p_count - 3];
        p_head := p_numbers[4 * p_count - 3:];
    END IF;
    FOR n IN 1..p_count LOOP
        p_bytes := p_bytes + octet_length(p_words[4 * n]);
    END LOOP;
    UPDATE sessiontree.head h SET
        version = h.version + 1,
        last_stamp = coalesce(p_stamp, h.last_stamp),
        previous_leaf = h.leaf,
        leaf = p_leaf,
        seq = h.seq + p_count,
        bytes = h.bytes + p_bytes,
        depth = h.depth + p_head[1],
        messages = h.messages + p_head[2],
        tokens = h.tokens + p_head[3],
        updated_ns = greatest(CASE WHEN if_version IS NULL THEN h.updated_ns END, p_head[4]),
        updated_minute = greatest(CASE WHEN if_version IS NULL THEN h.updated_ns END, p_head[4]) / 60000000000,
        touched_minute = coalesce(p_minute, h.touched_minute),
        moves = h.moves + CASE WHEN p_reason IS NULL THEN 0 ELSE 1 END,
        needs_title = coalesce(p_needs_title, h.needs_title)
    WHERE {_CONDITIONS}
        AND (if_version IS NULL OR h.version = if_version)
    RETURNING {_RETURNING}, h.moves INTO {_INTO}, new_move;
    IF NOT FOUND THEN
        {_REFUSE}
    END IF;
    -- One row at a time: a distributed server would write several by COPY, which no bound role may use. By single values:
    -- it would copy the arrays for each row.
    FOR n IN 1..p_count LOOP
        entry_id := p_words[4 * n - 3];
        entry_parent := CASE WHEN p_under_leaf AND n = 1 THEN previous_leaf ELSE p_words[4 * n - 2] END;
        entry_turn := p_words[4 * n - 1];
        entry_body := p_words[4 * n];
        entry_depth := new_depth - p_head[1] + p_numbers[4 * n - 3];
        entry_messages := new_messages - p_head[2] + p_numbers[4 * n - 2];
        entry_tokens := new_tokens - p_head[3] + p_numbers[4 * n - 1];
        entry_created_ns := p_numbers[4 * n];
        INSERT INTO sessiontree.entry (tree, owner, seq, namespace, id, parent, depth, messages, tokens, created_ns,
            turn_id, body)
        VALUES (p_tree, key, new_seq - p_count + n, p_namespace, entry_id, entry_parent, entry_depth, entry_messages,
            entry_tokens, entry_created_ns, entry_turn, entry_body);
    END LOOP;
    IF p_meta IS NOT NULL THEN
        UPDATE sessiontree.thread t SET is_archived = p_is_archived, title_folded = p_meta[1], workspace = p_meta[2],
            vendor = p_meta[3], model = p_meta[4], agent = p_meta[5], channel = p_meta[6], peer = p_meta[7],
            key_thread = p_meta[8], state = p_meta[9], status = p_meta[10], parent_thread = p_meta[11],
            forked_from_thread = p_meta[12], body = p_meta[13], tags = p_tags
        WHERE t.tree = p_tree AND t.id = p_thread AND t.namespace = p_namespace;
    END IF;
    IF p_reason IS NOT NULL THEN
        INSERT INTO sessiontree.move (tree, thread, number, namespace, from_entry, to_entry, reason, at_ns, undo, redo,
            redo_below)
        VALUES (p_tree, key, new_move, p_namespace, previous_leaf, p_moved_to, p_reason, p_move[1],
            p_move[2], p_move[3], p_move[4]);
    END IF;
    {_DONE}
END $$"""

FUNCTIONS = (_THREAD_NOW, _APPEND_ENTRY, WRITE_THREAD)
