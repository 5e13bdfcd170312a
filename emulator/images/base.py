"""What images start from must be there, be for the right processor, and have the Python of the packages."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from emulator.core.errors import HostError, UsageError
from emulator.core.processor import host_arch
from emulator.images import wheels
from emulator.runtimes.docker import engine
from emulator.runtimes.docker.reference import is_reference

if TYPE_CHECKING:
    from docker.api.client import APIClient

_WHERE = "--base"
_ASK = "import sys; print('Python %d.%d' % sys.version_info[:2])"


def check_base(client: APIClient, name: str, arch: str) -> None:
    """Pull the image where it is missing, and ask its Python for the version; raises HostError and UsageError.

    One for a foreign processor that cannot be run here is taken as it is.
    """
    if not is_reference(name):
        raise UsageError(
            f"{name!r} is no image's name", where=_WHERE, fix="write it like debian:bookworm, or bootstrap"
        )
    found = _find(client, name, arch)
    if found["Architecture"] != arch:
        raise UsageError(
            f"image {name} is for {found['Architecture']}, not {arch}",
            where=_WHERE,
            fix=f"pull it for {arch} (docker pull --platform linux/{arch} {name}), or name another",
        )
    said = _python(client, str(found["Id"]))
    if said != f"Python {wheels.PYTHON}" and not (arch != host_arch() and "exec format error" in said):
        raise UsageError(
            f"image {name} has {said or 'no Python'}, and the packages are for Python {wheels.PYTHON}",
            where=_WHERE,
            fix=f"name one with Python {wheels.PYTHON} as python3, or make one: --base bootstrap",
        )


def _find(client: APIClient, name: str, arch: str) -> dict[str, Any]:
    from docker.errors import APIError, ImageNotFound
    from requests.exceptions import RequestException

    try:
        with engine.told(name), suppress(ImageNotFound):
            kept: dict[str, Any] = client.inspect_image(name)
            return kept
        client.pull(name, platform=f"linux/{arch}")
        pulled: dict[str, Any] = client.inspect_image(name)
        return pulled
    except (APIError, RequestException) as error:
        said = " ".join(str(getattr(error, "explanation", None) or error).split())[:200]
        raise HostError(
            f"image {name} is not there and cannot be pulled ({said})",
            where=_WHERE,
            fix="check its name and the network, or make one: --base bootstrap",
        ) from None


def _python(client: APIClient, image: str) -> str:
    """What the image's Python says of itself; empty where it has none."""
    from docker.errors import APIError

    with engine.told(_WHERE):
        made = client.create_container(image, [], entrypoint=["python3", "-c", _ASK], network_disabled=True)["Id"]
        try:
            client.start(made)
            client.wait(made)
            return " ".join(client.logs(made).decode(errors="replace").split())[:100]
        except APIError as error:
            if error.status_code in (400, 404):  # there is no such program
                return ""
            raise
        finally:
            client.remove_container(made, force=True)
