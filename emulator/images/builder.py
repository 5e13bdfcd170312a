"""Having an image built: by `docker buildx` where the engine's client has it, else by the engine's own builder.

Both get the same context; a build that fails, or is cut off, leaves no image behind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from emulator.core.errors import EmuError, HostError
from emulator.runtimes.docker import engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docker.api.client import APIClient

#: what our images bear
LABEL = "emu.image"
_STEP = re.compile(r"^ ---> ([0-9a-f]{12})\n?$")


@dataclass(frozen=True)
class Order:
    """An image to build: `arguments` are the Dockerfile's."""

    tag: str
    arch: str
    arguments: Mapping[str, str]

    @property
    def labels(self) -> dict[str, str]:
        """The marks of the image."""
        return {LABEL: self.tag.partition("/")[2].partition(":")[0]}


def has_buildx(client: APIClient) -> bool:
    """Whether `docker buildx` is installed and the engine is one that it can build with (not Podman)."""
    if shutil.which("docker") is None:
        return False
    done = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False)
    with engine.told("the engine"):
        parts = [str(part["Name"]) for part in client.version().get("Components") or ()]
    return done.returncode == 0 and not any("Podman" in name for name in parts)


def build(client: APIClient, order: Order, context: IO[bytes]) -> None:
    """Have the image built and tagged; raises HostError or RuntimeFailure with the builder's complaint."""
    if has_buildx(client):
        _by_buildx(order, context)
    else:
        _by_engine(client, order, context)


def buildx_command(order: Order) -> list[str]:
    """The command line that builds the image of a context on stdin.

    The builder "default" is the engine's own, whichever another one is selected: images that stand on each other
    must be found where the last one was put.
    """
    command = ["docker", "buildx", "build", "--builder", "default", "--load", "--progress", "plain"]
    command += ["--platform", f"linux/{order.arch}", "--tag", order.tag]
    command += [word for key, value in order.labels.items() for word in ("--label", f"{key}={value}")]
    command += [word for key, value in order.arguments.items() for word in ("--build-arg", f"{key}={value}")]
    return [*command, "-"]


def _by_buildx(order: Order, context: IO[bytes]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DOCKER_CONTEXT"}
    environment["DOCKER_HOST"] = engine.address()
    done = subprocess.run(
        buildx_command(order), stdin=context, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", env=environment, check=False,
    )  # fmt: skip
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        raise failure(order.tag, said[-1].removeprefix("ERROR: ") if said else "it gave no reason")


def _by_engine(client: APIClient, order: Order, context: IO[bytes]) -> None:
    steps: list[str] = []
    try:
        with engine.told(order.tag, fix="see `docker info`, and free disk space"):
            lines: Iterator[dict[str, Any]] = client.build(
                fileobj=context, custom_context=True, tag=order.tag, platform=f"linux/{order.arch}",
                buildargs=dict(order.arguments), labels=order.labels, rm=True, forcerm=True, decode=True,
            )  # fmt: skip
            _follow(order.tag, lines, steps)
    finally:
        # Steps without a name that nothing stands on: those of a failed build, or of a stage for another processor.
        with suppress(EmuError):  # the engine itself may have gone
            remove_unused(client, steps[::-1])


def _follow(tag: str, lines: Iterator[dict[str, Any]], steps: list[str]) -> None:
    """Read the engine's report to its end; `steps` gets the image of each step."""
    finished = False
    for line in lines:
        if "error" in line:
            raise failure(tag, str(line["error"]))
        if step := _STEP.match(str(line.get("stream", ""))):
            steps.append(step[1])
        finished = finished or "Successfully built" in str(line.get("stream", ""))
    if not finished:
        raise failure(tag, "the engine ended before it had finished")


def failure(tag: str, said: str) -> HostError:
    """The sentence for a builder's complaint."""
    text = " ".join(said.split())
    text = text if len(text) <= 300 else f"... {text[-300:]}"
    if "no space left" in text:
        return HostError("the engine's disk is full", where=tag, fix="free space (docker system prune)")
    if "pull access denied" in text or "dial tcp" in text or "manifest" in text:
        fix = "give it one that is there, or make one: --base bootstrap"
        return HostError(f"its base image cannot be had ({text})", where=tag, fix=fix)
    return HostError(f"it cannot be built ({text})", where=tag, fix="see `docker info`")


def remove_unused(client: APIClient, images: Sequence[str]) -> None:
    """Remove those of these images that have no name (any more) and that nothing uses."""
    from docker.errors import APIError

    with engine.told("the engine"):
        for image in images:
            try:
                if not client.inspect_image(image)["RepoTags"]:
                    client.remove_image(image)
            except APIError as error:
                if error.status_code not in (404, 409):  # gone, or in use
                    raise
