"""Names of images, how to come by one of ours, and what is taken from an image."""

from __future__ import annotations

import pytest

from emulator.core.errors import UsageError
from emulator.images.base import check_base
from emulator.runtimes.docker import container, image
from emulator.runtimes.docker.reference import how_to_build, is_reference

GOOD = ["alpine", "alpine:3", "emu/base:amd64", "host.org:5000/a/b_c/d-e:v1.2_x", "sha256:" + "a" * 64]
GOOD += ["alpine@sha256:" + "0" * 64, "7b5271136567"]
BAD = [
    "../containers",
    "a/../b",
    "/a",
    "a/",
    "A",
    "a b",
    " ",
    "",
    "a:",
    "a:b:c",
    "a@b",
    "\u00fcmlaut",
    "a\n",
    "a?x=1",
    "-a",
]


@pytest.mark.parametrize("name", GOOD)
def test_names_that_engines_take(name: str) -> None:
    assert is_reference(name)


@pytest.mark.parametrize("name", BAD)
def test_other_names_reach_no_engine(name: str) -> None:
    client: object = None
    with pytest.raises(UsageError, match="is no image's name"):
        image.have(client, name, "amd64", "n1")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"--base: .* is no image's name"):
        check_base(client, name, "amd64")  # type: ignore[arg-type]
    assert not image.is_there(name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("emu/base:amd64", "build it with `emu images build base --arch amd64` (without a registry: --base bootstrap)"),
        ("emu/base:arm64", "set `arch: arm64` for the node, and build it with `emu images build base --arch arm64`"),
        ("emu/torch", "name it emu/torch:amd64, and build it with `emu images build torch --arch amd64`"),
        ("emu/nosuch:amd64", "emu has no image of that name"),
    ],
)
def test_the_remedy_for_an_image_of_ours_makes_that_image(name: str, remedy: str) -> None:
    assert how_to_build(name, "amd64").startswith(remedy)


def test_the_environment_is_the_images_then_the_nodes() -> None:
    found = {"Config": {"Env": ["A=1", "B=2=3", "NOEQUALS", "EMU_LAB=other"]}}
    given = [("A", "mine"), ("EMU_LAB", "this")]
    assert dict(container.environment(found, given)) == {"A": "mine", "B": "2=3", "EMU_LAB": "this"}
    assert container.environment({"Config": {"Env": None}}, []) == ()


def test_what_a_container_printed_cannot_drive_the_terminal() -> None:
    class Client:
        def logs(self, _container: str, tail: int) -> bytes:
            assert tail == 5
            return b"\x1b[31mred\x07\n\xff end\n"

    assert container.last_words(Client(), "c") == "\\x1b[31mred\\x07 / \ufffd end"  # type: ignore[arg-type]
