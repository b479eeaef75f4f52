"""The ``chatgpt`` format: ChatGPT's data export, with every branch of every conversation."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from sessiontree.model import (
    Custom,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    SystemMessage,
    TextPart,
    UserMessage,
)
from sessiontree.transfer.formats._archive import Assets, documents
from sessiontree.transfer.formats._messages import answer, parents_first
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, records_in
from sessiontree.transfer.formats._wire import Json, array, as_text, first_text, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


def _recognises(head: Head) -> bool:
    if head.is_zip:
        return any(b'"mapping"' in start for start in head.members("conversations"))
    return head.is_json and head.has("mapping") and (head.has("current_node") or head.has("children", "parent"))


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    with Assets(path) as assets:
        for place, document in documents(path, "conversations", tally):
            found = [document] if isinstance(document, dict) else records_in(document, place, tally)
            for conversation in found:
                if isinstance(conversation.get("mapping"), dict):
                    yield _session(place, conversation, assets, tally)
                else:
                    name = first_text(conversation, "title", "conversation_id", "id") or as_text(conversation)[:80]
                    tally.note("damage", str(place), f"the conversation {name!r} has no messages; it was left out")


_format = FileFormat(_recognises, _read, "*.json", "*.zip")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _session(place: Path, wire: Json, assets: Assets, tally: Tally) -> ImportedSession:
    name = first_text(wire, "conversation_id", "id")
    recorder = Recorder(place, tally, id=name or place.stem, created_ns=when(wire.get("create_time")) or 0)
    recorder.title = text(wire.get("title"))
    recorder.model = text(wire.get("default_model_slug"))
    recorder.provider = "openai"
    recorder.is_archived = wire.get("is_archived") is True
    facts = {"gpt": wire.get("gizmo_id"), "project": wire.get("conversation_template_id")}
    recorder.custom |= {key: value for key, value in facts.items() if isinstance(value, str) and value}
    recorder.origin["raw"] = {key: value for key, value in wire.items() if key != "mapping"}
    nodes = {key: node for key, node in mapping(wire.get("mapping")).items() if isinstance(node, dict)}
    for key in mapping(wire.get("mapping")).keys() - nodes.keys():
        tally.note("damage", str(place), f"node {key!r} is not an object; it was left out", thread_id=recorder.id)
    current = text(wire.get("current_node"))
    leaf: Any = {"leaf": lambda: current} if current in nodes else {}
    return recorder.session(_items(nodes, assets, recorder), **leaf)


def _items(nodes: dict[str, Json], assets: Assets, recorder: Recorder) -> Iterator[ImportedRecord]:
    parents = {name: text(node.get("parent")) or _found_parent(name, nodes) for name, node in nodes.items()}
    for name in parents_first(parents):
        node = nodes[name]
        message = mapping(node.get("message"))
        time = recorder.time(when(message.get("create_time")))
        yield ImportedRecord(kept(_payload(message, assets, recorder), node), name, time, parents[name])


def _found_parent(name: str, nodes: dict[str, Json]) -> str | None:
    """The node that names this one as a child, for nodes that do not name their parent."""
    if "parent" in nodes[name]:
        return None
    return next((other for other, node in nodes.items() if name in array(node.get("children"))), None)


def _payload(message: Json, assets: Assets, recorder: Recorder) -> Payload:
    author, facts = mapping(message.get("author")), mapping(message.get("metadata"))
    content = mapping(message.get("content"))
    parts = [*_parts(content, assets), *_attachments(facts, assets)]
    is_hidden = facts.get("is_visually_hidden_from_conversation") is True or message.get("weight") == 0
    match author.get("role"):
        case None:
            return Custom(name="root")
        case "user":
            kind = "meta" if is_hidden or content.get("content_type") == "user_editable_context" else ""
            return UserMessage(message=Message(role="user", parts=tuple(parts), kind=kind))
        case "assistant":
            model = text(facts.get("model_slug"))
            recorder.model = model or recorder.model
            return answer(parts, provider="openai", model=model)
        case "system" if any(isinstance(part, TextPart) and part.text for part in parts):
            return SystemMessage(message=Message(role="system", parts=tuple(parts)))
        case "system":
            return Custom(name="system", data=content if parts else None)
        case role:
            said = Message(role="user", parts=tuple(parts), name=text(author.get("name")))
            return Custom(name=f"{text(role)} {text(author.get('name'))}".strip(), message=said)


_READ = frozenset({"content_type", "parts", "text", "result", "language", "response_format_name"})


def _parts(content: Json, assets: Assets) -> list[Part]:
    match content.get("content_type"):
        case "thoughts":
            said = [
                f"{text(one.get('summary'))}\n{text(one.get('content'))}".strip()
                for one in objects(content.get("thoughts"))
            ]
            return [ReasoningPart(provider="chatgpt", text="\n\n".join(said))]
        case "reasoning_recap":
            return [ReasoningPart(provider="chatgpt", text=text(content.get("content")))]
        case "user_editable_context" | "model_editable_context":
            names = ("user_profile", "user_instructions", "model_set_context")
            return [TextPart(text=text(content.get(name))) for name in names if content.get(name)]
        case "tether_browsing_display" | "tether_quote":
            found = (text(content.get(name)) for name in ("title", "url", "summary", "result", "text"))
            return [TextPart(text="\n".join(filter(None, found)))]
    listed = [_part(part, assets) for part in array(content.get("parts"))]
    words = text(content.get("text")) or text(content.get("result"))
    others = {name: value for name, value in content.items() if name not in _READ and value}
    unknown = [OpaquePart(provider="chatgpt", block=others)] if others else []
    return [*listed, *([TextPart(text=words)] if words else []), *unknown]


def _part(part: Any, assets: Assets) -> Part:
    if isinstance(part, str):
        return TextPart(text=part)
    block = mapping(part)
    kind = text(block.get("content_type"))
    if isinstance(block.get("text"), str):
        return TextPart(text=block["text"])
    address = first_text(block, "asset_pointer", "audio_asset_pointer")
    if address:
        name = _asset_name(address)
        return _asset(name, assets) or FilePart(url=address, name=name, mime="image/*" if "image" in kind else "")
    return OpaquePart(provider="chatgpt", block=block) if block else TextPart(text=as_text(part))


def _asset_name(address: str) -> str:
    """The id in an address such as ``file-service://file-ab12`` or ``sediment://6d…#file_ab12#p_0.png``."""
    steps = address.rpartition("/")[2].split("#")
    return next((step for step in steps if step.startswith("file")), steps[0])


def _attachments(facts: Json, assets: Assets) -> list[Part]:
    """The files that a user attached, with their contents if they are there; pictures are among the parts already."""
    listed = [one for one in objects(facts.get("attachments")) if not text(one.get("mime_type")).startswith("image/")]
    return [
        _asset(text(one.get("id")), assets, text(one.get("name")))
        or FilePart(name=text(one.get("name")), mime=text(one.get("mime_type")))
        for one in listed
    ]


def _asset(asset_id: str, assets: Assets, label: str = "") -> Part | None:
    found = assets.read(asset_id)
    if found is None:
        return None
    name, body = found
    mime, data = guess_type(label or name)[0] or "application/octet-stream", b64encode(body).decode()
    if mime.startswith("image/"):
        return ImagePart(data=data, mime=mime)
    return FilePart(data=data, mime=mime, name=label or name)
