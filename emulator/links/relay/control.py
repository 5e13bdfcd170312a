"""Asking a running relay: one JSON object there, one back, over a sequenced-packet socket in the lab's directory."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SOCKET = "control"
_LARGEST = 1 << 20


def _near(directory: Path) -> tuple[int, str]:
    """A short path to the socket (a socket's may have 107 characters only) and the descriptor that it rests on."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return descriptor, f"/proc/self/fd/{descriptor}/{SOCKET}"


def listen(directory: Path) -> socket.socket:
    """The relay's end; replaces a socket that a dead relay left."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    (directory / SOCKET).unlink(missing_ok=True)
    descriptor, path = _near(directory)
    try:
        sock.bind(path)
    finally:
        os.close(descriptor)
    sock.listen(64)
    return sock


def ask(directory: Path, request: dict[str, Any], timeout: float = 2.0) -> dict[str, Any]:
    """Send a request and return the answer; raises OSError when no relay answers in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as sock:
        sock.settimeout(timeout)
        descriptor, path = _near(directory)
        try:
            sock.connect(path)
        finally:
            os.close(descriptor)
        sock.send(json.dumps(request).encode())
        answer = sock.recv(_LARGEST)
    if not answer:
        raise ConnectionResetError("the relay closed the connection")
    parsed: dict[str, Any] = json.loads(answer)
    return parsed


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The relay's end: a request, or None when the asker has gone."""
    try:
        text = connection.recv(_LARGEST)
    except BlockingIOError:
        return {}
    except OSError:
        return None
    parsed: dict[str, Any] | None = json.loads(text) if text else None
    return parsed


def answer(connection: socket.socket, fields: dict[str, Any]) -> None:
    """The relay's end: reply; an asker that has gone is no matter."""
    try:
        connection.send(json.dumps(fields).encode())
    except OSError:
        return
