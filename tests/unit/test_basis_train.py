"""`calibrate: train:MODEL` and sevenzip, and an experiment's own step: what a node gets, and what the virtual clock
charges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.core.errors import TopologyError
from emulator.core.units import Share
from emulator.devices import host_step, roofline
from emulator.devices.basis import AUTO, OWN, basis
from emulator.devices.caps import Asked, caps
from emulator.devices.host import HostSpeed, memory_here
from emulator.devices.profile import profile
from emulator.devices.speed import Speed
from emulator.devices.workload import Operator, Own, Step, reference

HOST = HostSpeed(gflops=100.0, cores=2, memory=memory_here())
PI = profile("rpi-4")
STEP = Step("mine", 10, 28, 1000, (Operator("matrix", "forward", 2e8, 1e6), Operator("pass", "forward", 0.0, 4e6)))
CHARGED = 1e9


def _device_seconds(step: Step) -> float:
    known = roofline.of(PI)
    assert known is not None
    return known.seconds(step)


def test_a_reference_step_takes_as_long_on_the_node_as_on_the_device() -> None:
    by = basis("train:resnet34", PI, HOST, 1.0)
    cpus = by.cpus(4, 1.0, HOST.cores)
    assert 1 / by.speed.one / cpus == pytest.approx(_device_seconds(reference("resnet34")))
    assert by.cpus(4, 0.5, HOST.cores) == pytest.approx(2 * cpus)


def test_models_are_worth_different_shares_of_a_host_core() -> None:
    worth = {model: basis(f"train:{model}", PI, HOST, 1.0).worth for model in ("resnet18", "mnasnet")}
    assert worth["resnet18"] > 1.2 * worth["mnasnet"]


def test_a_step_that_this_host_has_measured_goes_before_a_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_step, "find_spec", lambda _name: object())
    measured = replace(HOST, measure=lambda names: {name: Speed.plain(0.5, 2, "step/s") for name in names})
    by = basis("train:resnet18", PI, measured, 1.0)
    assert by.speed.one == 0.5 and by.figures.endswith("2 s on a core here, measured")


def test_whole_numbers_are_compared_by_7_zip() -> None:
    measured = replace(
        HOST, measure=lambda names: {name: Speed.plain(2812.5, 2, "million instructions/s") for name in names}
    )
    by = basis("sevenzip", PI, measured, 1.0)
    assert by.worth == pytest.approx(0.5) and by.figures == "1406 of 2812 MIPS, 7-Zip"
    assert by.cpus(4, 2.0, HOST.cores) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asked", "device", "said"),
    [
        ("train:resnet19", "rpi-4", "there is no reference model 'resnet19'"),
        ("train:resnet18", "server", "takes on server is not known"),
        ("sgemm", "server", "server has no single-precision figure"),
        ("sevenzip", "server", "server has no 7-Zip figure"),
    ],
)
def test_what_cannot_be_compared_is_refused(asked: str, device: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said) as caught:
        basis(asked, profile(device), HOST, 1.0)
    assert caught.value.fix


def test_an_experiments_own_step_is_what_auto_compares_by() -> None:
    host = replace(HOST, auto=Own(STEP, CHARGED, seconds=0.008))
    found = caps(PI, host, 0.5, Asked(calibrate=AUTO))
    assert found.basis.name == OWN
    assert 0.008 / found.host_cpus == pytest.approx(0.5 * _device_seconds(STEP))


def test_the_virtual_clock_charges_what_the_device_takes_for_the_own_step() -> None:
    for seconds in (0.008, None):
        found = caps(PI, replace(HOST, auto=Own(STEP, CHARGED, seconds)), 1.0, Asked())
        assert CHARGED / (found.gflops * 1e9) == pytest.approx(_device_seconds(STEP))
        half = caps(PI, replace(HOST, auto=Own(STEP, CHARGED, seconds)), 1.0, Asked(cpus=Share(2)))
        assert half.gflops == pytest.approx(found.gflops / 2)


def test_a_file_that_says_otherwise_goes_before_the_own_step() -> None:
    host = replace(HOST, auto=Own(STEP, CHARGED, 0.008))
    assert caps(PI, host, 1.0, Asked(calibrate="linpack")).basis.name == "linpack"


def test_a_device_of_which_too_little_is_known_is_compared_as_without_an_experiment() -> None:
    host = replace(HOST, auto=Own(STEP, CHARGED, 0.008))
    assert caps(profile("server"), host, 1.0, Asked()) == caps(profile("server"), HOST, 1.0, Asked())


def test_the_prediction_for_this_host_is_slower_with_any_slower_kernel() -> None:
    speeds = {name: Speed.plain(1e10, 2) for name in host_step.KERNELS} | {"dispatch": Speed.plain(1e5, 2)}
    step = reference("mobilenetv3_large")
    usual = host_step.predicted(step, speeds).one
    for name, speed in speeds.items():
        assert host_step.predicted(step, speeds | {name: Speed.plain(speed.one / 2, 2)}).one < usual


def test_an_own_step_travels_as_json() -> None:
    import json
    from dataclasses import asdict

    own = Own(reference("resnet18"), CHARGED, 0.5)
    assert Own.from_dict(json.loads(json.dumps(asdict(own)))) == own
