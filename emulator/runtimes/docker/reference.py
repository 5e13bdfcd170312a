"""Names of images: what an engine takes for one, and how to come by one of ours."""

from __future__ import annotations

import re

from emulator.core.processor import ARCHITECTURES
from emulator.core.shipped import shipped

OURS = "emu/"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
#: host, path, tag, digest (the grammar of the distribution project's references)
_REFERENCE = re.compile(
    rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@[a-z0-9]+:[0-9a-fA-F]{{32,}})?"
)


def is_reference(name: str) -> bool:
    """Whether it may name an image: anything else could climb to other places of an engine's API."""
    return _REFERENCE.fullmatch(name) is not None


def how_to_build(name: str, arch: str) -> str:
    """The remedy for an image of ours that is missing and shall be for `arch`."""
    folder, _, tag = name.removeprefix(OURS).partition(":")
    if not (shipped("images") / folder / "Dockerfile").is_file():
        return "emu has no image of that name (see `emu images list`)"
    before = ""
    if tag not in ARCHITECTURES:
        before, tag = f"name it {OURS}{folder}:{arch}, and ", arch
    elif tag != arch:
        before = f"set `arch: {tag}` for the node, and "
    return f"{before}build it with `emu images build {folder} --arch {tag}` (without a registry: --base bootstrap)"
