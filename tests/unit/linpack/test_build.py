"""HPL's program: from the cache, the user's own, or a sentence with what is lacking."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import HostError
from emulator.experiment.linpack import build


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with mpirun and mpicc only, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpirun", "mpicc"):
        program(folder, name, "echo 'mpirun 4.1'")
    monkeypatch.setenv("PATH", f"{folder}:/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.ENV_PROGRAM, raising=False)
    build._key.cache_clear()
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_without_apt_get_the_remedy_is_an_own_program(tools: Path) -> None:
    with pytest.raises(HostError, match=r"fetched by apt-get, and there is none here; build xhpl .* EMU_XHPL"):
        build.program(print)


def test_without_a_compiler(tools: Path) -> None:
    (tools / "mpicc").unlink()
    with pytest.raises(HostError, match=r"built with mpicc at its first use, and there is none; `apt-get install gcc"):
        build.program(print)


def test_without_a_network(tools: Path, tmp_path: Path) -> None:
    program(tools, "apt-get", "echo 'E: Could not resolve the mirror' >&2; exit 100")
    with pytest.raises(HostError, match=r"cannot be fetched \(E: Could not resolve the mirror\); see that this host"):
        build.program(print)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_own_program_is_used(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools, "xhpl", "true")
    monkeypatch.setenv(build.ENV_PROGRAM, str(tools / "xhpl"))
    assert build.program(print) == tools / "xhpl"
    monkeypatch.setenv(build.ENV_PROGRAM, str(tools))
    with pytest.raises(HostError, match="this is no program; name an xhpl that may be run"):
        build.program(print)


def test_package_sources_become_those_of_source_packages(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (tmp_path / "sources.list").write_text("# deb old\ndeb [arch=amd64] http://example.org/debian bookworm main\n")
    (folder / "debian.sources").write_text("Types: deb\nURIs: http://example.org/debian\nSuites: bookworm\n")
    (folder / "off.sources.disabled").write_text("Types: deb\n")
    found = build._sources(tmp_path)
    assert found == {
        "sources.list": "# deb old\ndeb-src [arch=amd64] http://example.org/debian bookworm main\n",
        "debian.sources": "Types: deb-src\nURIs: http://example.org/debian\nSuites: bookworm\n",
    }
