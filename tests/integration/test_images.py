"""Building with a real engine: tags, labels, what a rebuild and a failure leave."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import HostError, UsageError
from emulator.core.processor import host_arch
from emulator.images import base, builder, context
from emulator.images.builder import Order
from emulator.runtimes.docker import engine

pytestmark = pytest.mark.needs("docker")
TAG = f"emu-test/image:{os.getpid()}"


@pytest.fixture(params=["engine", pytest.param("buildx", marks=pytest.mark.needs("buildx"))])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An engine's client, with which the one or the other builder builds."""
    monkeypatch.setattr(builder, "has_buildx", lambda _client: request.param == "buildx")
    found = engine.client()
    yield found
    for image in found.images(name=TAG):
        found.remove_image(TAG, force=True)
        assert image


def build(client: Any, folder: Path, dockerfile: str) -> None:
    (folder / "Dockerfile").write_text(dockerfile)
    packed = io.BytesIO()
    context.pack(packed, {path.name: path for path in folder.iterdir()})
    with (folder.parent / "context.tar").open("w+b") as file:
        file.write(packed.getvalue())
        file.seek(0)
        builder.build(client, Order(TAG, host_arch(), {"WORD": "one"}), file)


def dangling(client: Any) -> set[str]:
    return {str(image["Id"]) for image in client.images(filters={"dangling": True})}


def test_an_image_is_built_labelled_cached_and_replaced(client: Any, tmp_path: Path) -> None:
    folder, before = tmp_path / "context", dangling(client)
    folder.mkdir()
    (folder / "file").write_text("1")
    # A stage that is not the image's, as in images/base, must leave nothing either.
    below = f"FROM emu/base:{host_arch()}"
    text = f"{below} AS other\nENV A=b\n{below}\nARG WORD\nENV W=$WORD\nCOPY file /file\n"
    build(client, folder, text)
    first = client.inspect_image(TAG)
    assert first["Config"]["Labels"][builder.LABEL] == "image" and "W=one" in first["Config"]["Env"]
    assert first["Architecture"] == host_arch()
    build(client, folder, text)
    assert client.inspect_image(TAG)["RootFS"] == first["RootFS"], "the same files made another image"
    (folder / "file").write_text("2")
    build(client, folder, text)
    assert client.inspect_image(TAG)["RootFS"] != first["RootFS"]
    builder.remove_unused(client, [first["Id"], client.inspect_image(TAG)["Id"], "0" * 64])
    assert dangling(client) == before
    assert client.inspect_image(TAG), "an image with a name was removed"


def test_a_failed_build_leaves_nothing(client: Any, tmp_path: Path) -> None:
    folder, before = tmp_path / "context", dangling(client)
    folder.mkdir()
    with pytest.raises(HostError, match=f"{TAG}: it cannot be built .*missing"):
        build(client, folder, f"FROM emu/base:{host_arch()}\nENV W={os.getpid()}\nCOPY missing /x\n")
    assert client.images(name=TAG) == [] and dangling(client) == before


def test_what_images_start_from_must_have_the_right_python(monkeypatch: pytest.MonkeyPatch) -> None:
    client = engine.client()
    name = f"emu/base:{host_arch()}"
    base.check_base(client, name, host_arch())
    other = "arm64" if host_arch() == "amd64" else "amd64"
    with pytest.raises(UsageError, match=f"is for {host_arch()}, not {other}; pull it for {other}"):
        base.check_base(client, name, other)
    monkeypatch.setattr(base.wheels, "PYTHON", "3.99")
    with pytest.raises(UsageError, match=r"has Python 3\.\d+, and the packages are for Python 3\.99; name one"):
        base.check_base(client, name, host_arch())
