"""HPL's program, built once from Debian's source package hpcc into the user's cache.

hpcc carries HPL as a library; all of it but hpcc's other tests is compiled with `main.c`, against the host's Open MPI
and OpenBLAS. The source is fetched by apt-get with the host's own package sources, whose lists are read into a folder
beside, so that nothing of the system is changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.cache import user_cache
from emulator.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: a program to use instead of one built here
ENV_PROGRAM = "EMU_XHPL"
PACKAGE = "hpcc"
#: HPL_NO_MPI_DATATYPE: what it does otherwise calls functions that MPI 3 has removed
FLAGS = ("-O2", "-w", "-DHPL_NO_MPI_DATATYPE", "-DAdd_", "-DF77_INTEGER=int", "-DStringSunStyle", "-Iinclude")
LIBRARIES = ("-lopenblas", "-lm")
SOURCES = ("src/*/*.c", "testing/matgen/*.c", "testing/pmatgen/*.c", "testing/timer/*.c", "testing/ptimer/*.c",
           "testing/ptest/*.c")  # fmt: skip
MAIN = Path(__file__).parent / "main.c"
_INSTALL = "`apt-get install gcc openmpi-bin libopenmpi-dev libopenblas-dev` on Debian"
_OWN = f"build xhpl from HPL's source yourself and name it in {ENV_PROGRAM}"


def program(say: Callable[[str], None]) -> Path:
    """xhpl, built where the cache has none yet (half a minute). Raises HostError with what to install."""
    from emulator.images.cache import made

    if shutil.which("mpirun") is None:
        raise HostError("HPL needs Open MPI, and there is no mpirun", fix=_INSTALL)
    given = os.environ.get(ENV_PROGRAM)
    if given:
        if not os.access(given, os.X_OK) or not Path(given).is_file():
            raise HostError("this is no program", where=f"{ENV_PROGRAM}={given}", fix="name an xhpl that may be run")
        return Path(given)
    if shutil.which("mpicc") is None:
        raise HostError("HPL is built with mpicc at its first use, and there is none", fix=_INSTALL)
    return made(user_cache() / "hpl" / f"xhpl-{_key()}", lambda partial: _make(partial, say), say)


@cache
def _key() -> str:
    """Of what the program is made, in short: another MPI needs another program."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    text = "\n".join([MAIN.read_text(encoding="utf-8"), *FLAGS, *LIBRARIES, *SOURCES, version.partition("\n")[0]])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _make(partial: Path, say: Callable[[str], None]) -> None:
    say("HPL: fetching its source (Debian's package hpcc) and building it, once")
    folder = partial.parent
    source = _unpack(_fetch(folder), folder)
    shutil.copy(MAIN, source)
    files = sorted(str(path.relative_to(source)) for pattern in SOURCES for path in source.glob(pattern))
    if not files:
        raise HostError(f"the source package {PACKAGE} holds no HPL as it is known", fix=_OWN)
    done = _run(["mpicc", *FLAGS, "-o", str(partial), MAIN.name, *files, *LIBRARIES], source)
    if done.returncode:
        lacks = "openblas" in done.stderr
        fix = _INSTALL if lacks else f"mend that, or {_OWN}"
        raise HostError(f"HPL cannot be built ({_last(done.stderr)})", where="mpicc", fix=fix)


def _fetch(folder: Path) -> Path:
    """The package's source as it came from its authors; apt checks its signature."""
    if shutil.which("apt-get") is None:
        raise HostError(f"HPL's source is fetched by apt-get, and there is none here; {_OWN}", fix=_INSTALL)
    parts, lists = folder / "sources", folder / "lists"
    parts.mkdir()
    lists.mkdir()
    for number, (name, text) in enumerate(_sources().items()):
        (parts / f"{number}{Path(name).suffix}").write_text(text, encoding="utf-8")
    settings = folder / "apt.conf"
    values = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(parts),
        "Dir::State::lists": str(lists),
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
    }
    settings.write_text("".join(f'{key} "{value}";\n' for key, value in values.items()), encoding="utf-8")
    environment = {"APT_CONFIG": str(settings)}
    updated = _run(["apt-get", "update", "-qq"], folder, environment)
    done = _run(["apt-get", "source", "-qq", "--download-only", "--tar-only", PACKAGE], folder, environment)
    found = next(iter(sorted(folder.glob(f"{PACKAGE}_*.orig.tar.*"))), None)
    if done.returncode or found is None:
        why = _last(updated.stderr or done.stderr)
        fix = f"see that this host reaches its package sources, and that they are Debian's, then try again; or {_OWN}"
        raise HostError(f"HPL's source (package {PACKAGE}) cannot be fetched ({why})", where="apt-get source", fix=fix)
    return found


def _sources(root: Path = Path("/etc/apt")) -> dict[str, str]:
    """The host's package sources by file, each turned into one of source packages."""
    found = {}
    for path in [root / "sources.list", *sorted((root / "sources.list.d").glob("*"))]:
        if path.suffix not in (".list", ".sources") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".list":
            text = re.sub(r"^\s*deb\s", "deb-src ", text, flags=re.MULTILINE)
        else:
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE | re.IGNORECASE)
        found[path.name] = text
    return found


def _unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
    source = next(iter(sorted(folder.glob(f"{PACKAGE}-*/hpl"))), None)
    if source is None:
        raise HostError(f"the source package {PACKAGE} holds no HPL as it is known", where=archive.name, fix=_OWN)
    return source


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    values = os.environ | {"LC_ALL": "C"} | dict(environment or {})
    return subprocess.run(command, cwd=folder, env=values, capture_output=True, text=True, check=False)


def _last(text: str) -> str:
    """The line that tells most: the last error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b|^E:|cannot find", line)]
    return (errors or lines or ["it says nothing"])[-1][:200]
