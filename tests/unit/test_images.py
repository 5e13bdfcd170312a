"""Building images: the order, the context that an engine gets, and packages that cannot be had."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from emulator.core.errors import HostError, UsageError
from emulator.images import bootstrap, build, wheels


def test_an_image_comes_after_the_one_that_it_stands_on() -> None:
    assert build.names() == ["base", "torch"]
    assert build.parent("torch") == "base"
    assert build.parent("base") is None


@pytest.mark.parametrize("arch", build.ARCHITECTURES)
@pytest.mark.parametrize("name", ["base", "torch"])
def test_every_package_is_pinned_with_a_hash(name: str, arch: str) -> None:
    lines = (build.FOLDER / name / f"requirements-{arch}.txt").read_text().splitlines()
    assert lines
    for line in lines:
        package, _, digest = line.partition(" --hash=sha256:")
        assert "==" in package and len(digest) == 64


def test_the_same_files_make_the_same_context(tmp_path: Path) -> None:
    def context(where: str, order: list[str]) -> bytes:
        folder = tmp_path / where / "site"
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
        for name in order:
            (folder / name).write_text(name)
        made = io.BytesIO()
        build._pack(made, {"site": folder, "Dockerfile": folder / "a"})
        return made.getvalue()

    first = context("one", ["a", "b"])
    assert first == context("two", ["b", "a"])
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["Dockerfile", "site", "site/a", "site/b"]
        assert {item.mtime for item in archive} == {0}


def test_an_unknown_image_is_named_before_an_engine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with pytest.raises(UsageError, match="there is no image 'chainer'; use one of base, torch"):
        build.build(["chainer"], ["amd64"], None, print)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "ERROR: No matching distribution found for torch==2.13.0+cpu",
            "a wheel for arm64 is missing .* PIP_EXTRA_INDEX_URL",
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "a wheel is not the one that is pinned"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: connection broken", "cannot be fetched .connection broken.; check the network"),
    ],
)
def test_packages_that_cannot_be_had_are_one_sentence(said: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        raise wheels._failure(said, Path("requirements-arm64.txt"), "arm64")


def test_packages_of_a_failed_download_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_arguments: list[str], _requirements: Path, _arch: str, target: Path) -> str:
        target.mkdir()
        raise HostError("no network", fix="wait")

    monkeypatch.setattr(wheels, "_pip", fail)
    with pytest.raises(HostError, match="no network"):
        wheels.install(Path("r.txt"), "amd64", tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_a_bootstrap_needs_its_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="mmdebstrap is not installed; apt install mmdebstrap"):
        bootstrap.tar("amd64", False, tmp_path / "cache", print)
    assert not (tmp_path / "cache").exists()
