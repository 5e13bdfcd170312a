"""The packages of an image, and wheels and libraries put into one: each is loaded on the target's core."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import HostError, RuntimeFailure, UsageError
from emulator.isa import container, inside
from emulator.isa.finding import Finding, signal_name
from emulator.isa.target import ARCH

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator, Mapping, Sequence

    from docker.api.client import APIClient

    from emulator.isa.target import Target
    from emulator.isa.wheel import Wheel

_SITE, _LIBRARIES = "site", "lib"
_PARALLEL = 2


def check(
    client: APIClient, name: str, target: Target, seconds: float,
    wheels: Sequence[Wheel] = (), libraries: Sequence[Path] = (),
) -> Iterator[Finding]:  # fmt: skip
    """Check the wheels and libraries in a container of an image; where there are none, all packages of the image.

    `seconds` is the time that each may take. Raises HostError, UsageError and RuntimeFailure.
    """
    found = container.find(client, name, ARCH)
    given = bool(wheels or libraries)
    site = f"{container.FOLDER}/{_SITE}"
    task = {
        "below": [site] if given else None,
        "libraries": [f"{container.FOLDER}/{_LIBRARIES}/{path.name}" for path in libraries],
        "parallel": _PARALLEL,
        "seconds": seconds,
    }

    def pack(archive: tarfile.TarFile) -> None:
        below = container.FOLDER.lstrip("/")
        archive.add(inside.__file__, f"{below}/inside.py")
        for one in wheels:
            one.pack(archive, f"{below}/{_SITE}")
        for path in libraries:
            archive.add(path.resolve(), f"{below}/{_LIBRARIES}/{path.name}")

    environment = {**target.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    if wheels:
        own = dict(item.split("=", 1) for item in found["Config"]["Env"] or ()).get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{site}:{own}" if own else site
    command = ["python3", f"{container.FOLDER}/inside.py", json.dumps(task)]
    box = container.Box()
    subjects: int | None = None
    with closing(container.run(client, found, command, environment, pack, box)) as lines:
        for line in lines:
            told = _read(line, name)
            if "python" in told:
                subjects = told["subjects"]
                _check_python(wheels, told["python"], name)
            else:
                yield finding(told, name, given)
    if subjects is None or box.status != 0:
        yield _dead(box, name, target, subjects is not None)
    elif not subjects:
        yield Finding(name, name, "unknown", detail="no Python package is installed in it", given=True)


def finding(told: Mapping[str, Any], subject: str, given: bool) -> Finding:
    """What a line of `inside` says."""
    outcome: Any = "ok"
    detail = "; ".join(told["errors"])
    if told["late"]:
        outcome = "late"
    elif told["signal"]:
        outcome = "dies"
    elif told["errors"] and not told["did"]:
        outcome = "unknown"
    elif told["exit"]:
        outcome, detail = "unknown", f"it ended the process with exit status {told['exit']} at: {told['step']}"
    return Finding(
        subject, told["name"], outcome, told["version"], tuple(told["did"]),
        signal_name(told["signal"]) if outcome == "dies" else "",
        told["step"], told.get("at", ""), told.get("owner", ""), detail, told["seconds"], given,
    )  # fmt: skip


def _read(line: str, name: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(line)
    except ValueError:
        raise RuntimeFailure(
            f"its Python printed {line[:80]!r} of its own", where=name, fix="check the image"
        ) from None
    return told


def _check_python(wheels: Sequence[Wheel], version: str, name: str) -> None:
    for one in wheels:
        if not one.for_python(version):
            raise UsageError(
                f"the wheel is for {', '.join(one.pythons)}, and {name} has Python {version}",
                where=one.path.name,
                fix="fetch the wheel for that one, or name another image (--image)",
            )


def _dead(box: container.Box, name: str, target: Target, begun: bool) -> Finding:
    """The image's own shell or Python ended before all was checked."""
    if box.status is None:
        return container.shell_died(box, name)
    if box.status > 128:
        step = "checking" if begun else "starting"
        return Finding(name, "python3", "dies", signal=signal_name(box.status - 128), step=step, given=True)
    if box.status == 127 and "python3" in box.errors:
        raise UsageError(
            "the image has no python3, so no packages to import",
            where=name,
            fix=f"check a program that it runs: emu isa-check FILE --image {name} --device {target.device}",
        )
    said = " ".join(box.errors.split())[-300:]
    raise HostError(
        f"its Python ended with exit status {box.status} ({said or 'it said nothing'})",
        where=name,
        fix="the check needs Python 3.8 or newer in the image",
    )
