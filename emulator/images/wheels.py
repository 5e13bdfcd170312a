"""Python packages for an image, fetched on the host for the image's processor: pip under QEMU takes many times as long.

`requirements-<arch>.txt` beside an image's Dockerfile pins every package with the hash of its wheel;
`python -m emulator.images.wheels` writes them anew from `requirements.in` or `requirements-<arch>.in`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from emulator.core.errors import HostError
from emulator.images import cache

#: Debian bookworm's Python, which the images have
PYTHON = "3.11"
_PLATFORMS = {
    "amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
}


def install(requirements: Path, arch: str, target: Path) -> None:
    """Unpack the pinned wheels for `arch` into `target`; raises HostError when one cannot be had or is not as pinned.

    What is there of `target` when it fails is the caller's to remove; the temporary files lie beside it.
    """
    _pip(["install", "--no-deps", "--require-hashes", "--no-compile"], requirements, arch, target)


def lock(wanted: Path, arch: str, *, dependencies: bool) -> str:
    """The text of `requirements-<arch>.txt` for what `wanted` lists: each package with its version and hash.

    Without `dependencies` only what is listed: pip reads a package's conditions as they are on this host.
    """
    arguments = ["install", "--dry-run", "--ignore-installed", "--report", "-"]
    report = _pip([*arguments, *([] if dependencies else ["--no-deps"])], wanted, arch, wanted.parent / ".none")
    lines = []
    for item in json.loads(report)["install"]:
        meta, hashes = item["metadata"], item["download_info"]["archive_info"]["hashes"]
        lines.append(f"{meta['name']}=={meta['version']} --hash=sha256:{hashes['sha256']}")
    return "\n".join(sorted(lines, key=str.lower)) + "\n"


def _pip(arguments: list[str], requirements: Path, arch: str, target: Path) -> str:
    platforms = [word for name in _PLATFORMS[arch] for word in ("--platform", name)]
    python = ["--python-version", PYTHON, "--implementation", "cp", "--abi", f"cp{PYTHON.replace('.', '')}"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, "--quiet"]
    command += ["--target", str(target), "--only-binary=:all:", *platforms, *python, "-r", str(requirements)]
    environment = os.environ | {"TMPDIR": str(target.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise _failure(done.stderr, requirements, arch)
    return done.stdout


def _failure(said: str, requirements: Path, arch: str) -> HostError:
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR:")]
    where = str(requirements)
    if "No space left" in said:
        return cache.full(cache.directory())
    if "No module named pip" in said:
        return HostError("this Python has no pip to fetch packages", where=sys.executable, fix="python3 -m ensurepip")
    if "do not match the hashes" in said.lower():
        return HostError("a wheel is not the one that is pinned", where=where, fix="clear pip's cache, or try again")
    missing = next((line for line in errors if "No matching distribution" in line), "")
    if missing:
        fix = "set PIP_EXTRA_INDEX_URL to an index that has it (torch: https://download.pytorch.org/whl/cpu)"
        return HostError(f"a wheel for {arch} is missing ({missing})", where=where, fix=fix)
    return HostError(
        f"packages for {arch} cannot be fetched ({(errors or [said[-200:]])[0]})", where=where, fix="check the network"
    )


def main() -> None:
    """Pin all images' packages anew."""
    from emulator.images.build import FOLDER, parent

    for folder in sorted({path.parent for path in FOLDER.glob("*/requirements*.in")}):
        for arch in _PLATFORMS:
            source = folder / f"requirements-{arch}.in"
            source = source if source.exists() else folder / "requirements.in"
            text = lock(source, arch, dependencies=parent(folder.name) is None)
            (folder / f"requirements-{arch}.txt").write_text(text)


if __name__ == "__main__":
    main()
