"""What travels, how many bytes it is, and what a server refuses."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.core.errors import ExperimentError
from emulator.training import compressors, exchanges
from emulator.training.compressors.base import MalformedPush
from emulator.training.compressors.top_k import largest
from emulator.training.layout import Layout
from emulator.training.message import Message, encode, message_bytes
from emulator.training.spec import Variant

#: of the paper's CNN
CNN = Layout(((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 3136), (128,), (10, 128), (10,)))
SMALL = Layout(((3, 4), (4,)))


def push(exchange: str, c: float = 0.01) -> Message:
    rng = np.random.default_rng(0)
    gradients = [rng.standard_normal(shape).astype(np.float32) for shape in CNN.shapes]
    arrays = exchanges.build(Variant(exchange, exchange, compression=c), CNN, 0).select(gradients)
    return Message("push", {"iteration": 1234}, arrays)


@pytest.mark.parametrize(("c", "entries"), [(0.01, 4216), (0.005, 2110), (0.001, 425)])
def test_entries_and_bytes_of_a_push_are_the_papers(c: float, entries: int) -> None:
    message = push("adacomp", c)
    assert message.arrays[0].size == entries
    assert message.payload_bytes == 8 * entries


def test_a_push_is_fifty_times_smaller() -> None:
    dense, sparse = push("asgd"), push("adacomp")
    assert dense.payload_bytes == 1_686_568
    assert dense.payload_bytes / sparse.payload_bytes >= 50.0
    assert message_bytes(encode(dense)) / message_bytes(encode(sparse)) >= 45


def test_a_broken_gradient_is_sent_so_that_the_server_sees_it() -> None:
    gradient = np.array([1, np.nan, 3, np.nan, np.nan], np.float32)
    assert largest(gradient, 2).tolist() == [1, 3]
    assert largest(gradient, 4).tolist() == [1, 2, 3, 4]


GOOD = np.array([1, 2], np.float32), np.array([0, 5], np.int32)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ((GOOD[0],), "1 arrays, not values and indices"),
        ((GOOD[0], GOOD[1].astype(np.int64)), "indices are int64"),
        ((GOOD[0].astype(np.float64), GOOD[1]), "values are float64"),
        ((GOOD[0].reshape(1, 2), GOOD[1]), "2 dimensions"),
        ((GOOD[0], GOOD[1][:1]), "not 2 int32"),
        ((np.array([1, np.nan], np.float32), GOOD[1]), "not a finite number"),
        ((np.array([1, np.inf], np.float32), GOOD[1]), "not a finite number"),
        ((GOOD[0], np.array([0, 16], np.int32)), "below 16"),
        ((GOOD[0], np.array([-1, 5], np.int32)), "below 16"),
        ((GOOD[0], np.array([5, 5], np.int32)), "increasing"),
    ],
)
def test_a_malformed_sparse_push_is_refused(arrays: tuple[np.ndarray, ...], says: str) -> None:
    with pytest.raises(MalformedPush, match=says):
        compressors.build("top-k", SMALL, Variant("v"), 0).decompress(arrays)


def test_a_malformed_dense_push_is_refused() -> None:
    dense = compressors.build("dense", SMALL, Variant("v"), 0)
    with pytest.raises(MalformedPush, match="not one of 16"):
        dense.decompress((np.zeros(15, np.float32),))
    with pytest.raises(MalformedPush, match="not a finite number"):
        dense.decompress((np.full(16, np.nan, np.float32),))


@pytest.mark.parametrize("iteration", [-1, 1])
def test_an_impossible_iteration_is_refused(iteration: int) -> None:
    exchange = exchanges.build(Variant("v", "asgd"), SMALL, 0)
    with pytest.raises(MalformedPush, match="the model is at 0"):
        exchange.apply(np.zeros(16, np.float32), (np.ones(16, np.float32),), iteration)


def test_asgd_and_comp_asgd_take_the_whole_step_however_old() -> None:
    for name in ("asgd", "comp-asgd"):
        exchange = exchanges.build(Variant("v", name, learning_rate=0.5, compression=1.0), SMALL, 0)
        parameters = np.zeros(16, np.float32)
        for _ in range(3):
            exchange.apply(parameters, exchange.select([np.ones((3, 4), np.float32), np.ones(4, np.float32)]), 0)
        assert parameters.tolist() == [-1.5] * 16


def test_a_dense_push_touches_everything_for_adacomp() -> None:
    variant = Variant("v", "adacomp", compressor="dense", learning_rate=1.0)
    exchange, parameters = exchanges.build(variant, SMALL, 0), np.zeros(16, np.float32)
    ones = [np.ones((3, 4), np.float32), np.ones(4, np.float32)]
    sigmas = [exchange.apply(parameters, exchange.select(ones), 0).sigma_mean for _ in range(3)]
    assert sigmas == [0, 1, 2]
    assert parameters.tolist() == [-2.5] * 16


def test_a_share_outside_its_range_is_an_error() -> None:
    with pytest.raises(ExperimentError, match=r"compression 1.5 is not a share"):
        compressors.build("top-k", SMALL, Variant("v", compression=1.5), 0)
