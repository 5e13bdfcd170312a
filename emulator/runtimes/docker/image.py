"""Which image a node runs, and that the engine has it for the right processor."""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from emulator.core import code
from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.processor import host_arch
from emulator.runtimes.docker import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.api.client import APIClient

    from emulator.core.plan import NodePlan, Plan

#: what a node runs that names no image: with a role in a training, and without
TRAINING, PLAIN = "emu/torch", "emu/base"


def of(node: NodePlan) -> str:
    """The image of a node; ours are tagged with the processor that they are for."""
    if node.image:
        return node.image
    return f"{TRAINING if node.role else PLAIN}:{node.arch or host_arch()}"


def is_there(name: str) -> bool:
    """Whether the engine has an image; False too when no engine answers."""
    try:
        return engine.ask(f"/images/{quote(name, safe='/:@')}/json")[0] == 200
    except OSError:
        return False


def require_current(plan: Plan) -> None:
    """Raises HostError where an image of ours that is to run a role holds another version of it than this emu's."""
    for node in plan.machines:
        name = of(node)
        if not (node.role and name.startswith("emu/")):
            continue
        status, found = engine.order(f"/images/{quote(name, safe='/:@')}/json")
        if status == HTTPStatus.OK and (found["Config"]["Labels"] or {}).get(code.LABEL) != code.digest():
            fix = _build(name, node.arch or host_arch())
            raise HostError(f"image {name} holds another version of emu than this one", where=node.name, fix=fix)


def find(client: APIClient, name: str, arch: str, node: str) -> dict[str, Any]:
    """The image's description, pulled if the engine lacks it.

    Raises HostError when it cannot be had and RuntimeFailure when it is for another processor than `arch`.
    """
    found = have(client, name, arch, node)
    if found["Architecture"] != arch:
        raise RuntimeFailure(
            f"image {name} is for {found['Architecture']}, not {arch}",
            where=node,
            fix=f"set `arch: {found['Architecture']}` for the node, or name another image",
        )
    return found


@contextmanager
def kept(node: NodePlan) -> Iterator[None]:
    """Turn the engine's not having the node's image (any more) into HostError."""
    from docker.errors import ImageNotFound

    try:
        yield
    except ImageNotFound:
        name = of(node)
        fix = _build(name, node.arch or host_arch()) if name.startswith("emu/") else "load or pull it again"
        raise HostError(f"image {name} was removed meanwhile", where=node.name, fix=fix) from None


def have(client: APIClient, name: str, arch: str, where: str) -> dict[str, Any]:
    """The image's description, whatever its processor, pulled for `arch` if need be; raises HostError."""
    from docker.errors import DockerException, ImageNotFound
    from requests.exceptions import RequestException

    try:
        return _inspect(client, name)
    except ImageNotFound:
        if name.startswith("emu/"):
            raise HostError(f"image {name} has not been built", where=where, fix=_build(name, arch)) from None
    except (DockerException, RequestException) as error:
        raise HostError(f"the engine refuses the image ({_short(error)})", where=where, fix="check its name") from None
    try:
        client.pull(name, platform=f"linux/{arch}")
        return _inspect(client, name)
    except (DockerException, RequestException) as error:
        raise HostError(
            f"image {name} is not there and cannot be pulled ({_short(error)})",
            where=where,
            fix="check its name and the network, or load it (docker load)",
        ) from None


def _inspect(client: APIClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.inspect_image(name)
    return found


def _build(name: str, arch: str) -> str:
    command = f"emu images build {name.partition('/')[2].partition(':')[0]} --arch {arch}"
    return f"build it with `{command}` (without a registry: --base bootstrap)"


def _short(error: Exception) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return " ".join(text.split())[:200]
