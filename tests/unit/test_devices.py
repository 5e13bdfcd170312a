"""Device profiles."""

from __future__ import annotations

import pytest

from emulator.core.errors import TopologyError
from emulator.devices import names, profile


@pytest.mark.parametrize("name", names())
def test_every_figure_has_a_source(name: str) -> None:
    device = profile(name)
    assert device.title
    for figure in (device.cores, device.memory, device.sgemm_gflops):
        assert figure is None or (figure.value > 0 and figure.source)
    if device.sgemm_gflops:
        assert device.sgemm_gflops.derived, "no public source gives an SGEMM figure of a board"


def test_a_pi_4_is_worth_its_derived_figure() -> None:
    device = profile("rpi-4")
    assert device.core_gflops == pytest.approx(15.8 / 4)
    assert device.memory
    assert device.memory.value == 4 * 2**30


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(TopologyError, match="no device 'rpi4'; did you mean 'rpi-4'"):
        profile("rpi4")
    with pytest.raises(TopologyError, match="use one of cm4"):
        profile("../../etc/passwd")
