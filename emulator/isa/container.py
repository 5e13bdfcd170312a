"""A container for one check: made with the files that it needs, without network, and gone at its end."""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.core.errors import UsageError
from emulator.isa.finding import Finding
from emulator.runtimes.docker import engine, image

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from docker.api.client import APIClient

#: where our files lie in it
FOLDER = "/emu-isa"
#: what such containers bear
LABEL = "emu.isa-check"
MEMORY = 4 << 30
_PIDS = 1024
_END = "emu-isa-end "
#: $1 is a time limit in seconds, 0 = none; the rest is the program. The last line tells how it ended.
_SHELL = f"""
ulimit -c 0
limit=$1; shift
if [ "$limit" = 0 ]; then "$@"; else timeout -s KILL "$limit" "$@"; fi
status=$?
echo; echo "{_END}$status"
"""


@dataclass
class Box:
    """What a container did: its program's exit status (None: its shell died), and the last of its error output."""

    status: int | None = None
    errors: str = ""


def find(client: APIClient, name: str, arch: str) -> dict[str, Any]:
    """The image, pulled if need be; raises HostError when it cannot be had, UsageError for another processor's."""
    found = image.have(client, name, arch, "")
    if found["Architecture"] != arch:
        raise UsageError(
            f"the image is for {found['Architecture']}, and the device runs {arch}",
            where=name,
            fix=f"name one for {arch} (emu's own: `emu images build --arch {arch}`, then emu/torch:{arch})",
        )
    return found


def run(
    client: APIClient,
    found: Mapping[str, Any],
    command: Sequence[str],
    environment: Mapping[str, str],
    pack: Callable[[tarfile.TarFile], None],
    box: Box,
    limit: int = 0,
) -> Generator[str, None, None]:
    """Run a command in a container of an image with the files that `pack` adds; gives the lines that it prints.

    `box` has the rest once the lines have ended. Who stops before must close the generator, which ends the container.
    """
    with tempfile.TemporaryFile() as files:
        with tarfile.open(fileobj=files, mode="w") as archive:
            pack(archive)
        files.seek(0)
        with engine.told("the check's container"):
            made = str(_create(client, found, ["emu", str(limit), *command], environment)["Id"])
            try:
                client.put_archive(made, "/", files)
                # Before it starts: a container that removes itself leaves no log behind.
                stream = client.attach(made, stdout=True, stderr=True, stream=True, demux=True)
                client.start(made)
                yield from _lines(stream, box)
            finally:
                _remove(client, made)


def shell_died(box: Box, name: str) -> Finding:
    """The finding for a container whose shell did not come to its end; raises UsageError where there is none in it."""
    if "Illegal instruction" in box.errors:
        return Finding(name, "/bin/sh", "dies", signal="SIGILL", step="starting the container", given=True)
    said = " ".join(box.errors.split())[-200:]
    raise UsageError(
        f"its /bin/sh did not run ({said or 'it said nothing'})", where=name, fix="the check needs a shell in the image"
    )


def _create(
    client: APIClient, found: Mapping[str, Any], command: list[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    host = client.create_host_config(
        auto_remove=True,  # also where nobody is left to remove it
        network_mode="none",
        init=True,
        mem_limit=MEMORY,
        memswap_limit=MEMORY,
        pids_limit=_PIDS,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
    )
    made: dict[str, Any] = client.create_container(
        found["Id"],
        entrypoint=["/bin/sh", "-c", _SHELL],
        command=command,
        environment=dict(environment),
        labels={LABEL: "1"},
        host_config=host,
    )
    return made


def _remove(client: APIClient, made: str) -> None:
    from docker.errors import APIError

    with suppress(APIError):  # 404: it has gone by itself
        try:
            client.remove_container(made, force=True, v=True)
        except APIError as error:
            if error.status_code == 409:  # it is just going
                client.wait(made, timeout=60, condition="removed")


def _lines(stream: Iterator[tuple[bytes | None, bytes | None]], box: Box) -> Iterator[str]:
    rest, errors = b"", b""
    for out, err in stream:
        errors = (errors + (err or b""))[-4000:]
        *whole, rest = (rest + (out or b"")).split(b"\n")
        for line in whole:
            text = line.decode(errors="replace")
            if text.startswith(_END):
                box.status = int(text.removeprefix(_END))
            elif text:
                yield text
        rest = rest[-1_000_000:]
    box.errors = errors.decode(errors="replace").strip()
