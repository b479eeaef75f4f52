"""ggcode's records and our entries, in both directions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from sessiontree.formats import gojson
from sessiontree.formats.ggcode import wire
from sessiontree.formats.ggcode.messages import payload_of, wire_message
from sessiontree.model import Custom, Event, Message, Payload, ThreadInfo, Usage, UsageReport

__all__ = ["META_FIELDS", "RECORD", "payload_of_record", "wire_record"]

RECORD = "ggcode.record"
"""Name of a custom entry for a record that has no meaning here."""

META_FIELDS = ("workspace", "vendor", "endpoint", "model", "tunnel_events_complete")


def payload_of_record(record: wire.Record) -> Payload:
    """Our payload for every type but a checkpoint, which needs to know what came before it."""
    match record.type:
        case "message" if record.message is not None:
            return payload_of(record.message)
        case "tunnel_event" if record.tunnel_event is not None:
            return _event(record.tunnel_event)
        case "cost" if bytes(record.cost):
            return _usage(record.cost)
        case "meta":
            return _info(record)
        case _:
            return Custom(name=RECORD, data={"type": record.type})


def _event(event: wire.TunnelEvent) -> Event:
    data = msgspec.json.decode(event.data) if bytes(event.data) else None
    return Event(name=event.type, stream=event.stream_id, event_id=event.event_id, data=data)


def _usage(cost: Raw) -> UsageReport:
    """The record is the host's own; what it calls dollars is the cost."""
    facts = msgspec.json.decode(cost)
    dollars = facts.get("usd") if isinstance(facts, dict) else None
    amount = float(dollars) if isinstance(dollars, int | float) and abs(dollars) < 1e300 else None
    usage = Usage() if amount is None else Usage(cost=amount, currency="USD")
    return UsageReport(usage=usage, metadata={"cost": facts})


def _info(record: wire.Record) -> ThreadInfo:
    given: dict[str, Any] = {name: value for name in META_FIELDS if (value := getattr(record, name))}
    times = {"created_at": record.created_at, "updated_at": record.updated_at}
    return ThreadInfo(text=record.title, metadata={**given, **times})


def wire_record(payload: Payload, session_id: str) -> wire.Record | None:
    """ggcode's record for an entry; ``None`` for what it has none for."""
    message: Message | None = getattr(payload, "message", None)
    if message is not None:
        record = wire.bare("message", session_id)
        record.message = wire_message(message)
        return record
    match payload:
        case ThreadInfo() if "created_at" in payload.metadata:
            given = {name: payload.metadata[name] for name in META_FIELDS if name in payload.metadata}
            return wire.Record(
                type="meta",
                session_id=session_id,
                title=payload.text,
                created_at=payload.metadata["created_at"],
                updated_at=payload.metadata["updated_at"],
                **given,
            )
        case Event():
            record = wire.bare("tunnel_event", session_id)
            data = wire.NO_RAW if payload.data is None else Raw(gojson.encode_plain(payload.data))
            record.tunnel_event = wire.TunnelEvent(
                event_id=payload.event_id, stream_id=payload.stream, type=payload.name, data=data
            )
            return record
        case UsageReport():
            record = wire.bare("cost", session_id)
            record.cost = Raw(gojson.encode_plain(payload.metadata.get("cost") or {"usd": payload.usage.cost}))
            return record
        case _:
            return None
