"""Reaching the engine: whether one answers (without the SDK, which takes 0.3 s to import), and a client for it.

DOCKER_HOST names the engine as for Docker's own command, also Podman's socket of the same protocol.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.api.client import APIClient

#: Docker 20.10 and Podman 4 speak it
OLDEST_API = "1.41"
_DEFAULT = "unix:///var/run/docker.sock"
#: what containers bear, and are found by
LABEL_LAB, LABEL_NODE = "emu.lab", "emu.node"
#: requests that one client has under way at once
PARALLEL = 8
#: seconds that a busy engine may take to answer
PATIENCE = 120


def address() -> str:
    """Where the engine listens: DOCKER_HOST, else Docker's usual socket."""
    return os.environ.get("DOCKER_HOST") or _DEFAULT


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask(path: str, method: str = "GET", seconds: float = 5) -> tuple[int, Any]:
    """Ask a path of the engine's API: the status, and the JSON of the answer. Raises OSError when none answers."""
    scheme, _, rest = address().partition("://")
    kind = _Unix if scheme == "unix" else http.client.HTTPConnection
    try:
        with closing(kind(rest, timeout=seconds)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if body[:1] in (b"{", b"[") else None
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"no engine's answer ({error})") from None


def is_there() -> bool:
    """Whether an engine answers to this user; at once where its socket does not exist."""
    scheme, _, rest = address().partition("://")
    return not (scheme == "unix" and not os.path.exists(rest)) and not problem()  # noqa: PTH110 - not raising


def problem() -> Problem | None:
    """What keeps the engine from being used; None = it answers and is new enough."""
    found = _api()
    return found if isinstance(found, Problem) else None


def _api() -> str | Problem:
    """The newest version of the API that the engine speaks, or why it cannot be used."""
    scheme, there, rest = address().partition("://")
    if scheme not in ("unix", "tcp", "http") or not there or not rest:
        return Problem(
            f"DOCKER_HOST is {address()!r}, which names no engine of this host",
            "set it to unix:///path/of/its/socket, or unset it",
        )
    try:
        status, version = ask("/version")
    except PermissionError:
        return Problem(f"the engine's socket {address()} may not be used", "run emu as root, or join the group docker")
    except OSError as error:
        return Problem(
            f"no Docker engine answers at {address()} ({error.strerror or error})",
            "start one (systemctl start docker), or set DOCKER_HOST",
        )
    if status != 200 or not isinstance(version, dict):
        return Problem(f"what answers at {address()} is no Docker engine", "set DOCKER_HOST to one")
    api = str(version.get("ApiVersion", "0"))
    if _number(api) < _number(OLDEST_API):
        return Problem(f"the engine is too old (API {api})", f"install Docker 20.10 or newer (API {OLDEST_API})")
    return api


def order(path: str, method: str = "GET") -> tuple[int, Any]:
    """As `ask`, of a busy engine; raises RuntimeFailure when none answers."""
    try:
        return ask(path, method, PATIENCE)
    except OSError as error:
        raise RuntimeFailure(
            f"the engine does not answer ({error.strerror or error})", fix="start it again, then `emu status`"
        ) from None


def containers(label: str) -> list[dict[str, Any]]:
    """All containers with a label ("key" or "key=value"), whatever their state. Raises RuntimeFailure."""
    wanted = {"all": 1, "filters": json.dumps({"label": [label]})}
    status, found = order("/containers/json?" + urlencode(wanted))
    if status != 200:
        raise RuntimeFailure(f"the engine does not list its containers (status {status})", fix="see the engine's log")
    return list(found)


def find_labs() -> list[str]:
    """Names of the labs that have containers; none when no engine answers."""
    try:
        return sorted({item["Labels"][LABEL_LAB] for item in containers(LABEL_LAB)}) if is_there() else []
    except RuntimeFailure:
        return []


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def require() -> str:
    """The version of the API to speak; raises HostError when no engine can be used."""
    found = _api()
    if isinstance(found, Problem):
        raise HostError(found.fact, fix=found.fix)
    return found


def client() -> APIClient:
    """A client of the engine's API; raises HostError when none can be used."""
    api = require()
    from docker.api.client import APIClient

    with told("the engine"):
        return APIClient(base_url=address(), version=api, timeout=PATIENCE, num_pools=4, max_pool_size=PARALLEL)


@contextmanager
def told(where: str, fix: str = "see `docker info` and the engine's log") -> Iterator[None]:
    """Turn what the SDK raises into one sentence about `where`."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except APIError as error:
        text = " ".join(str(error.explanation or error).split())
        if "no space left" in text.lower():
            raise HostError("the engine's disk is full", where=where, fix="free space (docker system prune)") from None
        raise RuntimeFailure(f"the engine refused ({text[:300]})", where=where, fix=fix) from None
    except (DockerException, RequestException) as error:
        raise RuntimeFailure(
            f"the engine does not answer ({type(error).__name__})", where=where, fix="start it again, then `emu status`"
        ) from None
