"""A local HTTP server for the SDKs of model providers. What it answers is in ``provider_answers``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Reply:
    """What the server does with one request."""

    def __init__(
        self,
        status: int = 200,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        hold: threading.Event | None = None,
    ) -> None:
        self.status = status
        self.raw = json.dumps(body or {}).encode() if raw is None else raw
        self.headers = headers or {}
        self.hold = hold


class StreamReply:
    """Server-sent events, each as it goes over the wire.

    After ``pause_after`` events the server waits for ``go_on``; with ``is_cut`` it closes the connection there.
    """

    def __init__(self, events: Sequence[bytes], pause_after: int | None = None, is_cut: bool = False) -> None:
        self.events = events
        self.pause_after = pause_after
        self.is_cut = is_cut
        self.paused = threading.Event()
        self.go_on = threading.Event()


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Reply | StreamReply] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers with the next reply, and closes the connection, so that no client keeps one open for its collector."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        reply = self.server.replies.pop(0)
        if isinstance(reply, StreamReply):
            self._stream(reply)
            return
        if reply.hold is not None:
            reply.hold.wait(30)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(reply.raw)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(reply.raw)

    def _stream(self, reply: StreamReply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for number, event in enumerate(reply.events):
                if number == reply.pause_after:
                    reply.paused.set()
                    if reply.is_cut:
                        self.close_connection = True
                        return
                    reply.go_on.wait(60)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chat_answer(text: str | None, finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "local-model",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
    }


def messages_answer(text: str | None, stop: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "local-model",
        "stop_reason": stop,
        "stop_sequence": None,
        "content": [{"type": "text", "text": text}] if text is not None else [],
        "usage": {"input_tokens": 900, "output_tokens": 40},
    }
