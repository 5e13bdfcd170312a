"""The set of one CPU in the kernel's notation (lib/bitmap.c: bitmap_parse)."""

from __future__ import annotations

import pytest

from emulator.links.netem_order import mask


@pytest.mark.parametrize(("cpu", "text"), [(0, "1"), (3, "8"), (31, "80000000"), (32, "1,0"), (65, "2,0,0")])
def test_mask(cpu: int, text: str) -> None:
    assert mask(cpu) == text
