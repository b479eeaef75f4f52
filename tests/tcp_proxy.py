"""A TCP proxy that can cut a connection at a chosen moment, refuse new ones, or look like a pooler."""

import contextlib
import socket
import struct
import threading
from typing import Self


class Proxy:
    """Forwards to a port. ``cut_at`` arms it: at the first client bytes that hold a marker, the connection goes."""

    def __init__(self, port: int, *, pretends_to_pool: bool = False) -> None:
        self._target = port
        self._pretends_to_pool = pretends_to_pool
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._marker: bytes | None = None
        self._is_after = False
        self._may_connect = threading.Event()
        self._may_connect.set()
        self.was_cut = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        self.cut_all()

    def cut_at(self, marker: bytes = b"", *, after: bool, skip: int = 0) -> None:
        """``after``: the server gets the bytes and answers, but the answer is lost. ``skip``: how often the marker passes first."""
        self.was_cut.clear()
        self._skip = skip
        self._marker, self._is_after = marker, after

    def disarm(self) -> None:
        """Cut nothing any more."""
        self._marker = None

    def forward_to(self, port: int) -> None:
        """Forward new connections to another port."""
        self._target = port

    def refuse(self) -> None:
        self._may_connect.clear()

    def admit(self) -> None:
        self._may_connect.set()

    def cut_all(self) -> None:
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            _close(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._may_connect.is_set():
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(client):
            marker = self._marker
            if marker is not None and marker in data and self._skip:
                self._skip -= 1
            elif marker is not None and marker in data:
                self._marker = None
                self._cut(client, server, data if self._is_after else b"")
                return
            if not _send(server, data):
                break
        _close(server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        """The answer goes to the other direction's thread, which cannot pass it on: then it was given, and is lost."""
        self._answered = threading.Event()  # before the bytes go: the answer may come at once
        _close(client)
        if data:
            server.sendall(data)
            self._answered.wait(10)
        _close(server)
        self.was_cut.set()

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(server):
            if self._pretends_to_pool:
                data = _with_other_pid(data)
            sent = _send(client, data)
            if not sent:
                answered = getattr(self, "_answered", None)
                if answered is not None:
                    answered.set()
                break
        _close(client)


def _with_other_pid(data: bytes) -> bytes:
    """BackendKeyData is K, its length 12 and the process number, which a pooler makes up."""
    at = data.find(b"K" + struct.pack("!i", 12))
    if at < 0:
        return data
    return data[: at + 5] + struct.pack("!i", 7) + data[at + 9 :]


def _receive(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""


def _send(end: socket.socket, data: bytes) -> bool:
    try:
        end.sendall(data)
    except OSError:
        return False
    return True


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
