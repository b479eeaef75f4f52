"""The table of ZimaOS-Blue and the JSON in it."""

from __future__ import annotations

import msgspec

__all__ = ["COLUMNS", "SCHEMA", "STATES", "Metadata"]

STATES = ("active", "idle", "compacting", "suspended", "archived")
"""Names of the states by their number."""

COLUMNS = (
    "id", "agent_id", "channel_id", "peer_id", "thread_id", "state", "metadata", "messages", "system_prompt",
    "created_at", "updated_at", "last_active_at", "compacted_at",
)  # fmt: skip

SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    thread_id TEXT,
    state INTEGER NOT NULL DEFAULT 0,
    metadata TEXT,
    messages TEXT,
    system_prompt TEXT,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    last_active_at DATETIME NOT NULL,
    compacted_at DATETIME
);
CREATE INDEX idx_sessions_agent ON sessions(agent_id);
CREATE INDEX idx_sessions_channel ON sessions(channel_id);
CREATE INDEX idx_sessions_peer ON sessions(peer_id);
CREATE INDEX idx_sessions_state ON sessions(state);
CREATE INDEX idx_sessions_last_active ON sessions(last_active_at);
"""


class Metadata(msgspec.Struct, omit_defaults=True, kw_only=True):
    title: str = ""
    summary: str = ""
    tags: list[str] = []
    custom_data: dict[str, str] = {}
    message_count: int
    token_count: int
    compaction_count: int
