"""The newer message rows of OpenCode in the shape of the older ones: an info and parts."""

from __future__ import annotations

from sessiontree.transfer.formats._wire import Json, mapping, objects, text

__all__ = ["message_of"]


def message_of(row: Json, data: Json) -> tuple[Json, list[Json]]:
    """The info and the parts of a row."""
    kind = text(row.get("type")) or text(data.get("type"))
    time = data.get("time") or {"created": row.get("time_created")}
    info: Json = {"id": text(row.get("id")), "time": time, "raw": data, "type": kind}
    match kind:
        case "user":
            return {**info, "role": "user"}, [_text(data), *objects(data.get("files"))]
        case "synthetic" | "system":
            return {**info, "role": "user"}, [{**_text(data), "synthetic": True}]
        case "shell":
            words = f"$ {text(data.get('command'))}\n{text(data.get('output'))}"
            return {**info, "role": "user"}, [{"type": "text", "text": words}]
        case "compaction":
            summary = {"type": "text", "text": text(data.get("summary"))}
            return {**info, "role": "assistant", "summary": True}, [summary]
        case "assistant":
            model = mapping(data.get("model"))
            facts = {"modelID": model.get("id") or model.get("modelID"), "providerID": model.get("providerID")}
            facts |= {name: data.get(name) for name in ("tokens", "cost", "finish", "error")}
            return {**info, **facts, "role": "assistant"}, [_part(part) for part in objects(data.get("content"))]
        case "agent-switched" | "model-switched":
            return {**info, "role": "user"}, [{"type": "agent"}]
        case _:
            return {**info, "role": kind}, []


def _text(data: Json) -> Json:
    return {"type": "text", "text": text(data.get("text"))}


def _part(part: Json) -> Json:
    if part.get("type") != "tool":
        return part
    state = mapping(part.get("state"))
    said = "\n".join(text(block.get("text")) for block in objects(state.get("content")))
    state = {"output": said, **state} if said else state
    return {
        **part,
        "callID": text(part.get("callID") or part.get("id")),
        "tool": text(part.get("tool") or part.get("name")),
        "state": state,
    }
