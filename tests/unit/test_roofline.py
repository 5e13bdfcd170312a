"""The workload model: what a step is made of, and how long a device takes for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.core.errors import DeviceError
from emulator.devices import roofline
from emulator.devices.figures import Figure, TrainingFigure
from emulator.devices.profile import DeviceProfile, profile
from emulator.devices.workload import Operator, Step, merged, reference, references

CHECK = ("resnet34", "efficientnet_b0", "mnasnet")


def _figures(**changed: float) -> dict[str, Figure]:
    return {**profile("rpi-4").figures, **{key: Figure(value, "", "test") for key, value in changed.items()}}


def _seconds(device: DeviceProfile, model: str) -> float:
    known = roofline.of(device)
    assert known is not None
    return known.seconds(reference(model))


def test_the_models_outside_the_fit_are_predicted_in_the_right_order_and_within_8_percent() -> None:
    pi = profile("rpi-4")
    measured = roofline.training(pi)
    predicted = {model: _seconds(pi, model) for model in measured}
    assert sorted(predicted, key=predicted.__getitem__) == sorted(measured, key=measured.__getitem__)
    assert set(measured) == {*roofline.FIT, *CHECK}
    for model in CHECK:
        assert predicted[model] == pytest.approx(measured[model], rel=0.08), model


def test_what_is_fitted_comes_out_as_measured() -> None:
    pi = profile("rpi-4")
    for model in roofline.FIT:
        assert _seconds(pi, model) == pytest.approx(roofline.training(pi)[model], rel=1e-9)


def test_the_figures_of_the_check_and_all_others_change_nothing() -> None:
    pi = profile("rpi-4")
    training = tuple(one if one.model in roofline.FIT else replace(one, seconds=one.seconds * 3) for one in pi.training)
    other = {key: figure for key, figure in pi.figures.items() if key in ("hpl", "stream_triad")}
    assert roofline.of(replace(pi, training=training, figures=other)) == roofline.of(pi)


def test_a_device_without_training_figures_takes_over_the_pi_4s_scaled_and_says_so() -> None:
    found = roofline.of(profile("rpi-3b"))
    assert found is not None and "rpi-4" in found.derived and "memcpy" in found.derived
    assert _seconds(profile("rpi-3b"), "resnet18") > _seconds(profile("rpi-4"), "resnet18")


def test_a_module_with_the_same_processor_and_no_figure_of_its_memory_has_the_same_memory() -> None:
    pi, module = roofline.of(profile("rpi-4")), roofline.of(profile("cm4"))
    assert pi is not None and module is not None
    assert module.passes == pi.passes and module.products < pi.products


def test_a_device_of_which_nothing_is_known_has_no_roofline() -> None:
    assert roofline.of(profile("server")) is None
    assert roofline.of(DeviceProfile("mine", "Mine")) is None


@pytest.mark.parametrize("figures", [{"hpl": 1e9}, {"stream_triad": 1e8}])
def test_figures_that_no_device_can_have_at_once_are_refused(figures: dict[str, float]) -> None:
    with pytest.raises(DeviceError, match="rpi-4: the training figures"):
        roofline.of(replace(profile("rpi-4"), figures=_figures(**figures)))


def test_training_figures_that_contradict_each_other_are_refused() -> None:
    training = tuple(
        replace(one, seconds=1000.0) if one.model == "mobilenetv3_large" else one for one in profile("rpi-4").training
    )
    with pytest.raises(DeviceError, match="contradict"):
        roofline.of(replace(profile("rpi-4"), training=training))


def test_steps_of_other_batches_or_images_are_not_taken_for_the_reference() -> None:
    other = TrainingFigure("resnet18", 8, 224, 5.0, "test")
    assert "resnet18" not in roofline.training(replace(profile("rpi-4"), training=(other,)))


def test_every_reference_table_reads_back_and_is_a_whole_step() -> None:
    assert set(references()) == {*roofline.FIT, *CHECK}
    for model in references():
        step = reference(model)
        assert Step.from_json(step.to_json()) == step
        assert {one.phase for one in step.operators} == {"forward", "backward", "update"}
    with pytest.raises(KeyError):
        reference("none")


def test_a_convolution_goes_by_tiles_only_from_the_batch_on_from_which_torch_does() -> None:
    one = Operator("matrix", "forward", 900.0, 10.0, unfolded=90.0, tiles=40.0, tile_flops=300.0)
    large, small = (roofline.load(Step("mine", batch, 8, 1, (one,))) for batch in (16, 15))
    assert large == roofline.Load(products=300.0, passes=10.0, tiles=40.0)
    assert small == roofline.Load(products=900.0, passes=10.0, tiles=0.0)


def test_operators_that_are_alike_are_added_up() -> None:
    one = Operator("pass", "forward", 0.0, 8.0)
    assert merged([one, one, replace(one, phase="backward")]) == (
        replace(one, bytes=16.0, launches=2),
        replace(one, phase="backward"),
    )
