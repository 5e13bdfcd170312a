"""Which image a node runs, and that the engine has it for the right processor."""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from emulator.core import code
from emulator.core.errors import HostError, RuntimeFailure, UsageError
from emulator.core.processor import ARCHITECTURES, host_arch
from emulator.runtimes.docker import engine
from emulator.runtimes.docker.reference import OURS, how_to_build, is_reference

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
    if not is_reference(name):
        return False
    try:
        return engine.ask(_path(name))[0] == HTTPStatus.OK
    except OSError:
        return False


def _path(name: str) -> str:
    """Where the engine describes an image; only for what `is_reference` takes."""
    return f"/images/{quote(name, safe='/:@')}/json"


def is_current(name: str) -> bool:
    """Whether the engine has this image of ours, with this emu's code in it."""
    try:
        status, found = engine.ask(_path(name))
    except OSError:
        return False
    return status == HTTPStatus.OK and _is_ours(found)


def _is_ours(found: dict[str, Any]) -> bool:
    return (found["Config"]["Labels"] or {}).get(code.LABEL) == code.digest()


def outdated(plan: Plan) -> HostError | None:
    """What to tell of the first image of ours that is to run a role and holds another version of it than this emu's.

    Raises HostError where the engine does not answer.
    """
    roles = {of(node): node for node in reversed(plan.machines) if node.role}  # each image once, its first node
    for name, node in roles.items():
        if not (name.startswith(OURS) and is_reference(name)):  # what is no name is refused when it is looked for
            continue
        status, found = engine.order(_path(name))
        if status == HTTPStatus.OK and not _is_ours(found):
            fix = how_to_build(name, node.arch or host_arch())
            return HostError(f"image {name} holds another version of emu than this one", where=node.name, fix=fix)
    return None


def require_current(plan: Plan) -> None:
    """Raises HostError where an image of ours that is to run a role holds another version of it than this emu's."""
    old = outdated(plan)
    if old is not None:
        raise old


def find(client: APIClient, name: str, arch: str, node: str) -> dict[str, Any]:
    """The image's description, pulled if the engine lacks it.

    Raises HostError when it cannot be had and RuntimeFailure when it is for another processor than `arch`.
    """
    found = have(client, name, arch, node)
    if found["Architecture"] != arch:
        its = str(found["Architecture"]) or "an unnamed processor"
        fix = f"set `arch: {its}` for the node, or name another image" if its in ARCHITECTURES else "name another image"
        raise RuntimeFailure(f"image {name} is for {its}, not {arch}", where=node, fix=fix)
    return found


@contextmanager
def kept(node: NodePlan) -> Iterator[None]:
    """Turn the engine's not having the node's image (any more) into HostError."""
    from docker.errors import ImageNotFound

    try:
        yield
    except ImageNotFound:
        name = of(node)
        fix = how_to_build(name, node.arch or host_arch()) if name.startswith(OURS) else "load or pull it again"
        raise HostError(f"image {name} was removed meanwhile", where=node.name, fix=fix) from None


def have(client: APIClient, name: str, arch: str, where: str) -> dict[str, Any]:
    """The image's description, whatever its processor, pulled for `arch` if need be; raises HostError, UsageError."""
    if not is_reference(name):
        raise UsageError(f"{name!r} is no image's name", where=where, fix="write it like alpine:3 or host/name:tag")
    from docker.errors import DockerException, ImageNotFound
    from requests.exceptions import RequestException

    try:
        return _inspect(client, name)
    except ImageNotFound:
        if name.startswith(OURS):
            raise HostError(f"image {name} has not been built", where=where, fix=how_to_build(name, arch)) from None
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


def _short(error: Exception) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return " ".join(text.split())[:200]
