"""`emu devices measure`: run on a real board, writes a profile of it, and a JSON of all that was read.

Also `python -m emulator.devices.measure`, which needs Python and numpy only (torch for torch's kernels). Figures
that could not be taken are left out of the profile and said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import DeviceError, HostError, UsageError
from emulator.core.version import VERSION
from emulator.devices import checks, cores, folders, machine, storage
from emulator.devices.figures import KINDS, Figure, text
from emulator.devices.kernels.register import ONE_THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAM = "emulator.devices.kernels"
#: a profile's figure <- the kernel that it is read from, on all cores, and how
FROM_KERNELS = {
    "hpl": ("dgemm", "emu's DGEMM: HPL comes to within a few per cent of it on a problem that fills the memory"),
    "sgemm": ("sgemm", ""),
    "stream_copy": ("copy", ""),
    "stream_scale": ("scale", ""),
    "stream_add": ("add", ""),
    "stream_triad": ("triad", ""),
    "memcpy": ("memcpy", ""),
    "sevenzip_all": ("sevenzip", ""),
}
#: of the kernels on one core
FROM_ONE = {"sevenzip_one": ("sevenzip", "")}
#: what this program has no kernel for
NOT_TAKEN = {
    "nic_tcp": "run iperf3 against another machine and add it",
    "idle": "needs a power meter",
    "loaded": "needs a power meter",
    "hpl_power": "needs a power meter",
    "training": "add the seconds of a step that you measured",
    "thermal": "add at which temperature the clock falls",
}
TIMEOUT = 900.0


@dataclass
class Taken:
    """What was measured: figures (value, source, derived, conditions), what was left out and why, and all readings."""

    title: str
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    readings: dict[str, Any] = field(default_factory=dict)


def run(out: Path, *, title: str = "", seconds: float = 2.0, interface: str = "", force: bool = False) -> None:
    """Measure this machine and write `out` (a profile, whose name is the device's) and beside it a .json.

    Raises UsageError for a name that no device can have or a file that is there, HostError where nothing can be
    measured, DeviceError where the figures contradict each other (the JSON is written all the same).
    """
    readings_file = out.with_suffix(".json")
    _check(out, readings_file, seconds, force)
    taken = take(title, seconds, interface, out.resolve().parent)
    _write(readings_file, json.dumps(_carried(taken), indent=1) + "\n")
    _say(f"{readings_file}: all readings")
    # Not by reading the text again: a board need not have a reader of YAML.
    for _, what, fix in checks.contradictions(_figures(taken), ()):
        raise DeviceError(what, where=str(readings_file), fix=fix)
    _write(out, as_yaml(taken))
    for key, figure in taken.figures.items():
        _say(f"{KINDS[key].meaning}: {text(key, figure['value'])}")
    for key, why in taken.left_out.items():
        _say(f"left out: {key} ({why})")
    _say(f"{out}: the profile; put it into ./devices or a folder of {folders.VARIABLE} and name `device: {out.stem}`")


def take(title: str, seconds: float, interface: str, folder: Path) -> Taken:
    """Measure everything; `folder` is where the storage is measured."""
    taken = Taken(title or machine.model() or "a board", left_out=dict(NOT_TAKEN))
    source = f"measured on the board by emu {VERSION}, {date.today().isoformat()}, Linux {os.uname().release}"
    for key, (value, how) in machine.figures().items():
        taken.figures[key] = {"value": value, "source": f"{source}: {how}", "conditions": {}}
    for key in ("clock", "memory", "l1d", "l1i", "l2", "l3"):
        if key not in taken.figures:
            taken.left_out[key] = "the kernel does not tell it"
    with _watched(taken):
        _kernels(taken, seconds, source)
    _network(taken, interface, source)
    _storage(taken, folder, seconds, source)
    return taken


@contextmanager
def _watched(taken: Taken) -> Iterator[None]:
    """Note who else used the machine while its kernels ran."""
    from emulator.devices.quiet import Watch, warnings

    watch = Watch()
    yield
    busy = watch.use().why_busy(os.cpu_count() or 1)
    taken.readings |= {"busy": busy, "warnings": warnings()}
    for warning in taken.readings["warnings"]:
        _say(f"warning: {warning}")
    if busy:
        _say(f"warning: the machine was busy meanwhile: {busy}; measure again on a quiet one")
        for figure in taken.figures.values():
            if "kernel" in figure["conditions"]:
                figure["conditions"]["busy"] = busy


def _kernels(taken: Taken, seconds: float, source: str) -> None:
    count = int(taken.figures["cores"]["value"])
    _say(f"measuring the kernels on one core and on {count}: about {28 * seconds + 10:.0f} s")
    one = _program("--seconds", str(seconds))
    each = _program("--seconds", str(seconds), "--threads", str(count)) if count > 1 else one
    taken.readings |= {"one_core": one, "all_cores": each}
    versions = {key: str(value) for key, value in each["versions"].items() if value}
    for run, threads, wanted in ((one, 1, FROM_ONE), (each, count, FROM_KERNELS)):
        for key, (kernel, derived) in wanted.items():
            reading = run["kernels"].get(kernel)
            if reading is None:
                taken.left_out[key] = run["left_out"].get(kernel, "the kernel did not run")
                continue
            taken.figures[key] = {
                "value": reading["best"],
                "source": source,
                "derived": derived,
                "conditions": {
                    "kernel": kernel,
                    "size": reading["size"],
                    "threads": str(1 if kernel in ONE_THREAD else threads),
                }
                | {"middle round": f"{reading['median'] / reading['best'] * 100:.0f} % of the best"}
                | {name: versions[name] for name in ("numpy",) if name in versions},
            }
    for kernel, why in each["left_out"].items():
        taken.left_out[kernel] = why


def _program(*options: str) -> dict[str, Any]:
    """Run the kernels' program; raises HostError where it fails."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, "-m", PROGRAM, *options]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd="/"
        )
        found: dict[str, Any] = json.loads(done.stdout)
        if found["kernels"]:
            return found
        reason = "; ".join(sorted(set(found["left_out"].values())))
    except subprocess.TimeoutExpired:
        reason = f"no answer within {TIMEOUT:.0f} s"
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    raise HostError(
        f"this machine cannot be measured ({reason})",
        where=f"python -m {PROGRAM}",
        fix="run that command to see why; it needs numpy (on a Pi: apt install python3-numpy)",
    )


def _network(taken: Taken, interface: str, source: str) -> None:
    name = interface or machine.interface()
    rate = machine.line_rate(name) if name else None
    if rate is None:
        said = f"{name} does not tell its rate" if name else "there is no default route"
        taken.left_out["nic"] = f"{said}; name the port by --interface, or add it"
        return
    taken.figures["nic"] = {
        "value": rate,
        "source": f"{source}: as the line was agreed",
        "conditions": {"interface": name},
    }


def _storage(taken: Taken, folder: Path, seconds: float, source: str) -> None:
    _say(f"measuring the storage in {folder}: a file of {storage.SIZE >> 20} MiB, removed after")
    names = ("storage_read", "storage_write", "storage_read_4k", "storage_write_4k")
    try:
        found = storage.measure(folder, seconds)
    except OSError as error:
        why = "its file system knows no O_DIRECT" if error.errno == 22 else error.strerror
        taken.left_out |= dict.fromkeys(names, f"{folder}: {why}")
        return
    for key in names:
        how = "random 4 KiB, one at a time" if key.endswith("4k") else "sequential, 1 MiB blocks"
        taken.figures[key] = {"value": found[key], "source": source, "conditions": {"access": f"{how}, O_DIRECT"}}


def _figures(taken: Taken) -> dict[str, Figure]:
    return {key: Figure(one["value"], KINDS[key].unit, one["source"]) for key, one in taken.figures.items()}


def as_yaml(taken: Taken) -> str:
    """The profile's text. JSON strings are YAML's too, so that no name can break it."""
    lines = [f"title: {json.dumps(taken.title)}"]
    here = cores.of_host()
    if len(here) == 1 and " " not in here[0]:
        lines.append(f"cpu_model: {here[0]}")
    for key in KINDS:
        figure = taken.figures.get(key)
        if figure is None:
            continue
        lines += [f"{key}:", f"  value: {text(key, figure['value'])}", f"  source: {json.dumps(figure['source'])}"]
        if figure.get("derived"):
            lines.append(f"  derived: {json.dumps(figure['derived'])}")
        if figure["conditions"]:
            lines.append(f"  conditions: {json.dumps(figure['conditions'])}")
    lines += ["", "# Left out:"] + [f"#   {key}: {why}" for key, why in taken.left_out.items()]
    return "\n".join(lines) + "\n"


def _carried(taken: Taken) -> Mapping[str, Any]:
    return {
        "emu": VERSION,
        "title": taken.title,
        "machine": os.uname().machine,
        "kernel": os.uname().release,
        "figures": taken.figures,
        "left_out": taken.left_out,
        "readings": taken.readings,
    }


def _check(out: Path, readings: Path, seconds: float, force: bool) -> None:
    if out.suffix != ".yaml" or not folders.NAME.match(out.stem):
        raise UsageError(
            f"{out.name!r} is no profile's name", where="--out", fix="use a-z, 0-9, . and -, and end it with .yaml"
        )
    if (folders.SHIPPED / out.name).exists():
        raise UsageError(f"a device {out.stem!r} ships with emu", where="--out", fix="take another name")
    if not 0 < seconds <= 60:
        raise UsageError(f"{seconds:g} seconds a kernel cannot be", where="--seconds", fix="use up to 60")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", where="--out", fix="make it first")
    for path in (out, readings):
        if path.exists() and not force:
            raise UsageError(f"{path} is there already", where="--out", fix="take another name, or add --force")


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content)
    except OSError as error:
        raise DeviceError(
            f"the profile cannot be written ({error.strerror})", where=str(path), fix="choose another folder by --out"
        ) from None


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> None:
    """The command line of `python -m emulator.devices.measure`."""
    import argparse

    from emulator.core.errors import EmuError

    parser = argparse.ArgumentParser(prog="python -m emulator.devices.measure", description="Measure this board.")
    parser.add_argument("--out", type=Path, default=Path("my-board.yaml"), help="the profile to write")
    parser.add_argument("--title", default="", help="what the board is called")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each kernel is measured")
    parser.add_argument("--interface", default="", help="the network port")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    try:
        run(**vars(parser.parse_args()))
    except EmuError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
