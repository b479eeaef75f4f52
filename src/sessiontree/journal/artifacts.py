# Generated from artifacts_async.py by tools/async_to_sync.py; do not edit.
"""Verbs about artifacts: images, files and long outputs that messages show by reference."""

from __future__ import annotations

from sessiontree.journal._base import Verbs
from sessiontree.journal.operations import artifacts
from sessiontree.journal.operations.artifacts import ArtifactSource
from sessiontree.model import ArtifactRef

__all__ = ["ArtifactVerbs"]


class ArtifactVerbs(Verbs):
    """The verbs about artifacts."""

    def put_artifact(self, source: ArtifactSource, *, mime: str = "", label: str = "") -> ArtifactRef:
        """Store bytes, or the file at a path, and return the reference to show in a message.

        Equal content is stored once. It stays until the last entry that refers to it is deleted. For a path, ``mime``
        and ``label`` follow from the name of the file.
        """
        return self.run(artifacts.put_artifact(source, mime, label))

    def read_artifact(self, ref: ArtifactRef | str) -> bytes:
        """Return the bytes of an artifact, by its reference or its SHA-256. Raises BlobNotFoundError if it is gone."""
        return self.run(artifacts.read_artifact(ref))
