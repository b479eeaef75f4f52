"""The styles and scripts: read once, kept in memory, and asked for once by each browser.

Their address names their content, so a browser keeps them without asking again; scripts import each other by
relative addresses, which then name it too. The styles that every page needs are one file.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

__all__ = ["asset_routes", "asset_url"]


_FOLDER = Path(__file__).parent / "static"
_STYLES = ("tokens.css", "icons.css", "frame.css", "tree.css", "transcript.css", "pages.css")
_A_YEAR = "private, max-age=31536000, immutable"


@cache
def _assets() -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in {".css", ".js"}}
    return {**files, "viewer.css": b"".join(files[name] for name in _STYLES)}


@cache
def _version() -> str:
    return sha256(b"\0".join(_assets().values())).hexdigest()[:12]


def asset_url(name: str) -> str:
    """Return the address of a file of ours."""
    return f"/static/{_version()}/{name}"


def asset_routes() -> list[Route]:
    """The files, at their addresses and at no other."""

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        content = _assets().get(name)
        if content is None or request.path_params["version"] != _version():
            return PlainTextResponse("There is no such file.", 404)
        return Response(content, media_type=guess_type(name)[0], headers={"cache-control": _A_YEAR})

    return [Route("/static/{version}/{name}", asset)]
