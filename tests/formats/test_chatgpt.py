"""ChatGPT's data export: pictures and attached files come along, from the archive or from the folder that it became."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.transfer.formats import import_sessions

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(600)
PAPER = b"%PDF-1.7\n" + bytes(600)


def conversation(*parts: Any, **facts: Any) -> dict[str, Any]:
    message = {"id": "m", "author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": parts}}
    node = {"id": "m", "parent": "root", "children": [], "message": message | {"metadata": facts}}
    root = {"id": "root", "parent": None, "children": ["m"], "message": None}
    return {"id": "c", "title": "T", "create_time": 1.0, "current_node": "m", "mapping": {"root": root, "m": node}}


def pointer(address: str) -> dict[str, str]:
    return {"content_type": "image_asset_pointer", "asset_pointer": address}


def archive(folder: Path, document: dict[str, Any], **files: bytes) -> Path:
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("conversations.json", json.dumps([document]))
        for name, body in files.items():
            file.writestr(name, body)
    return path


def stored(source: Path) -> list[tuple[str, bytes]]:
    """The types and contents of what the imported message shows."""
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        message = journal.path("c")[-1].message
        assert message is not None
        shown = [part for part in message.parts if isinstance(part, st.ImagePart | st.FilePart)]
        return [(part.mime, journal.read_artifact(part.artifact) if part.artifact else b"") for part in shown]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("file-service://file-ab12", "file-ab12-holiday.png"),
        ("file-service://file-ab12", "dalle-generations/file-ab12.png"),
        ("sediment://file_ab12", "file_ab12-sanitized.png"),
        ("sediment://6d0#file_ab12#p_0.png", "file_ab12.png"),
    ],
)
def test_pictures_are_found_in_the_archive_by_the_id_in_their_address(tmp_path: Path, address: str, name: str) -> None:
    path = archive(tmp_path, conversation("look", pointer(address)), **{name: PICTURE, "file-ab123.png": b"another"})
    assert stored(path) == [("image/png", PICTURE)]


def test_attached_files_come_along_and_pictures_among_them_come_once(tmp_path: Path) -> None:
    attachments = [
        {"id": "file-pdf1", "name": "paper.pdf", "mime_type": "application/pdf"},
        {"id": "file-ab12", "name": "holiday.png", "mime_type": "image/png"},
        {"id": "file-gone", "name": "gone.txt"},
    ]
    document = conversation(pointer("file-service://file-ab12"), "read", attachments=attachments)
    path = archive(tmp_path, document, **{"file-ab12.png": PICTURE, "file-pdf1-paper.pdf": PAPER})
    # Of a file that is gone, the name is left.
    assert stored(path) == [("image/png", PICTURE), ("application/pdf", PAPER), ("", b"")]


def test_an_export_that_was_unpacked_has_its_pictures_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(archive(tmp_path, conversation(pointer("sediment://file_a")), file_a=PICTURE)) as file:
        file.extractall(tmp_path / "export")
    (tmp_path / "export/file_a").rename(tmp_path / "export/file_a.png")
    assert stored(tmp_path / "export") == [("image/png", PICTURE)]


def test_a_picture_that_is_not_there_keeps_its_address(tmp_path: Path) -> None:
    path = archive(tmp_path, conversation("look", pointer("file-service://file-gone")))
    assert stored(path) == [("image/*", b"")]
