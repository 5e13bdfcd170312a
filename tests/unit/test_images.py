"""Building images: the order, the context that an engine gets, and packages that cannot be had."""

from __future__ import annotations

import errno
import io
import os
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emulator.core import code
from emulator.core.errors import HostError, UsageError
from emulator.core.processor import ARCHITECTURES
from emulator.images import bootstrap, build, builder, bytecode, cache, context, wheels


def test_an_image_comes_after_the_one_that_it_stands_on() -> None:
    assert build.names() == ["base", "torch", "emu"]
    assert [build.parent(name) for name in build.names()] == [None, "base", "torch"]
    assert build.chosen(["emu"]) == build.chosen([]) == ["base", "torch", "emu"]
    assert build.chosen(["torch"]) == ["base", "torch"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["base", "torch"])
def test_every_package_is_pinned_with_a_hash(name: str, arch: str) -> None:
    lines = (build.FOLDER / name / f"requirements-{arch}.txt").read_text().splitlines()
    assert lines
    for line in lines:
        package, _, digest = line.partition(" --hash=sha256:")
        assert "==" in package and len(digest) == 64


def test_the_same_files_make_the_same_context(tmp_path: Path) -> None:
    def packed(where: str, order: list[str]) -> bytes:
        folder = tmp_path / where / "site"
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
        for name in order:
            (folder / name).write_text(name)
        made = io.BytesIO()
        context.pack(made, {"site": folder, "emulator": folder, "Dockerfile": folder / "a"})
        return made.getvalue()

    first = packed("one", ["a", "b"])
    assert first == packed("two", ["b", "a"])
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        code, packages = (
            ["emulator", "emulator/a", "emulator/b"],
            ["site", "site/__pycache__", "site/__pycache__/x.pyc"],
        )
        assert archive.getnames() == ["Dockerfile", *code, *packages, "site/a", "site/b"]
        assert {item.mtime for item in archive} == {0}


@pytest.mark.skipif(not bytecode.can_compile(), reason="another Python than the images'")
def test_packages_are_compiled_the_same_each_time(tmp_path: Path) -> None:
    def compiled(where: str, when: float) -> dict[str, bytes]:
        folder = tmp_path / where / "site"
        folder.mkdir(parents=True)
        for name, text in (("good.py", "def f():\n    return 1\n"), ("bad.py", "print 1\n")):
            (folder / name).write_text(text)
            os.utime(folder / name, (when, when))
        bytecode.compile_all(folder, "/opt/site")
        return {path.name: path.read_bytes() for path in folder.glob("__pycache__/*")}

    first = compiled("one", 1e9)
    assert len(first) == 1 and first == compiled("two", 1.1e9)
    (content,) = first.values()
    assert b"/opt/site/good.py" in content and str(tmp_path).encode() not in content


def test_an_unknown_image_is_named_before_an_engine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with pytest.raises(UsageError, match="there is no image 'torhc'; did you mean 'torch'"):
        build.build(["torhc"], ["amd64"], None, print)


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


def test_what_cannot_be_made_leaves_nothing_and_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    def fail(partial: Path) -> None:
        (partial.parent / "half").write_text("x")
        raise HostError("no network", fix="wait")

    with pytest.raises(HostError, match="no network"):
        cache.made(tmp_path / "site", fail, print)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".site-part-dead").mkdir()
    assert cache.made(tmp_path / "site", Path.touch, print) == tmp_path / "site"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_one_entry_of_the_cache_is_made_by_one_process_at_a_time(tmp_path: Path) -> None:
    made: list[Path] = []

    def slowly(partial: Path) -> None:
        time.sleep(0.2)
        made.append(partial)
        partial.touch()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: cache.made(tmp_path / "site", slowly, print), range(3)))
    assert len(made) == 1


def test_two_builds_come_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    heard: list[str] = []

    def build_one(name: str) -> None:
        with cache.alone(heard.append):
            heard.append(f"{name} begins")
            time.sleep(0.2)
            heard.append(f"{name} ends")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build_one, ["x", "y"]))
    assert "another emu is building images, waiting" in heard
    told = [line for line in heard if line[1] == " "]
    assert [line[2:] for line in told] == ["begins", "ends"] * 2 and told[0][0] == told[1][0]
    assert list(cache.directory().iterdir()) == []


def test_a_full_disk_of_the_cache_is_one_sentence(tmp_path: Path) -> None:
    def full(_partial: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(HostError, match="the disk is full; free space, or set XDG_CACHE_HOME"):
        cache.made(tmp_path / "site", full, print)
    assert list(tmp_path.iterdir()) == []


def test_buildx_builds_for_one_processor_into_the_engine_that_emu_uses() -> None:
    order = builder.Order("emu/torch:arm64", "arm64", {"BASE": "emu/base:arm64"})
    assert " ".join(builder.buildx_command(order)) == (
        "docker buildx build --builder default --load --progress plain --platform linux/arm64 --tag emu/torch:arm64 "
        "--label emu.image=torch --build-arg BASE=emu/base:arm64 -"
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("write /layer: no space left on device", "the engine's disk is full; free space"),
        ("pull access denied for nosuch", "its base image cannot be had .* --base bootstrap"),
        ("the engine ended before it had finished", "it cannot be built .the engine ended"),
    ],
)
def test_a_builders_complaint_is_one_sentence(said: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        raise builder.failure("emu/base:amd64", said)


def test_the_contexts_of_a_bake_hold_what_the_dockerfiles_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "install", lambda _requirements, _arch, target: (target / "numpy").mkdir(parents=True))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):  # what was prepared before is replaced
        made = build.prepare(["emu"], ["arm64"], None, tmp_path / "to", print)
    assert [path.name for path in made] == ["base-arm64", "torch-arm64", "emu-arm64"]
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted(path.name for path in made)
    assert f"LABEL emu.code={code.digest()}\n" in (made[0] / "Dockerfile").read_text(), "which roles it holds"
    bake = (build.FOLDER / "docker-bake.hcl").read_text()
    for folder in made:
        lines = (folder / "Dockerfile").read_text().splitlines()
        copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
        assert copied and all((folder / name).exists() for name in copied)
        assert f'target "{folder.name.partition("-")[0]}"' in bake
    assert (made[2] / "shipped" / "topologies" / "wan-10.yaml").is_file()
    assert not list(made[0].rglob("__pycache__"))


def test_a_bootstrap_needs_its_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="mmdebstrap is not installed; apt install mmdebstrap"):
        bootstrap.tar("amd64", False, tmp_path / "cache", print)
    assert not (tmp_path / "cache").exists()
