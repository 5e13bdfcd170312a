"""The paper's CNN, the numpy model, preloading and evaluation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from emulator.core.errors import ExperimentError
from emulator.training import data, evaluation, models
from emulator.training.models.base import Model
from emulator.training.roles.worker import use_threads
from emulator.training.spec import Workload


@pytest.fixture(scope="module", params=["mnist-cnn", "softmax"])
def model(request: pytest.FixtureRequest) -> Model:
    built = models.build(Workload(request.param))
    use_threads(1)
    return built


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 28, 28)).astype(np.float32), rng.integers(0, 10, n)


def test_the_cnn_is_the_papers() -> None:
    cnn = models.build(Workload("mnist-cnn"))
    assert cnn.layout.size == 421_642
    assert cnn.layout.sizes == (288, 32, 18_432, 64, 401_408, 128, 1_280, 10)
    start = cnn.layout.split(cnn.initial(7))
    for variable in start[1::2]:
        assert (variable == np.float32(0.1)).all()
    weights = start[4]
    assert np.abs(weights).max() <= 0.2
    assert weights.std() == pytest.approx(0.088, abs=0.001)  # 0.1 cut at two deviations
    np.testing.assert_array_equal(cnn.initial(7), models.build(Workload("mnist-cnn")).initial(7))
    assert not np.array_equal(cnn.initial(7), cnn.initial(8))


def test_gradients_are_those_of_the_loss(model: Model) -> None:
    images, labels = batch(4)
    parameters = model.initial(1) + np.random.default_rng(1).normal(0, 0.01, model.layout.size).astype(np.float32)
    gradients, loss = model.gradients(parameters, images, labels)
    assert [gradient.shape for gradient in gradients] == list(model.layout.shapes)
    direction = model.layout.join(gradients)
    direction /= np.linalg.norm(direction)
    step = 1e-2
    _, ahead = model.gradients(parameters + step * direction, images, labels)
    _, behind = model.gradients(parameters - step * direction, images, labels)
    gradients, _ = model.gradients(parameters, images, labels)
    slope = float(np.dot(model.layout.join(gradients), direction))
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=0.05)
    assert model.evaluate(parameters, images, labels)[1] == pytest.approx(4 * loss, rel=1e-5)


def test_a_parameter_vector_from_the_wire_may_be_read_only(model: Model) -> None:
    parameters = np.frombuffer(model.initial(0).tobytes(), np.float32)
    images, labels = batch(3)
    assert np.isfinite(model.gradients(parameters, images, labels)[1])


def test_a_few_steps_lower_the_loss(model: Model) -> None:
    images, labels = batch(10)
    parameters = model.initial(0).copy()
    losses = []
    for _ in range(8):
        gradients, loss = model.gradients(parameters, images, labels)
        parameters -= 0.01 * model.layout.join(gradients)
        losses.append(loss)
    assert losses[-1] < losses[0]


def test_evaluation_takes_variables_or_one_vector(tmp_path: Path) -> None:
    workload = Workload("softmax", "synthetic-mnist")
    root = str(data.fetch("synthetic-mnist", tmp_path))
    softmax = models.build(workload)
    parameters = softmax.initial(0)
    assert evaluation.evaluate(workload, root, [parameters]) == evaluation.evaluate(
        workload, root, softmax.layout.split(parameters)
    )
    accuracy, loss = evaluation.evaluate(workload, root, [parameters])
    assert loss == pytest.approx(np.log(10), rel=1e-5)
    assert 0.05 < accuracy < 0.15


def test_an_unknown_model_is_a_sentence() -> None:
    with pytest.raises(ExperimentError, match="no model is called 'mnist-cn'; did you mean 'mnist-cnn'"):
        models.build(Workload("mnist-cn"))


def test_preloading_imports_the_framework_and_starts_no_thread() -> None:
    script = (
        "import sys, os; from emulator.training import preload; from emulator.training.spec import Workload\n"
        "assert 'torch' not in sys.modules; preload(Workload())\n"
        "print('torch' in sys.modules, len(os.listdir('/proc/self/task')))"
    )
    # numpy's BLAS starts its threads at import unless it is told not to, as the warmed process does.
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split() == ["True", "1"]
