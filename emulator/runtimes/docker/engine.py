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


def address() -> str:
    """Where the engine listens: DOCKER_HOST, else Docker's usual socket."""
    return os.environ.get("DOCKER_HOST") or _DEFAULT


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask(path: str) -> tuple[int, Any]:
    """GET a path of the engine's API: the status, and the JSON of the answer. Raises OSError when none answers."""
    scheme, _, rest = address().partition("://")
    try:
        with closing(_Unix(rest) if scheme == "unix" else http.client.HTTPConnection(rest, timeout=5)) as connection:
            connection.request("GET", path)
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
            "start one (systemctl start docker), set DOCKER_HOST, or use --runtime embedded",
        )
    if status != 200 or not isinstance(version, dict):
        return Problem(f"what answers at {address()} is no Docker engine", "set DOCKER_HOST to one")
    api = str(version.get("ApiVersion", "0"))
    if _number(api) < _number(OLDEST_API):
        fix = f"install Docker 20.10 or newer (API {OLDEST_API})"
        return Problem(f"the engine is too old (API {api})", fix)
    return None


def find_labs() -> list[str]:
    """Names of the labs that have containers; none when no engine answers."""
    if not is_there():
        return []
    wanted = {"all": 1, "filters": json.dumps({"label": [LABEL_LAB]})}
    try:
        status, found = ask("/containers/json?" + urlencode(wanted))
    except OSError:
        return []
    return sorted({item["Labels"][LABEL_LAB] for item in found}) if status == 200 else []


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def require() -> None:
    """Raises HostError when no engine can be used."""
    if found := problem():
        raise HostError(found.fact, fix=found.fix)


def client() -> APIClient:
    """A client of the engine's API; raises HostError when none can be used."""
    require()
    from docker.api.client import APIClient

    with told("the engine"):
        return APIClient(base_url=address(), version="auto", timeout=120, num_pools=4, max_pool_size=PARALLEL)


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
